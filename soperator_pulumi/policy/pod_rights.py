"""Policies on the rights of pods: privileges, host namespaces, host paths, tokens of Kubernetes."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

from soperator_pulumi.policy.definition import Circumstances, Edit, Finding, PolicySettings, ResourcePolicy, not_known
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.stack_rules import Reason
from soperator_pulumi.policy.view import HOST_NAMESPACES, UNKNOWN, Path, PodView, ResourceView, listed, look, pods_of

_OF_ACCOUNT = "serviceAccountToken"
_CONTEXT = "securityContext"
_HOST_PROCESS = ("windowsOptions", "hostProcess")
_POWERFUL = (
    *("BPF", "CHECKPOINT_RESTORE", "DAC_READ_SEARCH", "MAC_ADMIN", "MAC_OVERRIDE", "MKNOD", "NET_ADMIN", "PERFMON"),
    *("SYS_ADMIN", "SYS_BOOT", "SYS_MODULE", "SYS_PTRACE", "SYS_RAWIO", "SYS_TIME", "SYSLOG"),
)
"""Capabilities that lead to the machine, or to the pods of others."""


class PrivilegeSettings(PolicySettings):
    """Settings of `privileged-pods`."""

    capabilities: dict[str, Reason] = Field(default_factory=dict)
    """Powerful capabilities that pods beside the clusters may have, each with its reason: `{NET_ADMIN: ...}`. Default:
    none."""


def _privileged(resource: ResourceView, _run: Circumstances, settings: PrivilegeSettings) -> Iterator[Finding]:
    for pod in pods_of(resource):
        yield from (not_known(resource, path) for path in pod.unknown())
        for name in HOST_NAMESPACES:
            yield from _is_false(resource, (*pod.path, name), pod.spec.get(name))
        yield from _context(pod, (*pod.path, _CONTEXT), look(pod.spec, _CONTEXT))
        for path, container in pod.containers():
            context = look(container, _CONTEXT)
            for name in ("privileged", "allowPrivilegeEscalation"):
                yield from _is_false(resource, (*path, _CONTEXT, name), look(context, name))
            yield from _capabilities(pod, (*path, _CONTEXT, "capabilities", "add"), context, settings.capabilities)
            yield from _context(pod, (*path, _CONTEXT), context)


def _capabilities(pod: PodView, path: Path, context: object, allowed: Mapping[str, str]) -> Iterator[Finding]:
    for index, capability in enumerate(listed(look(context, "capabilities", "add"))):
        name = str(capability).upper().removeprefix("CAP_")
        if capability is UNKNOWN:
            yield not_known(pod.resource, (*path, index))
        elif name == "ALL":
            yield Finding(pod.resource, path, 'got "ALL", needs the capabilities by name')
        elif name in _POWERFUL and not pod.is_ours and name not in allowed:
            yield Finding(pod.resource, (*path, index), f"got {name}, which leads to the machine")


def _context(pod: PodView, path: Path, context: object) -> Iterator[Finding]:
    """Judge what the contexts of pods and of containers have in common."""
    if context is UNKNOWN:
        return
    yield from _is_false(pod.resource, (*path, *_HOST_PROCESS), look(context, *_HOST_PROCESS))
    unsafe = [("procMount", "Unmasked")]
    if not pod.is_ours:  # slurmd sets jobs up, and confines them itself
        unsafe += [("seccompProfile.type", "Unconfined"), ("appArmorProfile.type", "Unconfined")]
    for name, value in unsafe:
        where = name.split(".")
        if look(context, *where) == value:
            yield Finding(pod.resource, (*path, *where), f'got "{value}", which opens the kernel to the pod')


def _is_false(resource: ResourceView, path: Path, value: object) -> Iterator[Finding]:
    if value is True:
        yield Finding(resource, path, "got true, needs false")
    elif value is UNKNOWN:
        yield not_known(resource, path)


PRIVILEGED_PODS = ResourcePolicy(
    name="privileged-pods",
    description="No container is privileged, and no pod has a namespace of its machine.",
    violated_by="`privileged`, `allowPrivilegeEscalation`, the capability `ALL`; `hostNetwork`, `hostPID`, `hostIPC`; "
    "in pods beside the clusters `SYS_ADMIN` and its like, and `Unconfined` profiles",
    cure="Give the container the capabilities that it needs.",
    levels=levels("mandatory", "mandatory", "mandatory", "mandatory"),
    severity=PolicySeverity.CRITICAL,
    tags=("pods", "security"),
    settings=PrivilegeSettings,
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
            yield from _host_path(resource, where, look(volume, "hostPath"), _allowed(settings, ours=pod.is_ours))
    if resource.is_kubernetes and resource.kind == "PersistentVolume":
        for source in ("hostPath", "local"):
            where = ("spec", source)
            yield from _host_path(
                resource, where, look(resource.props, *where), _allowed(settings, ours=resource.is_ours)
            )


def _allowed(settings: HostPathSettings, *, ours: bool) -> Mapping[str, str]:
    """Return the allowed paths. The default is for our pods alone."""
    return settings.allowed if ours or "allowed" in settings.model_fields_set else {}


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
        if pod.is_whole and _has_default_account(pod):
            yield from _projected(pod)


def _projected(pod: PodView) -> Iterator[Finding]:
    for index, volume in enumerate(listed(look(pod.spec, "volumes"))):
        for number, source in enumerate(listed(look(volume, "projected", "sources"))):
            if look(source, _OF_ACCOUNT):
                path = (*pod.path, "volumes", index, "projected", "sources", number, _OF_ACCOUNT)
                yield Finding(pod.resource, path, "a token, while the pod has no service account of its own")


def _without_token(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Edit]:
    for pod in pods_of(resource):
        if _mounts_default_token(pod):
            yield Edit((*pod.path, "automountServiceAccountToken"), value=False)


def _mounts_default_token(pod: PodView) -> bool:
    given = pod.spec.get("automountServiceAccountToken")
    return pod.is_whole and _has_default_account(pod) and given is not False and given is not UNKNOWN


def _has_default_account(pod: PodView) -> bool:
    account: Any = pod.spec.get("serviceAccountName") or pod.spec.get("serviceAccount")
    return account in (None, "", "default")


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
