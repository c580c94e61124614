"""Policy on operators that load drivers: none of them changes a machine's driver on its own."""

import re
from collections.abc import Iterator, Mapping

from soperator_pulumi.policy.definition import Circumstances, Finding, PolicySettings, ResourcePolicy, not_known
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.value_tree import UNKNOWN, Path, look
from soperator_pulumi.policy.view import ResourceView

_SWITCH = ("upgradePolicy", "autoUpgrade")
"""Path of the switch below a driver of NVIDIA's GPU Operator or Network Operator, in values and custom resources."""

_GPU_OPERATOR = re.compile(r"(?:.*/)?gpu-operator(?:-v?\d[^/]*\.tgz|[@:].*)?/?")
_OF_GPU_OPERATOR = ("values", "driver")
"""Path of the chart's driver, which upgrades on its own unless the values turn that off:
https://github.com/NVIDIA/gpu-operator/blob/main/deployments/gpu-operator/values.yaml."""


_SUBSCRIPTION = "operators.coreos.com/"
"""Group of Subscriptions, by which OpenShift's Operator Lifecycle Manager installs an operator and its upgrades:
https://olm.operatorframework.io/docs/concepts/crds/subscription/#manually-approving-upgrades-via-subscriptions."""

_LOADS_DRIVERS = re.compile(r"(?<!sriov-)(gpu|network)-operator")


def _upgrades(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    yield from _approved(resource)
    if not (resource.is_chart or resource.is_custom):
        return
    drivers = dict(_drivers(resource.props, ()))
    if _is_gpu_operator(resource):
        drivers.setdefault(_OF_GPU_OPERATOR, look(resource.props, *_OF_GPU_OPERATOR))
    for path, driver in drivers.items():
        given, where = look(driver, *_SWITCH), (*path, *_SWITCH)
        if _is_off(look(driver, "enabled")) or _is_off(given):
            continue
        if given is UNKNOWN:
            yield not_known(resource, where)
        elif given is not None or path == _OF_GPU_OPERATOR:
            missing = "missing, and true by the chart's default: " if given is None else ""
            yield Finding(resource, where, f"{missing}a new driver evicts pods, slurmd's among them, while jobs run")


def _approved(resource: ResourceView) -> Iterator[Finding]:
    """Yield the approval of a Subscription if it upgrades an operator, and so its drivers, without a person."""
    name = look(resource.props, "spec", "name")
    is_subscription = resource.kind == "Subscription" and f":{_SUBSCRIPTION}" in resource.type
    if not is_subscription or not (name is UNKNOWN or _LOADS_DRIVERS.search(str(name))):
        return
    given, where = look(resource.props, "spec", "installPlanApproval"), ("spec", "installPlanApproval")
    if given is UNKNOWN or (name is UNKNOWN and given != "Manual"):
        yield not_known(resource, where)
    elif given != "Manual":
        missing = "" if given else "missing, and Automatic by default: "
        yield Finding(
            resource,
            where,
            f"{missing}a new operator may bring a new driver, and restarts its pods on the machines while jobs run",
        )


def _drivers(value: object, path: Path) -> Iterator[tuple[Path, object]]:
    """Yield every part of a tree of values that has an upgrade policy, with its path."""
    if isinstance(value, Mapping):
        if _SWITCH[0] in value:
            yield path, value
        for key, item in value.items():
            yield from _drivers(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _drivers(item, (*path, index))


def _is_gpu_operator(resource: ResourceView) -> bool:
    chart = look(resource.props, "chart")
    return resource.is_chart and isinstance(chart, str) and bool(_GPU_OPERATOR.fullmatch(chart))


def _is_off(value: object) -> bool:
    """Return True for a value that YAML reads as off."""
    return value is False or (isinstance(value, str) and value.strip().lower() == "false")


DRIVER_UPGRADES = ResourcePolicy(
    name="driver-upgrades",
    description="No operator changes the driver of a machine on its own.",
    violated_by="`gpu_operator.values.driver.upgradePolicy.autoUpgrade: true`; the chart gpu-operator without "
    "`autoUpgrade: false`; a ClusterPolicy, NVIDIADriver or NicClusterPolicy with `autoUpgrade: true`; a Subscription "
    "of such an operator without `installPlanApproval: Manual`",
    cure="Set upgradePolicy.autoUpgrade to false and a Subscription's installPlanApproval to Manual, and recreate the "
    "nodes for a new driver: docs/platform.md.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("jobs", "availability"),
    check=_upgrades,
)
