"""Policies on accounting: every cluster records its jobs, and the cluster's own database is dumped."""

from collections.abc import Iterator, Sequence

from soperator_pulumi.policy.companions import running_cron_jobs, stateful_sets, without_companion
from soperator_pulumi.policy.definition import Circumstances, Finding, PolicySettings, StackPolicy
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.patches import patched
from soperator_pulumi.policy.view import ResourceView


def _recorded(resources: Sequence[ResourceView], _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    without = without_companion(stateful_sets(resources, "Controller"), stateful_sets(resources, "Accounting"))
    for stateful_set in without:
        yield Finding(
            stateful_set, (), "no slurmdbd records the jobs of this cluster: sacct, limits and fair share fail"
        )


def _dumped(resources: Sequence[ResourceView], _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    dumps = running_cron_jobs(patched(resources), "AccountingDumps")
    for stateful_set in without_companion(stateful_sets(resources, "Database"), dumps):
        yield Finding(stateful_set, (), "no CronJob of this stack dumps this database: its records are on one volume")


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
    description="The accounting database of a cluster's own is dumped to another volume.",
    violated_by="`accounting` with a database of the cluster's own and without `dump`; a suspended CronJob",
    cure="Give the cluster accounting.dump, as in `dump: {}`, or an external database that is backed up elsewhere.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("data", "accounting"),
    check=_dumped,
)
