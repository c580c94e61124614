"""Readiness rules of pulumi-kubernetes for objects, without the waiting.

A rule takes an object and related ones, and returns its readiness, with a message if something is missing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Object = Mapping[str, Any]

SERVICE_SETTLE_SECONDS = 10.0
"""Time without a change after which pulumi-kubernetes trusts a Service's endpoints."""


@dataclass(frozen=True)
class Readiness:
    """Readiness of an object: if not ready, what is missing, and `failed` if that is final."""

    ready: bool
    message: str = ""
    failed: bool = False


@dataclass(frozen=True, kw_only=True)
class RuleInput:
    """Input of a rule, in addition to the object.

    Attributes:
        before: Object before the update; None after a create.
        related: ReplicaSets, claims, Endpoints or StorageClass of the object.
        quiet_seconds: Time without a change of the related objects.
    """

    before: Object | None = None
    related: Sequence[Object] = field(default_factory=list)
    quiet_seconds: float = 0.0


def _get(obj: Object, *path: str, default: Any = None) -> Any:  # noqa: ANN401 - as in the object
    value: Any = obj
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return default if value is None else value


def _condition(obj: Object, kind: str) -> Object:
    return next((c for c in _get(obj, "status", "conditions", default=[]) if c.get("type") == kind), {})


def _observed(obj: Object) -> bool:
    return bool(_get(obj, "status", "observedGeneration", default=0) >= _get(obj, "metadata", "generation", default=1))


def stateful_set(obj: Object, _: RuleInput) -> Readiness:
    """Require all replicas to be ready and of one revision. With OnDelete, the revision counts only after a create."""
    if not _observed(obj):
        return Readiness(False, "waiting for the StatefulSet's controller")
    status = _get(obj, "status", default={})
    wanted = _get(obj, "spec", "replicas", default=1)
    there, ready = status.get("replicas", 0), status.get("readyReplicas", 0)
    message = f"{min(ready, wanted)} of {wanted} pods are ready"
    on_delete = _get(obj, "spec", "updateStrategy", "type") == "OnDelete"
    if on_delete and _get(obj, "metadata", "generation", default=1) > 1:
        return Readiness(there == ready == wanted, message)
    revision = status.get("currentRevision")
    if not revision or revision != status.get("updateRevision"):
        updated = status.get("updatedReplicas", 0)
        return Readiness(False, f"{min(updated, ready)} of {wanted} pods are updated and ready")
    return Readiness(there == ready == status.get("currentReplicas", 0) == wanted, message)


def deployment(obj: Object, evidence: RuleInput) -> Readiness:
    """Require availability, all pods of the newest ReplicaSet ready, and bound claims."""
    if not _observed(obj):
        return Readiness(False, "waiting for the Deployment's controller")
    revision = _revision(obj)
    sets = [o for o in evidence.related if o["kind"] == "ReplicaSet" and _owned(o, obj) and _revision(o) == revision]
    if not revision or not sets:
        return Readiness(False, "waiting for its ReplicaSet")
    wanted = _get(sets[0], "spec", "replicas", default=1)
    ready = _get(sets[0], "status", "readyReplicas", default=0)
    if ready < wanted:
        return Readiness(False, f"{ready} of {wanted} pods are ready")
    for condition, reason in (("Available", None), ("Progressing", "NewReplicaSetAvailable")):
        found = _condition(obj, condition)
        if condition == "Progressing" and revision == "1":
            continue
        if found.get("status") != "True" or (reason and found.get("reason") != reason):
            return Readiness(False, found.get("message") or f"waiting until it is {condition}")
    claims = [o for o in evidence.related if o["kind"] == "PersistentVolumeClaim"]
    unbound = [o["metadata"]["name"] for o in claims if _get(o, "status", "phase") != "Bound"]
    return Readiness(not unbound, f"claims are not bound: {', '.join(unbound)}")


def _revision(obj: Object) -> str:
    return str(_get(obj, "metadata", "annotations", "deployment.kubernetes.io/revision", default=""))


def _owned(obj: Object, owner: Object) -> bool:
    uid = _get(owner, "metadata", "uid")
    return any(o.get("uid") == uid for o in _get(obj, "metadata", "ownerReferences", default=[]))


