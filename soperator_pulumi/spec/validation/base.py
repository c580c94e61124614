"""Base class of all models of the spec, and the errors by which a check refuses a value."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from soperator_pulumi.errors import Problem

REFUSED = "refused"
"""Type of the pydantic errors from `refused`: the message shows the value before the text."""

REFUSED_QUIETLY = "refused_quietly"
"""Type of the errors from `refused_quietly`, for values that a message must not show."""

REFUSED_PARTS = "refused_parts"
"""Type of the errors from `refused_parts`, whose context holds several problems of one value."""

BROKEN_RULES = "broken_rules"
"""Type of the errors from `broken_rules`."""


class Model(BaseModel):
    """A part of the spec: immutable, without unknown keys, with every field documented by the text below it."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,  # a value in a wrong field may be a secret
    )


def refused(text: str) -> PydanticCustomError:
    """Return a validator's error, shown as `got <value>, <text>`."""
    return PydanticCustomError(REFUSED, "{text}", {"text": text})


def refused_quietly(text: str) -> PydanticCustomError:
    """Return a validator's error for a value that may be a secret, shown as `<text>`."""
    return PydanticCustomError(REFUSED_QUIETLY, "{text}", {"text": text})


def broken_rules(found: Iterable[Problem]) -> PydanticCustomError:
    """Return a model validator's error for fields that do not fit together."""
    return PydanticCustomError(BROKEN_RULES, "{text}", {"text": "\n".join(map(str, found))})


@dataclass(frozen=True)
class Matches:
    """Annotation for text that must match a regular expression completely."""

    pattern: str
    wanted: str
    """Allowed values in words, as the end of the sentence "got X, ..."."""
    max_length: int | None = None

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check after pydantic has checked that the value is text."""
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Add the pattern, anchored, because JSON Schema's patterns search."""
        limit = {} if self.max_length is None else {"maxLength": self.max_length}
        return {**handler(schema), "pattern": f"^(?:{self.pattern})$", **limit}

    def _check(self, text: str) -> str:
        if not re.fullmatch(self.pattern, text):
            raise refused(self.wanted)
        if self.max_length is not None and len(text) > self.max_length:
            raise refused(f"{len(text)} characters long, at most {self.max_length} are allowed. Shorten it.")
        return text


@dataclass(frozen=True)
class Bounded:
    """Annotation for a number with bounds, which are allowed values."""

    minimum: float
    maximum: float | None
    wanted: str
    """Allowed values in words, as the end of the sentence "got X, ..."."""
    whole: bool

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check before pydantic, which would accept text and booleans."""
        return core_schema.no_info_before_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe a number with bounds."""
        limit = {} if self.maximum is None else {"maximum": self.maximum}
        return {"type": "integer" if self.whole else "number", "minimum": self.minimum, **limit}

    def _check(self, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise refused(self.wanted)
        highest = float("inf") if self.maximum is None else self.maximum
        if not self.minimum <= value <= highest or value == float("inf"):
            raise refused(self.wanted)
        if self.whole:
            if value != int(value):
                raise refused(self.wanted)
            return int(value)
        return value


def whole(minimum: int, maximum: int | None = None, *, why: str = "") -> Bounded:
    """Return the check of a whole number. 3.0 becomes 3, as other languages send numbers as floats."""
    return Bounded(minimum, maximum, _wanted("a whole number", minimum, maximum, why), whole=True)


def number(minimum: float, maximum: float | None = None, *, what: str, why: str = "") -> Bounded:
    """Return the check of a number. `what` is its name with the unit: "a number of GiB"."""
    return Bounded(minimum, maximum, _wanted(what, minimum, maximum, why), whole=False)


def _wanted(what: str, minimum: float, maximum: float | None, why: str) -> str:
    span = f"of at least {minimum:g}" if maximum is None else f"from {minimum:g} to {maximum:.0f}"
    return f"needs {what} {span}.{' ' if why else ''}{why}"


def refused_parts(found: list[Problem]) -> PydanticCustomError:
    """Return a validator's error with several problems in one value, with their paths below it."""
    return PydanticCustomError(REFUSED_PARTS, "{count} problems", {"count": len(found), "problems": found})
