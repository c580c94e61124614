"""Base of all models of the spec, and the errors with which a check refuses a value."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from soperator_pulumi.errors import Problem

REFUSED = "refused"
"""Type of pydantic errors by `refused`: the message shows the value before the text."""

REFUSED_QUIETLY = "refused_quietly"
"""The same for values that a message must not show."""

REFUSED_PARTS = "refused_parts"
"""The same for several problems in one value, held in the context."""

BROKEN_RULES = "broken_rules"
"""Type of errors by `broken_rules`."""


class Model(BaseModel):
    """A part of the spec: immutable, without unknown keys, each field documented by the text below it."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,  # a value in a wrong field may be a secret
    )


def refused(text: str) -> PydanticCustomError:
    """Return the error of a validator; shown as `got <value>, <text>`."""
    return PydanticCustomError(REFUSED, "{text}", {"text": text})


def refused_quietly(text: str) -> PydanticCustomError:
    """Return the error of a validator whose value may be a secret; shown as `<text>`."""
    return PydanticCustomError(REFUSED_QUIETLY, "{text}", {"text": text})


def broken_rules(found: Iterable[Problem]) -> PydanticCustomError:
    """Return the error of a model's own validator, for fields that do not fit together."""
    return PydanticCustomError(BROKEN_RULES, "{text}", {"text": "\n".join(map(str, found))})


@dataclass(frozen=True)
class Matches:
    """Annotation of a text that must match a regular expression as a whole."""

    pattern: str
    wanted: str
    """Allowed values in words: the end of the sentence "got X, ..."."""
    max_length: int | None = None

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check after pydantic has checked that the value is text."""
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, text: str) -> str:
        if not re.fullmatch(self.pattern, text):
            raise refused(self.wanted)
        if self.max_length is not None and len(text) > self.max_length:
            raise refused(f"{len(text)} characters long, {self.max_length} at most are allowed. {self.wanted}")
        return text


def whole(minimum: int, maximum: int | None = None, *, why: str = "") -> BeforeValidator:
    """Return the check of a whole number. 3.0 is 3, as numbers from other languages are floats."""
    return BeforeValidator(_number_check(minimum, maximum, "a whole number", why, whole_only=True))


def number(minimum: float, maximum: float | None = None, *, what: str, why: str = "") -> BeforeValidator:
    """Return the check of a number. `what` names it with its unit: "a number of GiB"."""
    return BeforeValidator(_number_check(minimum, maximum, what, why, whole_only=False))


def _number_check(
    minimum: float, maximum: float | None, what: str, why: str, *, whole_only: bool
) -> Callable[[object], float]:
    span = f"of at least {minimum:g}" if maximum is None else f"from {minimum:g} to {maximum:.0f}"
    wanted = f"needs {what} {span}.{' ' if why else ''}{why}"

    def check(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise refused(wanted)
        if not minimum <= value <= (float("inf") if maximum is None else maximum) or value == float("inf"):
            raise refused(wanted)
        if whole_only:
            if value != int(value):
                raise refused(wanted)
            return int(value)
        return value

    return check


def refused_parts(found: list[Problem]) -> PydanticCustomError:
    """Return the error of a validator with several problems in a value, each with a path below it."""
    return PydanticCustomError(REFUSED_PARTS, "{count} problems", {"count": len(found), "problems": found})
