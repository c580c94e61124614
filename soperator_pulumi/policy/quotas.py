"""Policy on the number of GPUs."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Annotated

from pydantic import Field, WithJsonSchema

from soperator_pulumi.policy.definition import Circumstances, Finding, PolicySettings, StackPolicy, not_known
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.pod_view import PodView, pods_of
from soperator_pulumi.policy.value_tree import UNKNOWN, Path, look, mapped, whole_number
from soperator_pulumi.policy.view import ResourceView
from soperator_pulumi.spec.types.quantity import amount
from soperator_pulumi.spec.validation.base import whole

_NONE = Decimal(0)

_COUNTS = {
    "StatefulSet": ("spec", "replicas"),
    "Deployment": ("spec", "replicas"),
    "ReplicaSet": ("spec", "replicas"),
    "Job": ("spec", "parallelism"),
    "CronJob": ("spec", "jobTemplate", "spec", "parallelism"),
}
"""Paths to the number of pods. A DaemonSet counts as one pod, as do custom resources: the stack has no number."""


class QuotaSettings(PolicySettings):
    """Settings of `gpu-quota`."""

    limit: Annotated[Annotated[int, whole(0)] | None, WithJsonSchema({"type": ["integer", "null"], "minimum": 0})] = (
        None
    )
    """Largest number of GPUs for all pods of the stack together; 0 allows none. Default: no quota."""
    resources: Annotated[tuple[str, ...], Field(min_length=1)] = ("gpu", "/mig-")
    """Parts of the names of extended resources that count as GPUs: `gpu` is in `nvidia.com/gpu` and `amd.com/gpu`."""


def _gpus(resources: Sequence[ResourceView], run: Circumstances, settings: QuotaSettings) -> Iterator[Finding]:
    if settings.limit is None:
        return
    objects: dict[tuple[str, ...], list[ResourceView]] = {}
    for resource in resources:
        if not resource.is_chart and (resource.kind in _COUNTS or any(pods_of(resource))):
            yield from _unclear(resource, settings.resources)
            objects.setdefault(_object(resource), []).append(resource)
    used: dict[str, Decimal] = {}
    scaled = _scaled(resources)
    for key, parts in [(key, quota) for key, found in objects.items() for quota in _one_by_one(found)]:
        first, counts = parts[0], [_number(look(part.props, *_count_path(part))) for part in parts]
        need = max(sum((_of_pods(pod, settings.resources) for pod in pods_of(part)), _NONE) for part in parts)
        counts.append(scaled.get(key))
        if any(counts) and not need and all(part.is_patch for part in parts):
            yield Finding(first, _count_path(first), "scales pods whose GPUs are not in this stack")
        pods = max((count for count in counts if count is not None), default=Decimal(1))
        if need * pods:
            used[first.name] = used.get(first.name, _NONE) + need * pods
    total = sum(used.values(), _NONE)
    if total > settings.limit:
        parts_of_total = ", ".join(f"{name} {count:f}" for name, count in sorted(used.items()))
        text = f"{total:f} GPUs, at most {settings.limit} are allowed in {run.environment} ({parts_of_total})"
        yield Finding(None, (), text)


def _one_by_one(found: Sequence[ResourceView]) -> list[list[ResourceView]]:
    """Return the objects with the same name, as in two Kubernetes clusters, with the patches that may apply to them."""
    patches = [quota for quota in found if quota.is_patch]
    return [[quota, *patches] for quota in found if not quota.is_patch] or [patches]


def _scaled(resources: Sequence[ResourceView]) -> dict[tuple[str, ...], Decimal | None]:
    """Return the maximum that a HorizontalPodAutoscaler sets for the object that it scales, by object."""
    return {
        (str(look(target, "kind")), str(resource.namespace), str(look(target, "name"))): _number(most)
        for resource in resources
        if resource.is_kubernetes and resource.kind == "HorizontalPodAutoscaler"
        for target, most in [
            (look(resource.props, "spec", "scaleTargetRef"), look(resource.props, "spec", "maxReplicas"))
        ]
    }


def _of_pods(pod: PodView, counted: Sequence[str]) -> Decimal:
    """Return the GPUs of all pods: a pod's GPUs, times the replicas in the custom resource around the template."""
    gpus = _per_pod(pod, counted)
    if pod.resource.kind in _COUNTS:
        return gpus
    for depth in range(2, len(pod.path)):  # `spec.replicas` is counted with the workloads
        for name in ("replicas", "parallelism"):
            number = _number(look(pod.resource.props, *pod.path[:depth], name))
            gpus *= Decimal(1) if number is None else number
    return gpus


def _object(resource: ResourceView) -> tuple[str, ...]:
    """Return the key that an object shares with its patches."""
    name = look(resource.props, "metadata", "name")
    return (
        (resource.kind, str(resource.namespace), name)
        if isinstance(name, str)
        else (resource.urn, *map(str, resource.place))
    )


def _unclear(resource: ResourceView, counted: Sequence[str]) -> Iterator[Finding]:
    """Yield findings about unknown and invalid numbers. They count as 0 GPUs, and as one pod."""
    numbers = [(_count_path(resource), look(resource.props, *_count_path(resource)))]
    for pod in pods_of(resource):
        yield from (not_known(resource, path) for path in pod.unknown())
        for path, container in pod.containers():
            limits = look(container, "resources", "limits")
            where = (*path, "resources", "limits")
            numbers += [(where, UNKNOWN)] if limits is UNKNOWN else []
            numbers += [((*where, name), limit) for name, limit in mapped(limits).items() if _in(name, counted)]
    for where, value in numbers:
        if value is UNKNOWN:
            yield not_known(resource, where)
        elif value is not None and _number(value) is None:
            yield Finding(resource, where, "not a number, so the quota cannot count it")


def _count_path(resource: ResourceView) -> Path:
    return _COUNTS.get(resource.kind, ("spec", "replicas"))


def _number(value: object) -> Decimal | None:
    """Return a Kubernetes quantity as a number; None for anything else."""
    try:
        return amount(value if isinstance(value, str) else str(whole_number(value))).normalize()
    except ValueError:
        return None


def _per_pod(pod: PodView, counted: Sequence[str]) -> Decimal:
    """Return the GPUs of one pod: the sum over its containers, or its largest init container if that has more."""
    running, starting = _NONE, _NONE
    for path, container in pod.containers():
        limits = mapped(look(container, "resources", "limits"))
        own = sum((_number(limit) or _NONE for name, limit in limits.items() if _in(name, counted)), _NONE)
        if path[-2] == "initContainers" and look(container, "restartPolicy") != "Always":
            starting = max(starting, own)
        else:
            running += own
    return max(running, starting)


def _in(name: str, counted: Sequence[str]) -> bool:
    return "/" in name and any(part in name for part in counted)


GPU_QUOTA = StackPolicy(
    name="gpu-quota",
    description="All pods of a stack together stay within the GPU quota of its environment.",
    violated_by="more GPUs (`nvidia.com/gpu`, `amd.com/gpu`, MIG) times replicas than `limit`",
    cure="Lower the replicas of a node set with GPUs, or raise the limit: "
    "soperator:policy: {settings: {gpu-quota: {limit: ...}}}.",
    levels=levels("mandatory", "mandatory", "mandatory", "mandatory"),
    severity=PolicySeverity.MEDIUM,
    tags=("cost",),
    settings=QuotaSettings,
    check=_gpus,
)
