"""Policies on the health of nodes: checks take bad nodes out of service before jobs land on them."""

import json
from collections.abc import Iterator, Sequence

from soperator_pulumi.policy.companions import alone, running_cron_jobs, stateful_sets
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
                resource, ("files", name), f'no quick check drains nodes of "{node_set}": jobs land on bad ones'
            )


def _drains(text: str) -> bool:
    """Return True where a check of a node set's settings drains."""
    try:
        checks = mapped(mapped(json.loads(text)).get("checks"))
    except ValueError:
        return False
    return any(look(each, "action") in _DRAINING for each in checks.values())


def _measured(resources: Sequence[ResourceView], _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    for each in alone(stateful_sets(resources, "Controller"), running_cron_jobs(resources, "HealthChecks")):
        yield Finding(each, (), "no long check measures the nodes of this cluster: a slow one stays in service")


HEALTH_CHECKS = ResourcePolicy(
    name="health-checks",
    description="Quick checks drain bad nodes of each node set.",
    violated_by="`health.enabled: false`; a node set whose checks are all off, or only log",
    cure="Leave health as it is by default, or give some of health.checks the action drain.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("monitoring",),
    check=_draining,
)

LONG_CHECKS = StackPolicy(
    name="long-checks",
    description="Long checks measure the nodes of each cluster.",
    violated_by="a cluster without `health.long_checks`; suspended CronJobs",
    cure="Give the cluster health.long_checks, as in `{memory_bandwidth: {}}`, or an exception with the reason.",
    levels=levels("disabled", "disabled", "advisory", "mandatory"),
    severity=PolicySeverity.MEDIUM,
    tags=("monitoring",),
    check=_measured,
)
