"""Kinds of other projects' operators, which the API server must serve before their objects are applied.

The check reads the server's own list of an API, which every user may do (ClusterRole `system:discovery`), and not the
definitions.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from soperator_pulumi.errors import Problem
from soperator_pulumi.kube.verbs import Kube


@dataclass(frozen=True)
class Operator:
    """An operator that provides kinds."""

    title: str
    part: str
    """Key of the platform that installs it."""


_PROMETHEUS = Operator("Prometheus' operator", "kube_prometheus_stack")
_MARIADB = Operator("MariaDB's operator", "mariadb_operator")

OPERATORS = {"monitoring.coreos.com": _PROMETHEUS, "k8s.mariadb.com": _MARIADB}
"""Operators by the group of their kinds."""

_WITHOUT = {
    "podmonitors.monitoring.coreos.com": "set metrics.pod_monitor: false",
    "prometheusrules.monitoring.coreos.com": "leave out metrics.alerts",
    "mariadbs.k8s.mariadb.com": "choose another database",
}
"""Alternative to a kind, by the name of its definition."""


def custom_kind_problems(kube: Kube, path: str, definition: str, version: str) -> Iterator[Problem]:
    """Yield a problem if the server does not serve a kind.

    Args:
        kube: The Kubernetes.
        path: Field of the spec that needs the kind.
        definition: Name of the CustomResourceDefinition: `podmonitors.monitoring.coreos.com`.
        version: Version of its objects.
    """
    plural, _, group = definition.partition(".")
    served = (kube.get(f"/apis/{group}/{version}") or {}).get("resources", [])
    if plural in {item["name"] for item in served}:
        return
    operator = OPERATORS[group]
    yield Problem(
        path,
        f"needs {operator.title}, but the API server knows no {definition} ({version}). Install it "
        f"(platform.{operator.part} does), or {_WITHOUT[definition]}. If the program itself installs it in another "
        f"way, before the cluster, give the cluster platform: {{{operator.part}: true}}.",
    )