def daemon_set(obj: Object, _: RuleInput) -> Readiness:
    """Require an updated and available pod on every selected node, even with OnDelete."""
    status = _get(obj, "status", default={})
    if not _observed(obj) or "desiredNumberScheduled" not in status:
        return Readiness(False, "waiting for the DaemonSet's controller")
    wanted = status["desiredNumberScheduled"]
    counts = ("currentNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady")
    least = min(status.get(name, 0) for name in counts)
    return Readiness(least >= wanted, f"{least} of {wanted} pods are updated and ready")


def pod(obj: Object, _: RuleInput) -> Readiness:
    """Require a pod scheduled, initialized, and ready or succeeded."""
    if _get(obj, "status", "phase") == "Succeeded":
        return Readiness(True)
    for name, text in (
        ("PodScheduled", "scheduled"),
        ("Initialized", "initialized"),
        ("Ready", "ready"),
    ):
        condition = _condition(obj, name)
        if condition.get("status") != "True":
            return Readiness(False, condition.get("message") or f"waiting until it is {text}")
    return Readiness(True)


def job(obj: Object, _: RuleInput) -> Readiness:
    """Require completion. A Job that has used up its retries or its time has failed for good."""
    failed = _condition(obj, "Failed")
    if failed.get("status") == "True" and failed.get("reason") in {"BackoffLimitExceeded", "DeadlineExceeded"}:
        return Readiness(False, f"{failed['reason']}: {failed.get('message', '')}", failed=True)
    status = _get(obj, "status", default={})
    counts = ", ".join(f"{status.get(name, 0)} {name}" for name in ("active", "succeeded", "failed"))
    done = "startTime" in status and _condition(obj, "Complete").get("status") == "True"
    return Readiness(done, f"its pods: {counts}")


def service(obj: Object, evidence: RuleInput) -> Readiness:
    """Require settled endpoints, none of them unready, and the address of a LoadBalancer."""
    spec = _get(obj, "spec", default={})
    balancer = spec.get("type") == "LoadBalancer"
    if balancer and not _get(obj, "status", "loadBalancer", "ingress"):
        return Readiness(False, "no address was allocated yet; does this cluster have load balancers?")
    if spec.get("type") == "ExternalName" or spec.get("clusterIP") == "None" or not spec.get("selector"):
        return Readiness(True)
    waiting = any(s.get("notReadyAddresses") for o in evidence.related for s in o.get("subsets") or [])
    if waiting:
        return Readiness(False, "some of the pods that it selects are not ready")
    settled = bool(evidence.related) and evidence.quiet_seconds >= SERVICE_SETTLE_SECONDS
    return Readiness(settled, f"letting its endpoints settle for {SERVICE_SETTLE_SECONDS:.0f} s")


def claim(obj: Object, evidence: RuleInput) -> Readiness:
    """Require that the claim is bound, or that its first pod will bind it."""
    phase = _get(obj, "status", "phase", default="")
    waits = any(o.get("volumeBindingMode") == "WaitForFirstConsumer" for o in evidence.related)
    return Readiness(phase == "Bound" or (waits and phase == "Pending"), f"it is {phase or 'new'}, not Bound")


def volume(obj: Object, _: RuleInput) -> Readiness:
    """Require an available or bound volume."""
    phase = _get(obj, "status", "phase", default="")
    return Readiness(phase in {"Available", "Bound"}, f"it is {phase or 'new'}")


def quota(obj: Object, _: RuleInput) -> Readiness:
    """Require the limits in the status."""
    return Readiness(_get(obj, "status", "hard") == _get(obj, "spec", "hard"), "waiting for its controller")


def secret(obj: Object, _: RuleInput) -> Readiness:
    """Require the data of a service account's token."""
    token = obj.get("type") == "kubernetes.io/service-account-token"
    return Readiness(not token or bool(obj.get("data")), "waiting for its token")


Rule = Callable[[Object, RuleInput], Readiness]

RULES: Mapping[tuple[str, str], Rule] = {
    ("apps/v1", "DaemonSet"): daemon_set,
    ("apps/v1", "Deployment"): deployment,
    ("apps/v1", "StatefulSet"): stateful_set,
    ("batch/v1", "Job"): job,
    ("v1", "PersistentVolume"): volume,
    ("v1", "PersistentVolumeClaim"): claim,
    ("v1", "Pod"): pod,
    ("v1", "ResourceQuota"): quota,
    ("v1", "Secret"): secret,
    ("v1", "Service"): service,
}
"""Rules by kind; all other kinds are ready once the API server has them."""
