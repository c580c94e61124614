"""What all models of the spec have in common, and how a check of ours refuses a value."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from soperator_pulumi.errors import Problem

REFUSED = "refused"
"""Type of the pydantic errors that `refused` makes: the message shows the value before the text."""

REFUSED_QUIETLY = "refused_quietly"
"""The same for values that a message must not show."""


REFUSED_PARTS = "refused_parts"
"""The same for several problems in one value; the context holds them."""


BROKEN_RULES = "broken_rules"
"""Type of the errors that `broken_rules` makes."""


class Model(BaseModel):
    """A part of the spec: immutable, with no unknown keys, its fields documented by the text below them."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,  # what was pasted into a wrong field may be a secret
    )


def refused(text: str) -> PydanticCustomError:
    """Return the error that a validator raises; shown as `got <value>, <text>`."""
    return PydanticCustomError(REFUSED, "{text}", {"text": text})


def refused_quietly(text: str) -> PydanticCustomError:
    """Return the error that a validator raises where the value may be a secret; shown as `<text>`."""
    return PydanticCustomError(REFUSED_QUIETLY, "{text}", {"text": text})


def broken_rules(found: Iterable[Problem]) -> PydanticCustomError:
    """Return the error that a model's own validator raises when fields do not go together."""
    return PydanticCustomError(BROKEN_RULES, "{text}", {"text": "\n".join(map(str, found))})


@dataclass(frozen=True)
class Matches:
    """Annotation of a text that must match a regular expression as a whole."""

    pattern: str
    wanted: str
    """What is allowed, in words: the end of the sentence "got X, ..."."""
    max_length: int | None = None

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check after pydantic has made sure that the value is a text."""
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, text: str) -> str:
        if not re.fullmatch(self.pattern, text):
            raise refused(self.wanted)
        if self.max_length is not None and len(text) > self.max_length:
            raise refused(f"{len(text)} characters long, {self.max_length} at most are allowed. {self.wanted}")
        return text


def whole(minimum: int, maximum: int | None = None, *, why: str = "") -> BeforeValidator:
    """Return the check of a whole number. 3.0 is 3: numbers arrive as floats from other languages."""
    return BeforeValidator(_number_check(minimum, maximum, "a whole number", why, whole_only=True))


def number(minimum: float, maximum: float | None = None, *, what: str, why: str = "") -> BeforeValidator:
    """Return the check of a number; `what` names it with its unit: "a number of GiB"."""
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
    """Return the error of a validator that found several problems in a value, each with a path below it."""
    return PydanticCustomError(REFUSED_PARTS, "{count} problems", {"count": len(found), "problems": found})
