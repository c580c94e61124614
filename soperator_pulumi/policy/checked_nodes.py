"""Policies on the health of nodes: checks drain bad nodes before jobs land on them."""

import json
from collections.abc import Iterator, Sequence

from soperator_pulumi.policy.definition import Circumstances, Finding, PolicySettings, StackPolicy, not_known
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.object_relations import running_cron_jobs, stateful_sets, without_companion
from soperator_pulumi.policy.pod_view import pods_of
from soperator_pulumi.policy.value_tree import UNKNOWN, look, mapped
from soperator_pulumi.policy.view import ResourceView
from soperator_pulumi.render.layout import CONTAINERS_FILE, HOOKS_FILE
from soperator_pulumi.spec.gpus import Vendor
from soperator_pulumi.spec.health_checks import DEFAULTS, Needs

_CONFIG_MAP = "health"
_DRAINING = ("drain", "drain_and_replace")
_OF_GPUS = {name.value for name, check in DEFAULTS.items() if check.needs in {Needs.NVIDIA, Needs.WHOLE_GPUS}}


def _draining(resources: Sequence[ResourceView], _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    with_gpus = {*_of_nvidia(resources)}
    for resource in resources:
        if not resource.acts_as("ConfigFiles") or resource.input("name") != _CONFIG_MAP:
            continue
        files = resource.input("files")
        if files is UNKNOWN:
            yield not_known(resource, ("files",))
        for name, text in mapped(files).items():
            node_set = name.removesuffix(".json")
            if name in {node_set, HOOKS_FILE, CONTAINERS_FILE}:
                continue
            if not isinstance(text, str):
                yield not_known(resource, ("files", name))
            elif not (found := _drains(text)):
                yield Finding(
                    resource, ("files", name), f'no quick check drains nodes of "{node_set}": jobs land on bad nodes'
                )
            elif (str(resource.namespace), node_set) in with_gpus and not found & _OF_GPUS:
                yield Finding(
                    resource, ("files", name), f'no check of GPUs drains nodes of "{node_set}": jobs land on bad GPUs'
                )


def _of_nvidia(resources: Sequence[ResourceView]) -> Iterator[tuple[str, str]]:
    """Yield the namespaces and names of node sets whose pods have NVIDIA GPUs. There are no checks of others."""
    for resource in stateful_sets(resources, "NodeSet"):
        limits = (
            limit
            for pod in pods_of(resource)
            for _, container in pod.containers()
            for limit in mapped(look(container, "resources", "limits"))
        )
        if any(limit.startswith(f"{Vendor.NVIDIA}/") for limit in limits):
            yield str(resource.namespace), str(look(resource.props, "metadata", "name"))


def _drains(text: str) -> frozenset[str]:
    """Return the names of the checks in a node set's settings that drain."""
    try:
        checks = mapped(mapped(json.loads(text)).get("checks"))
    except ValueError:
        return frozenset()
    return frozenset(name for name, check in checks.items() if look(check, "action") in _DRAINING)


def _measured(resources: Sequence[ResourceView], _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    without = without_companion(stateful_sets(resources, "Controller"), running_cron_jobs(resources, "HealthChecks"))
    for stateful_set in without:
        yield Finding(
            stateful_set, (), "no long check measures the nodes of this cluster: a slow node stays in service"
        )


HEALTH_CHECKS = StackPolicy(
    name="health-checks",
    description="In every node set, quick checks drain bad nodes, and those of GPUs nodes with bad GPUs.",
    violated_by="`health.enabled: false`; a node set whose checks, or whose checks of GPUs, are all off, or only log",
    cure="Leave health at its default, or give some of health.checks the action drain, checks of GPUs among them.",
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
