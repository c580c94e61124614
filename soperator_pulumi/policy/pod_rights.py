"""Policies on the rights of pods: privileges, host namespaces, host paths, tokens of Kubernetes."""

from collections.abc import Iterator, Mapping
from posixpath import normpath
from typing import Any

from pydantic import Field

from soperator_pulumi.policy.definition import Circumstances, Edit, Finding, PolicySettings, ResourcePolicy, not_known
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.pod_view import HOST_NAMESPACES, PodView, pods_of, values_outside_pods
from soperator_pulumi.policy.stack_rules import Reason
from soperator_pulumi.policy.value_tree import UNKNOWN, Path, listed, look, mapped
from soperator_pulumi.policy.view import ResourceView

_OF_ACCOUNT = "serviceAccountToken"
_CONTEXT = "securityContext"
_HOST_PROCESS = ("windowsOptions", "hostProcess")
_POWERFUL = (
    *("BPF", "CHECKPOINT_RESTORE", "DAC_READ_SEARCH", "MAC_ADMIN", "MAC_OVERRIDE", "MKNOD", "NET_ADMIN", "PERFMON"),
    *("SYS_ADMIN", "SYS_BOOT", "SYS_MODULE", "SYS_PTRACE", "SYS_RAWIO", "SYS_TIME", "SYSLOG"),
)
"""Capabilities that give access to the machine, or to other pods."""

_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"

