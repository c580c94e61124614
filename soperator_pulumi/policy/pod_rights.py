"""Policies on the rights of pods: privileges, host namespaces, host paths, tokens of Kubernetes."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

from soperator_pulumi.policy.definition import Circumstances, Edit, Finding, PolicySettings, ResourcePolicy, not_known
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.stack_rules import Reason
from soperator_pulumi.policy.view import UNKNOWN, Path, PodView, ResourceView, listed, look, pods_of

_HOST_NAMESPACES = ("hostNetwork", "hostPID", "hostIPC")


def _privileged(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    for pod in pods_of(resource):
        yield from (not_known(resource, path) for path in pod.unknown())
        for name in _HOST_NAMESPACES:
            yield from _is_false(resource, (*pod.path, name), pod.spec.get(name))
        for path, container in pod.containers():
            context = (*path, "securityContext")
            for name in ("privileged", "allowPrivilegeEscalation"):
                value = look(container, "securityContext", name)
                yield from _is_false(resource, (*context, name), value)
            added = look(container, "securityContext", "capabilities", "add")
            if "ALL" in listed(added):
                yield Finding(resource, (*context, "capabilities", "add"), 'got "ALL", needs the capabilities by name')


def _is_false(resource: ResourceView, path: Path, value: object) -> Iterator[Finding]:
    if value is True:
        yield Finding(resource, path, "got true, needs false")
    elif value is UNKNOWN:
        yield not_known(resource, path)


PRIVILEGED_PODS = ResourcePolicy(
    name="privileged-pods",
    description="No container is privileged, and no pod has a namespace of its machine.",
    violated_by="`privileged`, `allowPrivilegeEscalation`, the capability `ALL`; `hostNetwork`, `hostPID`, `hostIPC`",
    cure="Give the container the capabilities that it needs.",
    levels=levels("mandatory", "mandatory", "mandatory", "mandatory"),
    severity=PolicySeverity.CRITICAL,
    tags=("pods", "security"),
    check=_privileged,
)


class HostPathSettings(PolicySettings):
    """Settings of `host-paths`."""

    allowed: dict[str, Reason] = Field(
        default_factory=lambda: {"/sys/fs/cgroup": "slurmd holds jobs to their resources (slurm.constrain: cgroup)"}
    )
    """Allowed paths, each with its reason. Default: `/sys/fs/cgroup`, by which slurmd holds jobs to their resources."""


def _host_paths(resource: ResourceView, _run: Circumstances, settings: HostPathSettings) -> Iterator[Finding]:
    for pod in pods_of(resource):
        for index, volume in enumerate(listed(look(pod.spec, "volumes"))):
            where = (*pod.path, "volumes", index, "hostPath")
            yield from _host_path(resource, where, look(volume, "hostPath"), settings.allowed)
    if resource.is_kubernetes and resource.kind == "PersistentVolume":
        for source in ("hostPath", "local"):
            where = ("spec", source)
            yield from _host_path(resource, where, look(resource.props, *where), settings.allowed)


def _host_path(resource: ResourceView, where: Path, source: object, allowed: Mapping[str, str]) -> Iterator[Finding]:
    path = look(source, "path")
    if UNKNOWN in (source, path):
        yield not_known(resource, where)
    elif isinstance(source, Mapping) and str(path) not in allowed:
        yield Finding(resource, (*where, "path"), "a directory of the machine, which no setting allows")


HOST_PATHS = ResourcePolicy(
    name="host-paths",
    description="No pod mounts a directory of its machine without a reason.",
    violated_by="a submount with `host_path`; a volume with `hostPath`; a PersistentVolume with `hostPath` or `local`",
    cure="Mount a claim, or allow the path with its reason: "
    "soperator:policy: {settings: {host-paths: {allowed: {<path>: <reason>}}}}.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("pods", "security"),
    settings=HostPathSettings,
    check=_host_paths,
)


def _tokens(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    for pod in pods_of(resource):
        path = (*pod.path, "automountServiceAccountToken")
        if _mounts_default_token(pod):
            yield Finding(resource, path, "needs false, as the pod has no service account of its own")


def _without_token(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Edit]:
    for pod in pods_of(resource):
        if _mounts_default_token(pod):
            yield Edit((*pod.path, "automountServiceAccountToken"), value=False)


def _mounts_default_token(pod: PodView) -> bool:
    account: Any = pod.spec.get("serviceAccountName")
    given = pod.spec.get("automountServiceAccountToken")
    return account in (None, "", "default") and given is not False and given is not UNKNOWN


SERVICE_ACCOUNT_TOKENS = ResourcePolicy(
    name="service-account-tokens",
    description="Pods without a service account of their own hold no token of Kubernetes.",
    violated_by="a pod without `serviceAccountName` and without `automountServiceAccountToken: false`",
    cure="Set automountServiceAccountToken to false, or give the pod a service account with the rights that it needs.",
    levels=levels("remediate", "remediate", "mandatory", "mandatory"),
    severity=PolicySeverity.MEDIUM,
    tags=("pods", "security"),
    check=_tokens,
    remediate=_without_token,
)
