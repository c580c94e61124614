"""Parts of a number of nodes, written as in Kubernetes: `3` or `10%`."""

import re
from dataclasses import dataclass

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from soperator_pulumi.spec.validation.base import refused

_PERCENT = re.compile(r"(?P<number>\d{1,3})%")
_WHOLE = 100
_WANTED = 'needs a whole number of nodes, such as 2, or a percentage from 0% to 100% in quotes, such as "10%".'


@dataclass(frozen=True)
class Share:
    """A number of nodes, or a percentage of all of them."""

    amount: int
    percent: bool = False
    """True if `amount` is a percentage."""

    def of(self, total: int) -> int:
        """Return the part of `total` nodes, at most all of them. A percentage rounds down, possibly to 0."""
        return self.amount * total // _WHOLE if self.percent else min(self.amount, total)

    def written(self) -> int | str:
        """Return the value as written in a spec: `3` or `"10%"`."""
        return str(self) if self.percent else self.amount

    def __str__(self) -> str:
        return f"{self.amount}%" if self.percent else str(self.amount)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read a number or a percentage, and dump the same."""
        return core_schema.no_info_plain_validator_function(
            cls._read, serialization=core_schema.plain_serializer_function_ser_schema(cls.written)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe both forms."""
        return {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^(100|0?[0-9]{1,2})%$"}]}

    @classmethod
    def _read(cls, value: object) -> "Share":
        if isinstance(value, cls):
            return value
        if isinstance(value, str) and (match := _PERCENT.fullmatch(value)) and int(match["number"]) <= _WHOLE:
            return cls(int(match["number"]), percent=True)
        # 3.0 is 3: other languages send numbers as floats.
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf"):
            whole = int(value)
            if whole == value:
                return cls(whole)
        raise refused(_WANTED)
