"""Parts that a cloud or a chart brings: load balancers, CSI drivers, and a quota for critical pods."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from soperator_pulumi.kube.verbs import Json, Kube
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, passed, warned

CHECK = "load balancer"

CRITICAL = "system-node-critical"
"""Class of the GPU Operator's pods."""

_LABEL_OF_GKE = "cloud.google.com/gke-nodepool"
"""Label of all machines of GKE."""

_BALANCER = "LoadBalancer"

_DRIVERS = "/apis/storage.k8s.io/v1/csidrivers"


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


def load_balancer_findings(kube: Kube, planned: Sequence[Json]) -> Iterator[Diagnosis]:
    """Yield a warning if a Service of the type is planned, and no existing one has an address."""
    for wanted in planned:
        if wanted["spec"].get("type") == _BALANCER:
            yield _balancer_finding(wanted, kube.find("/api/v1/services"))


def _balancer_finding(wanted: Json, services: Sequence[Json]) -> Diagnosis:
    balanced = [service for service in services if service["spec"].get("type") == _BALANCER]
    served = [entry for entry in balanced if entry.get("status", {}).get("loadBalancer", {}).get("ingress")]
    place = f"{wanted['metadata']['name']}.service"
    if served:
        return passed(CHECK, place, f"{len(served)} Services of type {_BALANCER} have an address")
    others = f"none of {len(balanced)} Services of the type has" if balanced else "no other Service of the type has"
    return warned(
        CHECK,
        place,
        f"got {_BALANCER}, but {others} an address here",
        "a controller that gives Services an address",
        "Install one (that of the cloud, MetalLB, Cilium), or set login.service to NodePort or ClusterIP.",
    )


def missing_drivers(kube: Kube, drivers: Collection[str]) -> Iterator[Diagnosis]:
    """Yield a warning for every driver without a CSIDriver. A chart of the same program may install it.

    Args:
        kube: The Kubernetes.
        drivers: Names of drivers.
    """
    for driver in drivers:
        if kube.get(f"{_DRIVERS}/{driver}") is None:
            yield warned(
                "prerequisites",
                f"CSIDriver {driver}",
                "missing, so its volumes are neither created nor mounted",
                f"the CSI driver {driver}",
                "Install it before the cluster (docs/storage.md has its name), unless the program itself does.",
            )
