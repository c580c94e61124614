"""Days on which a cron schedule starts, so that a verdict does not depend on how it is written."""

from collections.abc import Iterator
from datetime import date, timedelta

_WORDS = {
    "@yearly": "1 1 *",
    "@annually": "1 1 *",
    "@monthly": "1 * *",
    "@weekly": "* * 0",
    "@daily": "* * *",
    "@midnight": "* * *",
    "@hourly": "* * *",
}
"""Days of the month, months and weekdays that these words mean: https://pkg.go.dev/github.com/robfig/cron/v3."""

_MONTHS = ("", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

_START, _YEARS = date(2001, 1, 1), 28
"""Start and length in years of the period after which weekdays, months and leap days repeat."""


def longest_gap(schedule: str) -> int | None:
    """Return the most days between two starts; None for a text that is not a schedule, or that never starts."""
    last: date | None = None
    longest = None
    try:
        for day in _days(schedule):
            longest = max(longest or 0, (day - last).days) if last else longest
            last = day
    except ValueError:
        return None
    return longest


def _days(schedule: str) -> Iterator[date]:
    fields = _WORDS.get(schedule.strip().lower(), " ".join(schedule.split()[2:])).split()
    day_field, month_field, week_field = fields
    days, months = _values(day_field, 1, 31, ()), _values(month_field, 1, 12, _MONTHS)
    week_days = {day % 7 for day in _values(week_field, 0, 7, _DAYS)}
    # A star in one of the two days leaves the choice to the other; without stars, either starts (crontab(5)).
    both = day_field.startswith(("*", "?")) or week_field.startswith(("*", "?"))
    for offset in range(_YEARS * 1461 // 4):
        day = _START + timedelta(days=offset)
        fits = (day.day in days, day.isoweekday() % 7 in week_days)
        if day.month in months and (all(fits) if both else any(fits)):
            yield day


def _values(field: str, first: int, last: int, names: tuple[str, ...]) -> set[int]:
    """Return the values of a field.

    Raises:
        ValueError: the field is no list of values, ranges and steps.
    """
    found: set[int] = set()
    for item in field.lower().split(","):
        span, slash, step = item.partition("/")
        low, dash, high = span.partition("-")
        if low in {"*", "?"}:
            low, high, dash = str(first), str(last), "-"
        start = names.index(low) if low in names else int(low)
        end = start if not dash else names.index(high) if high in names else int(high)
        found.update(range(start, (last if slash and not dash else end) + 1, int(step) if slash else 1))
    return found
