"""Policies on charts: releases have one version, and namespaces with privileged pods have a reason."""

import re
from collections.abc import Iterator

from pydantic import Field

from soperator_pulumi.policy.definition import Circumstances, Finding, PolicySettings, ResourcePolicy, not_known
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.stack_rules import Reason
from soperator_pulumi.policy.value_tree import UNKNOWN, look
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
