"""Policies on accounting: every cluster records its jobs, and the cluster's own database is dumped."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from soperator_pulumi.policy.definition import Circumstances, Finding, PolicySettings, StackPolicy, not_known
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.object_relations import patched, running_cron_jobs, stateful_sets, without_companion
from soperator_pulumi.policy.pod_view import pods_of
from soperator_pulumi.policy.schedule_days import longest_gap
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