_SAFE_SYSCTLS = (
    *("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports"),
    *("net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout"),
    *("net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time"),
    *("net.ipv4.tcp_rmem", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem", UNKNOWN),
)
"""Sysctls that affect only the pod:
https://kubernetes.io/docs/tasks/administer-cluster/sysctl-cluster/#safe-and-unsafe-sysctls."""

_SAFE_SELINUX = (None, "", "container_t", "container_init_t", "container_kvm_t", "container_engine_t", UNKNOWN)
"""Types that Kubernetes' baseline allows: https://kubernetes.io/docs/concepts/security/pod-security-standards/."""

_OF_PARTS = {
    "Accounting": ("DAC_READ_SEARCH",),
    "LoginNodes": ("DAC_READ_SEARCH", "SYS_ADMIN"),
    "MetricsExporter": ("DAC_READ_SEARCH",),
    "NodeSet": ("SYS_ADMIN",),
    "RestApi": ("DAC_READ_SEARCH",),
}
"""Powerful capabilities of the clusters' own pods: these mount the jail, and some read the users' password hashes."""

_MOUNTING = ("LoginNodes", "NodeSet")


class PrivilegeSettings(PolicySettings):
    """Settings of `privileged-pods`."""

    capabilities: dict[str, Reason] = Field(default_factory=dict)
    """Powerful capabilities that pods outside clusters may have, with the reasons: `{NET_ADMIN: ...}`. Default:
    none."""


def _privileged(resource: ResourceView, _run: Circumstances, settings: PrivilegeSettings) -> Iterator[Finding]:
    for pod in pods_of(resource):
        yield from (not_known(resource, path) for path in pod.unknown())
        for name in HOST_NAMESPACES:
            yield from _is_false(resource, (*pod.path, name), pod.spec.get(name))
        yield from _context(pod, (*pod.path, _CONTEXT), look(pod.spec, _CONTEXT))
        for path, container in pod.containers():
            context = look(container, _CONTEXT)
            yield from _container(pod, (*path, _CONTEXT), context, settings)
            yield from _host_ports(pod, (*path, "ports"), look(container, "ports"))
        yield from _annotated(pod)
    for path, value in values_outside_pods(resource):
        if str(path[-1]).lower().endswith(_CONTEXT.lower()):
            yield from _container(PodView(resource, path, {}, None), path, value, settings)


def _container(pod: PodView, path: Path, context: object, settings: PrivilegeSettings) -> Iterator[Finding]:
    for name in ("privileged", "allowPrivilegeEscalation"):
        yield from _is_false(pod.resource, (*path, name), look(context, name))
    yield from _capabilities(pod, (*path, "capabilities", "add"), context, settings.capabilities)
    yield from _context(pod, path, context)


def _host_ports(pod: PodView, path: Path, ports: object) -> Iterator[Finding]:
    for index, port in enumerate(listed(ports)):
        given = look(port, "hostPort")
        if given is UNKNOWN:
            yield not_known(pod.resource, (*path, index, "hostPort"))
        elif given:
            yield Finding(
                pod.resource, (*path, index, "hostPort"), "a port of the machine, which no NetworkPolicy covers"
            )


def _annotated(pod: PodView) -> Iterator[Finding]:
    """Yield AppArmor profiles that annotations turn off, which applies to containers without a field of their own."""
    for key, value in mapped(pod.annotations).items():
        if key.startswith(_APP_ARMOR) and str(value).lower() == "unconfined" and pod.part not in _MOUNTING:
            where = (*pod.path[:-1], "metadata", "annotations", key)
            yield Finding(pod.resource, where, 'got "unconfined", which exposes the kernel to the pod')


def _capabilities(pod: PodView, path: Path, context: object, allowed: Mapping[str, str]) -> Iterator[Finding]:
    given = look(context, "capabilities", "add")
    if given is UNKNOWN and context is not UNKNOWN:
        yield not_known(pod.resource, path)
    for index, capability in enumerate(listed(given)):
        name = str(capability).upper().removeprefix("CAP_")
        if capability is UNKNOWN:
            yield not_known(pod.resource, (*path, index))
        elif name == "ALL":
            yield Finding(pod.resource, path, 'got "ALL", name the capabilities that are needed')
        elif name in _POWERFUL and name not in (*allowed, *_OF_PARTS.get(pod.part, ())):
            yield Finding(pod.resource, (*path, index), f"got {name}, which gives access to the machine")


def _context(pod: PodView, path: Path, context: object) -> Iterator[Finding]:
    """Yield findings about the settings that security contexts of pods and containers share."""
    if context is UNKNOWN:
        return
    yield from _is_false(pod.resource, (*path, *_HOST_PROCESS), look(context, *_HOST_PROCESS))
    unsafe = [("procMount", "Unmasked"), ("seccompProfile.type", "Unconfined")]
    if pod.part not in _MOUNTING:  # AppArmor's default container profile refuses all mounts
        unsafe.append(("appArmorProfile.type", "Unconfined"))
    for name, value in unsafe:
        where = name.split(".")
        if look(context, *where) == value:
            yield Finding(pod.resource, (*path, *where), f'got "{value}", which exposes the kernel to the pod')
    for index, sysctl in enumerate(listed(look(context, "sysctls"))):
        if look(sysctl, "name") not in _SAFE_SYSCTLS:
            yield Finding(
                pod.resource, (*path, "sysctls", index), "a kernel setting that all pods of its machine share"
            )
    options = look(context, "seLinuxOptions")
    for key in ("user", "role"):
        if look(options, key):
            yield Finding(pod.resource, (*path, "seLinuxOptions", key), "got a value; remove it: SELinux chooses it")
    if look(options, "type") not in _SAFE_SELINUX:
        yield Finding(pod.resource, (*path, "seLinuxOptions", "type"), "a type that does not confine containers")


def _is_false(resource: ResourceView, path: Path, value: object) -> Iterator[Finding]:
    if value is True or (isinstance(value, str) and value.lower() == "true"):  # templates of charts print both alike
        yield Finding(resource, path, "got true, needs false")
    elif value is UNKNOWN:
        yield not_known(resource, path)


PRIVILEGED_PODS = ResourcePolicy(
    name="privileged-pods",
    description="No container is privileged, and no pod shares a namespace with its machine.",
    violated_by="`privileged`, `allowPrivilegeEscalation`, the capability `ALL`; `hostNetwork`, `hostPID`, `hostIPC`, "
    "`hostPort`, sysctls of the machine, `Unconfined` profiles; in pods outside clusters, `SYS_ADMIN` and similar "
    "capabilities",
    cure="Give the container only the capabilities that it needs.",
    levels=levels("mandatory", "mandatory", "mandatory", "mandatory"),
    severity=PolicySeverity.CRITICAL,
    tags=("pods", "security"),
    settings=PrivilegeSettings,
    check=_privileged,
)


class HostPathSettings(PolicySettings):
    """Settings of `host-paths`."""

    allowed: dict[str, Reason] = Field(default_factory=dict)
    """Allowed paths, with the reasons. Default: none."""


def _host_paths(resource: ResourceView, _run: Circumstances, settings: HostPathSettings) -> Iterator[Finding]:
    for pod in pods_of(resource):
        volumes = look(pod.spec, "volumes")
        if volumes is UNKNOWN:
            yield not_known(resource, (*pod.path, "volumes"))
        for index, volume in enumerate(listed(volumes)):
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
    elif isinstance(source, Mapping) and normpath(str(path)) not in {*map(normpath, allowed)}:
        yield Finding(resource, (*where, "path"), "a directory of the machine that no setting allows")


HOST_PATHS = ResourcePolicy(
    name="host-paths",
    description="No pod mounts a directory of its machine without a reason.",
    violated_by="a submount with `host_path`; `containers.local`; a volume with `hostPath`; a PersistentVolume with "
    "`hostPath` or `local`",
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
