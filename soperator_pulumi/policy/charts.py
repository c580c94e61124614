"""Policies on charts and operators: one version, reasons for privileged namespaces, no driver changed on its own."""

import re
from collections.abc import Iterator, Mapping

from pydantic import Field

from soperator_pulumi.policy.definition import Circumstances, Finding, PolicySettings, ResourcePolicy, not_known
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.stack_rules import Reason
from soperator_pulumi.policy.value_tree import UNKNOWN, Path, look
from soperator_pulumi.policy.view import CLUSTER_PART, ResourceView

REASON_ANNOTATION = "soperator-pulumi/privileged-because"
"""Annotation that holds the reason for privileged pods, on namespaces of a platform and of users."""

_ENFORCE = "pod-security.kubernetes.io/enforce"
_ONE_VERSION = re.compile(r"v?\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_CHARTS = ("helm.sh/v3:Release", "helm.sh/v3:Chart", "helm.sh/v4:Chart")
_DIGEST = "@sha256:"


def _charts(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    if resource.type.removeprefix("kubernetes:") not in _CHARTS:
        return
    chart, version = look(resource.props, "chart"), look(resource.props, "version")
    if chart is None and version is None:  # a v3 Chart renders in the program, and registers none of its arguments
        yield Finding(resource, ("version",), "not among its inputs, so no policy can see which version is installed")
    elif UNKNOWN in (chart, version):
        yield not_known(resource, ("version",))
    elif version is None and not _is_fixed(str(chart), resource):
        yield Finding(resource, ("version",), "missing: the repository decides which version is installed")
    elif version is not None and not _ONE_VERSION.fullmatch(str(version)):
        yield Finding(resource, ("version",), "a range: the repository decides which version is installed")


def _is_fixed(chart: str, resource: ResourceView) -> bool:
    """Return True for a chart in a file, which has one version, and for a chart with a digest.

    Without such a file, Helm reads `a/b` as the chart b of the repository a.
    """
    if chart.startswith("oci://"):
        return _DIGEST in chart
    in_repository = look(resource.props, "repositoryOpts", "repo") is not None
    return not in_repository and (chart.startswith(("/", "./", "../")) or chart.endswith(".tgz"))


PINNED_CHARTS = ResourcePolicy(
    name="pinned-charts",
    description="Helm charts have an exact version.",
    violated_by="a `Release` or `Chart` without `version`, or with a range such as `^1.2`; a `Chart` of helm/v3, "
    "which shows no version",
    cure="Give the version of the chart, such as 1.21.2, or a chart in a file: ./charts/name. Replace a Chart of "
    "helm/v3 with a Release, or with a Chart of helm/v4.",
    levels=levels("advisory", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("charts", "supply chain"),
    check=_charts,
)


class PrivilegedNamespaceSettings(PolicySettings):
    """Settings of `privileged-namespaces`."""

    allowed: dict[str, Reason] = Field(default_factory=dict)
    """Namespaces whose pods may be privileged, with the reasons. Default: only those of clusters, whose containers are
    not privileged, and those with the annotation `soperator-pulumi/privileged-because`."""


def _namespaces(
    resource: ResourceView, _run: Circumstances, settings: PrivilegedNamespaceSettings
) -> Iterator[Finding]:
    if (
        not resource.is_kubernetes
        or resource.kind != "Namespace"
        or resource.is_made_by(CLUSTER_PART, suffix="-namespace")
    ):
        return
    level = look(resource.labels, _ENFORCE)
    where = ("metadata", "labels", _ENFORCE)
    if UNKNOWN in (resource.labels, level):
        yield not_known(resource, where)
    elif level == "privileged":
        reason = look(resource.props, "metadata", "annotations", REASON_ANNOTATION)
        name = look(resource.props, "metadata", "name")
        if reason is UNKNOWN:
            yield not_known(resource, where)
        elif not str(reason or "").strip() and str(name) not in settings.allowed:
            yield Finding(resource, where, "pods of this namespace may be privileged, and no reason is given")


PRIVILEGED_NAMESPACES = ResourcePolicy(
    name="privileged-namespaces",
    description="Only namespaces of operators that need it allow privileged pods, and they state the reason.",
    violated_by="a Namespace with `pod-security.kubernetes.io/enforce: privileged` and without the annotation "
    "`soperator-pulumi/privileged-because`",
    cure="Enforce the level baseline or restricted; or give the reason in the annotation "
    "soperator-pulumi/privileged-because of the namespace, or in the settings of this policy.",
    levels=levels("advisory", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("namespaces", "security"),
    settings=PrivilegedNamespaceSettings,
    check=_namespaces,
)


_SWITCH = ("upgradePolicy", "autoUpgrade")
"""Path of the setting that upgrades a driver automatically, within the driver's settings in values and custom resources
of NVIDIA's GPU Operator and Network Operator."""

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
    drivers, chart = dict(_drivers(resource.props, ())), look(resource.props, "chart")
    if resource.is_chart and isinstance(chart, str) and _GPU_OPERATOR.fullmatch(chart):
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
