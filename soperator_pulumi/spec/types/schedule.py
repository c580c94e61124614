"""Schedules of CronJobs."""

from typing import Annotated

from soperator_pulumi.spec.validation.base import Matches


def _field(value: str) -> str:
    """Return the pattern for a field whose values match `value`: values, ranges and steps, separated by commas."""
    item = rf"(\*|{value}(-{value})?)(/[1-9][0-9]*)?"
    return f"{item}(,{item})*"


_FIELDS = (
    "[0-5]?[0-9]",
    "([01]?[0-9]|2[0-3])",
    "(0?[1-9]|[12][0-9]|3[01])",
    "(0?[1-9]|1[0-2]|[A-Za-z]{3})",
    "(0?[0-6]|[A-Za-z]{3})",
)
"""Patterns of a minute, an hour, a day of the month, a month, and a day of the week with Sunday as 0."""

Schedule = Annotated[
    str,
    Matches(
        f"@(hourly|daily|midnight|weekly|monthly)|{' '.join(map(_field, _FIELDS))}",
        'needs a schedule of cron with five fields, such as "30 1 * * *" for 01:30 UTC each day, or "@daily": minutes '
        "from 0 to 59, hours to 23, days from 1 to 31, months from 1 to 12, days of the week from 0 (Sunday) to 6.",
        max_length=100,
    ),
]
"""Schedule in cron's syntax, as a CronJob accepts it (Kubernetes, CronJob, "Schedule syntax")."""
