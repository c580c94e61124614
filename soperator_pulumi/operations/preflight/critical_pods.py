"""Pods of a critical priority class, which GKE admits outside of kube-system only under a quota for them."""

from collections.abc import Iterator, Mapping, Sequence

from soperator_pulumi.kube.verbs import Json, Kube
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, warned

CRITICAL = "system-node-critical"
"""Class of the GPU Operator's pods."""

_LABEL_OF_GKE = "cloud.google.com/gke-nodepool"
"""Label of all machines of GKE."""


def critical_pod_findings(kube: Kube, namespaces: Sequence[str], machines: Sequence[Json]) -> Iterator[Diagnosis]:
    """Yield a warning for each namespace in which GKE would admit none of the GPU Operator's pods.

    Args:
        kube: The Kubernetes.
        namespaces: Namespaces in which the program installs the operator without such a quota.
        machines: All machines.
    """
    if not any(_LABEL_OF_GKE in (machine["metadata"].get("labels") or {}) for machine in machines):
        return
    for namespace in namespaces:
        if not any(map(admits_critical_pods, kube.find(f"/api/v1/namespaces/{namespace}/resourcequotas"))):
            yield warned(
                "prerequisites",
                f"Namespace {namespace}",
                f"has no ResourceQuota for pods of the class {CRITICAL}, so that GKE creates none of the GPU Operator",
                f"a ResourceQuota with the scope PriorityClass {CRITICAL}",
                "Make it before the cluster, or in the program (docs/kubernetes.md, GKE, has it).",
            )


def admits_critical_pods(quota: Mapping[str, Json]) -> bool:
    """Return True if a ResourceQuota is about pods of the class, and allows some."""
    spec = quota.get("spec") or {}
    scopes = (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    allowed = (spec.get("hard") or {}).get("pods")
    return str(allowed) != "0" and any(
        scope.get("scopeName") == "PriorityClass"
        and (scope.get("operator") == "Exists" or CRITICAL in (scope.get("values") or []))
        and scope.get("operator") in {"In", "Exists"}
        for scope in scopes
    )
