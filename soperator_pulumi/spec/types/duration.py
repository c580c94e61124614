"""Lengths of time: `90s`, `10m`, `2h`, `7d`, `1h30m`."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, WithJsonSchema

from soperator_pulumi.spec.validation.base import refused

_UNITS = {"d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1), "s": timedelta(seconds=1)}
_DURATION = re.compile("".join(rf"(?:(?P<{unit}>\d{{1,7}}){unit})?" for unit in _UNITS))
_WANTED = 'needs a length of time with its unit, such as "90s", "10m", "2h", "7d" or "1h30m".'


def duration_text(duration: timedelta) -> str:
    """Return the duration as written in a spec: whole seconds, starting with the largest unit, `0s` for none."""
    left = int(duration.total_seconds())
    written = ""
    for name, unit in _UNITS.items():
        count, left = divmod(left, int(unit.total_seconds()))
        written += f"{count}{name}" if count else ""
    return written or "0s"


def _duration(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    match = _DURATION.fullmatch(value) if isinstance(value, str) and value else None
    if match is None:
        raise refused(_WANTED)
    return sum((int(match[name] or 0) * unit for name, unit in _UNITS.items()), timedelta())


Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    PlainSerializer(duration_text, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": f"^(?=.){''.join(f'([0-9]{{1,7}}{unit})?' for unit in _UNITS)}$"}),
]
"""A length of time with its unit. A bare number is refused: it could be seconds or minutes."""


def lasting(minimum: timedelta, maximum: timedelta, *, why: str = "") -> AfterValidator:
    """Return the check of a duration's bounds, which are allowed values. `why` gives the reason for a bound."""
    span = f"needs a length of time from {duration_text(minimum)} to {duration_text(maximum)}."
    return AfterValidator(_within(minimum, maximum, f"{span}{' ' if why else ''}{why}"))


def _within(minimum: timedelta, maximum: timedelta, wanted: str) -> Callable[[timedelta], timedelta]:
    def check(duration: timedelta) -> timedelta:
        if not minimum <= duration <= maximum:
            raise refused(wanted)
        return duration

    return check
