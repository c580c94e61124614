"""Load balancers: a Service of that type waits indefinitely if nothing assigns an address to it."""

from collections.abc import Iterator, Sequence

from soperator_pulumi.kube.verbs import Json, Kube
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, passed, warned

CHECK = "load balancer"

_TYPE = "LoadBalancer"


def load_balancer_findings(kube: Kube, planned: Sequence[Json]) -> Iterator[Diagnosis]:
    """Yield a warning if a Service of the type is planned, and no existing one has an address."""
    for wanted in planned:
        if wanted["spec"].get("type") == _TYPE:
            yield _judged(wanted, kube.find("/api/v1/services"))


def _judged(wanted: Json, services: Sequence[Json]) -> Diagnosis:
    balanced = [service for service in services if service["spec"].get("type") == _TYPE]
    served = [entry for entry in balanced if entry.get("status", {}).get("loadBalancer", {}).get("ingress")]
    place = f"{wanted['metadata']['name']}.service"
    if served:
        return passed(CHECK, place, f"{len(served)} Services of type {_TYPE} have an address")
    others = f"none of {len(balanced)} Services of the type has" if balanced else "no other Service of the type has"
    return warned(
        CHECK,
        place,
        f"got {_TYPE}, but {others} an address here",
        "a controller that gives Services an address",
        "Install one (that of the cloud, MetalLB, Cilium), or set login.service to NodePort or ClusterIP.",
    )
