"""Policies on accounting: every cluster records its jobs, and the cluster's own database is dumped."""

import math
import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Annotated

from soperator_pulumi.policy.definition import Circumstances, Finding, PolicySettings, StackPolicy, not_known
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.object_relations import patched, running_cron_jobs, stateful_sets, without_companion
from soperator_pulumi.policy.pod_view import pods_of
from soperator_pulumi.policy.value_tree import UNKNOWN, listed, look, whole_number
from soperator_pulumi.policy.view import ResourceView
from soperator_pulumi.spec.validation.base import whole

_SCHEDULE = ("spec", "schedule")
_KEEP = "KEEP"
"""Variable with the number of dumps to keep."""


def _recorded(resources: Sequence[ResourceView], _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    without = without_companion(stateful_sets(resources, "Controller"), stateful_sets(resources, "Accounting"))
    for stateful_set in without:
        yield Finding(
            stateful_set, (), "no slurmdbd records the jobs of this cluster: sacct, limits and fair share fail"
        )


class DumpSettings(PolicySettings):
    """Settings of `accounting-dumps`."""

    longest_days: Annotated[int, whole(1, 366)] = 7
    """Most days between two dumps. A restore loses the records of that time. Default: 7."""
    minimum_kept: Annotated[int, whole(1, 1000)] = 3
    """Smallest number of dumps to keep, as the newest one may already contain the damage. Default: 3."""


def _dumped(resources: Sequence[ResourceView], _run: Circumstances, settings: DumpSettings) -> Iterator[Finding]:
    dumps = [*running_cron_jobs(patched(resources), "AccountingDumps")]
    for stateful_set in without_companion(stateful_sets(resources, "Database"), dumps):
        yield Finding(stateful_set, (), "no CronJob of this stack dumps this database: its records are on one volume")
    for dump in dumps:
        schedule = look(dump.props, *_SCHEDULE)
        days = longest_gap(schedule) if isinstance(schedule, str) else None
        if schedule is UNKNOWN:
            yield not_known(dump, _SCHEDULE)
        elif days is None or days > settings.longest_days:
            got = "never starts" if days is None else f"starts after {days} days"
            yield Finding(dump, _SCHEDULE, f"{got}, needs {settings.longest_days} or fewer between two dumps")
        yield from _kept(dump, settings.minimum_kept)


def _kept(dump: ResourceView, minimum: int) -> Iterator[Finding]:
    for pod in pods_of(dump):
        for path, container in pod.containers():
            for index, variable in enumerate(listed(look(container, "env"))):
                kept = whole_number(look(variable, "value")) if look(variable, "name") == _KEEP else None
                if kept is not None and kept < minimum:
                    yield Finding(dump, (*path, "env", index, "value"), f"got {kept}, needs {minimum} or more dumps")


ACCOUNTING = StackPolicy(
    name="accounting",
    description="Each cluster records its jobs in a database.",
    violated_by="`accounting: none`",
    cure="Remove `accounting: none`, or give accounting the database of your choice.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("data", "accounting"),
    check=_recorded,
)

ACCOUNTING_DUMPS = StackPolicy(
    name="accounting-dumps",
    description="The accounting database of a cluster's own is dumped to another volume, often enough.",
    violated_by="`accounting` with a database of the cluster's own and without `dump`; a suspended CronJob; "
    "`dump.schedule` rarer than `longest_days`, `dump.keep` below `minimum_kept`",
    cure="Give the cluster accounting.dump, as in `dump: {}`, or an external database that is backed up elsewhere.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("data", "accounting"),
    settings=DumpSettings,
    check=_dumped,
)


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

_EVERY = re.compile(r"@every\s+((?:\d{1,9}(?:\.\d{1,9})?(?:h|m|s|ms|us|µs|ns))+)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
"""Units of the time after `@every`: https://pkg.go.dev/time#ParseDuration."""

_MONTHS = ("", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

_START, _YEARS = date(2001, 1, 1), 28
"""Start and length in years of the period after which weekdays, months and leap days repeat."""


def longest_gap(schedule: str) -> int | None:
    """Return the most days between two starts of a cron schedule, however it is written.

    None for a text that is not a schedule, or that never starts.
    """
    if every := _EVERY.fullmatch(schedule.strip()):
        return _days_of(every[1])
    last: date | None = None
    longest = None
    try:
        for day in _days(schedule):
            longest = max(longest or 0, (day - last).days) if last else longest
            last = day
    except ValueError:
        return None
    return longest


def _days_of(duration: str) -> int:
    """Return the days of a time such as `36h`, rounded up, and at least 1."""
    parts = re.findall(r"([\d.]+)([^\d.]+)", duration)
    return max(1, math.ceil(sum(float(number) * _SECONDS[unit] for number, unit in parts) / 86_400))


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
        ValueError: the field is not a list of values, ranges and steps.
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
