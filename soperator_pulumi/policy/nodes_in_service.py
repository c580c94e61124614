"""Policies on nodes in service: checks drain bad ones before jobs land on them, and a deployment keeps most of them."""

import json
from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import TypeAdapter, ValidationError, WithJsonSchema

from soperator_pulumi.policy.definition import (
    Circumstances,
    Finding,
    PolicySettings,
    ResourcePolicy,
    StackPolicy,
    not_known,
)
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.object_relations import running_cron_jobs, stateful_sets, without_companion
from soperator_pulumi.policy.pod_view import pods_of
from soperator_pulumi.policy.value_tree import UNKNOWN, look, mapped, snake_keys, whole_number
from soperator_pulumi.policy.view import ResourceView
from soperator_pulumi.render.layout import CONTAINERS_FILE, HOOKS_FILE
from soperator_pulumi.spec.gpus import Vendor
from soperator_pulumi.spec.health_checks import DEFAULTS, Needs
from soperator_pulumi.spec.types.int_or_percent import Share

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


_SHARE = TypeAdapter(Share)


class ServiceSettings(PolicySettings):
    """Settings of `nodes-in-service`."""

    at_most: Annotated[Share, WithJsonSchema({"type": ["integer", "string"]})] = Share(50, percent=True)
    """Nodes that a deployment may take out of service or lack, as a number or a percentage of the node set. Default: 50
    %. A rolling update may recreate one node at a time in any case."""


def _out_of_service(resource: ResourceView, _run: Circumstances, settings: ServiceSettings) -> Iterator[Finding]:
    if not resource.acts_as("NodesReady"):
        return
    nodes = whole_number(resource.input("replicas"))
    update, unready = snake_keys(resource.input("rolling_update")), resource.input("max_unready")
    if nodes is None or UNKNOWN in (unready, update, look(update, "max_unavailable")):
        yield not_known(resource, ("replicas",))
        return
    try:
        missing = _SHARE.validate_python(unready).of(nodes)
        recreated = _SHARE.validate_python(look(update, "max_unavailable")).of(nodes)
    except ValidationError:
        return  # the component refuses it
    allowed = settings.at_most.of(nodes)
    if missing > allowed:
        text = f"{missing} of {nodes} nodes may be missing at the end, at most {allowed} are allowed"
        yield Finding(resource, ("max_unready",), text)
    if recreated > max(1, allowed):
        where = ("rolling_update", "max_unavailable")
        text = f"{recreated} of {nodes} nodes may be out of service at once, at most {max(1, allowed)} are allowed"
        yield Finding(resource, where, text)


NODES_IN_SERVICE = ResourcePolicy(
    name="nodes-in-service",
    description="A deployment keeps most nodes of a node set in service, and fails without them.",
    violated_by="`max_unready` or `rolling_update.max_unavailable` above `at_most`, such as `100%`",
    cure="Lower node_sets[].max_unready and rolling_update.max_unavailable. For machines that "
    "an autoscaler brings, raise ready_timeout_seconds, or set wait_until_ready to false.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("jobs", "availability"),
    settings=ServiceSettings,
    check=_out_of_service,
)
