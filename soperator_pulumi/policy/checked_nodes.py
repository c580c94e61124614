"""Policies on the health of nodes: checks drain bad nodes before jobs land on them."""

import json
from collections.abc import Iterator, Sequence

from soperator_pulumi.policy.companions import running_cron_jobs, stateful_sets, without_companion
from soperator_pulumi.policy.definition import (
    Circumstances,
    Finding,
    PolicySettings,
    ResourcePolicy,
    StackPolicy,
    not_known,
)
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.value_tree import UNKNOWN, look, mapped
from soperator_pulumi.policy.view import ResourceView
from soperator_pulumi.render.layout import HOOKS_FILE

_CONFIG_MAP = "health"
_DRAINING = ("drain", "drain_and_replace")


def _draining(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    if not resource.acts_as("ConfigFiles") or resource.input("name") != _CONFIG_MAP:
        return
    files = resource.input("files")
    if files is UNKNOWN:
        yield not_known(resource, ("files",))
        return
    for name, text in mapped(files).items():
        node_set = name.removesuffix(".json")
        if name in {node_set, HOOKS_FILE}:
            continue
        if not isinstance(text, str):
            yield not_known(resource, ("files", name))
        elif not _drains(text):
            yield Finding(
                resource, ("files", name), f'no quick check drains nodes of "{node_set}": jobs land on bad nodes'
            )


def _drains(text: str) -> bool:
    """Return True if at least one check in a node set's settings drains."""
    try:
        checks = mapped(mapped(json.loads(text)).get("checks"))
    except ValueError:
        return False
    return any(look(check, "action") in _DRAINING for check in checks.values())


def _measured(resources: Sequence[ResourceView], _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    without = without_companion(stateful_sets(resources, "Controller"), running_cron_jobs(resources, "HealthChecks"))
    for stateful_set in without:
        yield Finding(
            stateful_set, (), "no long check measures the nodes of this cluster: a slow node stays in service"
        )


HEALTH_CHECKS = ResourcePolicy(
    name="health-checks",
    description="In every node set, quick checks drain bad nodes.",
    violated_by="`health.enabled: false`; a node set whose checks are all off, or only log",
    cure="Leave health at its default, or give some of health.checks the action drain.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("monitoring",),
    check=_draining,
)

LONG_CHECKS = StackPolicy(
    name="long-checks",
    description="In every cluster, long checks measure the nodes.",
    violated_by="a cluster without `health.long_checks`; suspended CronJobs",
    cure="Give the cluster health.long_checks, as in `{memory_bandwidth: {}}`, or an exception with the reason.",
    levels=levels("disabled", "disabled", "advisory", "mandatory"),
    severity=PolicySeverity.MEDIUM,
    tags=("monitoring",),
    check=_measured,
)
