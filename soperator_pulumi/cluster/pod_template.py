"""Pods: common parts, and the template of Slurm's pods with munged and the daemon."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from pulumi_kubernetes.core.v1 import (
    AffinityArgs,
    ContainerArgs,
    HostAliasArgs,
    LocalObjectReferenceArgs,
    PodDNSConfigArgs,
    PodSecurityContextArgs,
    PodSpecArgs,
    PodTemplateSpecArgs,
    SeccompProfileArgs,
    SysctlArgs,
    TolerationArgs,
    TopologySpreadConstraintArgs,
)
from pulumi_kubernetes.meta.v1 import LabelSelectorArgs, ObjectMetaArgs

from soperator_pulumi.cluster.containers import munged
from soperator_pulumi.cluster.mounts import Mount
from soperator_pulumi.cluster.scope import Scope
from soperator_pulumi.cluster.secrets import Keys
from soperator_pulumi.cluster.storage import Claim
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.scheduling import Scheduled
from soperator_pulumi.spec.user_pods import UserPods

NODES_SERVICE = "nodes"
"""Headless Service through which Slurm's pods resolve each other's short names."""

ROOTS_PORTS = SysctlArgs(name="net.ipv4.ip_unprivileged_port_start", value="1024")
"""Ports below 1024 are for root only, as on any machine: a file server with AUTH_SYS trusts callers from such ports as
root. Container runtimes open all ports to all users. In Kubernetes' safe set of sysctls since 1.22."""


@dataclass(frozen=True)
class Parts:
    """Inputs that all components of one cluster share, in addition to their scope."""

    spec: ClusterSpec
    keys: Keys
    jail: Claim
    """The claim with the jail's trees, the homes and other shared files (ReadWriteMany)."""
    state: Claim
    """The claim with slurmctld's state (ReadWriteOnce)."""


@dataclass(frozen=True)
class Role:
    """Properties of one role's pods."""

    component: str
    """`controller`, `login` or `worker`."""
    daemon: ContainerArgs
    mounts: Sequence[Mount]
    """All mounts of the role's own containers."""
    scheduling: Scheduled
    prepare: ContainerArgs | None = None
    sidecars: Sequence[ContainerArgs] = ()
    """Native sidecars in addition to munged."""
    node_set: str | None = None
    guaranteed: bool = False
    """True for equal requests and limits in all containers."""
    grace_seconds: int = 30
    """Seconds from SIGTERM to SIGKILL."""
    affinity: AffinityArgs | None = None
    """Default affinity if the spec has none."""
    taints: Sequence[str] = ()
    """Keys of additional taints that the pods tolerate."""
    runtime_class: str | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Additional annotations of the pods."""
    service_account: str | None = None
    """Name of the pods' ServiceAccount; None for the namespace's default. No API token is mounted in either case."""


def pod_template(scope: Scope, parts: Parts, role: Role) -> PodTemplateSpecArgs:
    """Return the template of a role's pods."""
    spec = parts.spec
    sidecar, sidecar_mounts = munged(
        spec, parts.keys.munge, guaranteed=role.guaranteed, has_jobs=role.component == "worker"
    )
    users = role.scheduling if isinstance(role.scheduling, UserPods) else UserPods()
    metadata = pod_metadata(scope, role.component, role.node_set, {**users.annotations, **role.annotations})
    metadata.labels = {**scope.pod_labels(role.component, role.node_set), **users.labels}
    return PodTemplateSpecArgs(
        metadata=metadata,
        spec=pod_spec(
            spec,
            role.scheduling,
            containers=[role.daemon],
            init_containers=[*([role.prepare] if role.prepare else []), *role.sidecars, sidecar],
            mounts=[*role.mounts, *sidecar_mounts],
            # slurmctld must resolve a login pod's short name, or a job stays COMPLETING for a minute.
            dns_config=PodDNSConfigArgs(searches=[f"{NODES_SERVICE}.{scope.namespace}.svc.{spec.cluster_domain}"]),
            grace_seconds=role.grace_seconds,
            affinity=role.affinity,
            sysctls=[ROOTS_PORTS],
            taints=role.taints,
            runtime_class=role.runtime_class,
            service_account=role.service_account,
            spread=_spread(users, scope.selector(role.component, role.node_set)),
            host_aliases=[HostAliasArgs(ip=alias.ip, hostnames=[*alias.hostnames]) for alias in users.host_aliases],
        ),
    )


def _spread(pods: UserPods, selector: Mapping[str, str]) -> list[TopologySpreadConstraintArgs]:
    return [
        TopologySpreadConstraintArgs(
            topology_key=spread.topology_key,
            max_skew=spread.max_skew,
            when_unsatisfiable=spread.when_unsatisfiable,
            label_selector=LabelSelectorArgs(match_labels=selector),
        )
        for spread in pods.topology_spread
    ]


def pod_metadata(
    scope: Scope, component: str, node_set: str | None = None, annotations: Mapping[str, str] | None = None
) -> ObjectMetaArgs:
    """Return the metadata of a component's pods."""
    return ObjectMetaArgs(
        labels=scope.pod_labels(component, node_set), annotations={**scope.annotations, **(annotations or {})} or None
    )


def pod_spec(
    spec: ClusterSpec,
    scheduling: Scheduled,
    *,
    containers: Sequence[ContainerArgs],
    mounts: Sequence[Mount],
    init_containers: Sequence[ContainerArgs] = (),
    dns_config: PodDNSConfigArgs | None = None,
    grace_seconds: int = 30,
    affinity: AffinityArgs | None = None,
    restart_policy: str | None = None,
    sysctls: Sequence[SysctlArgs] | None = None,
    taints: Sequence[str] = (),
    runtime_class: str | None = None,
    service_account: str | None = None,
    spread: Sequence[TopologySpreadConstraintArgs] = (),
    host_aliases: Sequence[HostAliasArgs] = (),
) -> PodSpecArgs:
    """Return the specification of a pod, without a token and without an `fsGroup`.

    By a pod's `fsGroup` the kubelet would change the jail as well: some drivers change the group of every file.
    """
    volumes = {mount.name: mount.source for mount in mounts}
    return PodSpecArgs(
        init_containers=[*init_containers] or None,
        containers=[*containers],
        volumes=list(volumes.values()),
        dns_config=dns_config,
        enable_service_links=False,
        service_account_name=service_account,
        automount_service_account_token=False,
        termination_grace_period_seconds=grace_seconds,
        restart_policy=restart_policy,
        security_context=PodSecurityContextArgs(
            seccomp_profile=SeccompProfileArgs(type="RuntimeDefault"), sysctls=sysctls
        ),
        image_pull_secrets=[LocalObjectReferenceArgs(name=name) for name in spec.images.pull_secrets] or None,
        node_selector=scheduling.node_selector or None,
        tolerations=[
            *(TolerationArgs(**taint.model_dump(exclude_none=True)) for taint in scheduling.tolerations),
            *(TolerationArgs(key=key, operator="Exists") for key in taints),
        ]
        or None,
        runtime_class_name=runtime_class,
        # Pulumi accepts the mapping of a manifest in place of its classes.
        affinity=cast("AffinityArgs | None", scheduling.affinity) or affinity,
        priority_class_name=scheduling.priority_class,
        topology_spread_constraints=[*spread] or None,
        host_aliases=[*host_aliases] or None,
    )
