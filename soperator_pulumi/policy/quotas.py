"""Policy on the number of GPUs."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field, WithJsonSchema

from soperator_pulumi.policy.definition import Circumstances, Finding, PolicySettings, StackPolicy, not_known
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.view import UNKNOWN, PodView, ResourceView, look, mapped, pods_of, whole_number
from soperator_pulumi.spec.validation.base import whole

_COUNTS = {
    "StatefulSet": ("spec", "replicas"),
    "Deployment": ("spec", "replicas"),
    "ReplicaSet": ("spec", "replicas"),
    "Job": ("spec", "parallelism"),
    "CronJob": ("spec", "jobTemplate", "spec", "parallelism"),
}
"""Numbers of pods. A DaemonSet counts as one pod, as do custom resources: their numbers are not in the stack."""


class QuotaSettings(PolicySettings):
    """Settings of `gpu-quota`."""

    limit: Annotated[Annotated[int, whole(0)] | None, WithJsonSchema({"type": ["integer", "null"], "minimum": 0})] = (
        None
    )
    """Most GPUs that all pods of the stack may have together; 0 allows none. Default: no quota."""
    resources: Annotated[tuple[str, ...], Field(min_length=1)] = ("gpu", "/mig-")
    """Parts of the names of extended resources that count: `gpu` is in `nvidia.com/gpu` and in `amd.com/gpu`."""


def _gpus(resources: Sequence[ResourceView], run: Circumstances, settings: QuotaSettings) -> Iterator[Finding]:
    if settings.limit is None:
        return
    used: dict[str, int] = {}
    for resource in resources:
        for pod in pods_of(resource):
            each, count = _per_pod(pod, settings.resources), _pods(resource)
            if each is None or count is None:
                yield not_known(resource, pod.path)
            elif each * count:
                used[resource.name] = used.get(resource.name, 0) + each * count
    total = sum(used.values())
    if total > settings.limit:
        parts = ", ".join(f"{name} {count}" for name, count in sorted(used.items()))
        text = f"{total} GPUs, at most {settings.limit} are allowed in {run.environment} ({parts})"
        yield Finding(None, (), text)


def _pods(resource: ResourceView) -> int | None:
    """Return the number of pods; None where it is not known."""
    found = look(resource.props, *_COUNTS.get(resource.kind, ("spec", "replicas")))
    return 1 if found is None else whole_number(found)


def _per_pod(pod: PodView, counted: Sequence[str]) -> int | None:
    """Return the GPUs of one pod: of its containers together, or of the init container with the most."""
    running, starting = 0, 0
    for path, container in pod.containers():
        limits = look(container, "resources", "limits")
        amounts = [whole_number(each) for name, each in mapped(limits).items() if _in(name, counted)]
        if limits is UNKNOWN or None in amounts:
            return None
        amount = sum(filter(None, amounts))
        if path[-2] == "initContainers" and look(container, "restartPolicy") != "Always":
            starting = max(starting, amount)
        else:
            running += amount
    return max(running, starting)


def _in(name: str, counted: Sequence[str]) -> bool:
    return "/" in name and any(part in name for part in counted)


GPU_QUOTA = StackPolicy(
    name="gpu-quota",
    description="All pods of a stack together have no more GPUs than its environment may.",
    violated_by="more GPUs (`nvidia.com/gpu`, `amd.com/gpu`, MIG) times replicas than `limit`",
    cure="Lower the replicas of a node set with GPUs, or raise the limit: "
    "soperator:policy: {settings: {gpu-quota: {limit: ...}}}.",
    levels=levels("mandatory", "mandatory", "mandatory", "mandatory"),
    severity=PolicySeverity.MEDIUM,
    tags=("cost",),
    settings=QuotaSettings,
    check=_gpus,
)
