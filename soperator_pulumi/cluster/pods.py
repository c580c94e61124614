"""The pod template that all roles share: names, order, scheduling, and munged beside the daemon."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from pulumi_kubernetes.core.v1 import (
    AffinityArgs,
    ContainerArgs,
    LocalObjectReferenceArgs,
    PodDNSConfigArgs,
    PodSecurityContextArgs,
    PodSpecArgs,
    PodTemplateSpecArgs,
    SeccompProfileArgs,
    TolerationArgs,
)
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from soperator_pulumi.cluster.containers import munged
from soperator_pulumi.cluster.mounts import Mount
from soperator_pulumi.cluster.options import Scope
from soperator_pulumi.cluster.parts import Parts
from soperator_pulumi.spec import Scheduled

NODES_SERVICE = "nodes"
"""The headless Service of all Slurm pods, by which each finds the others by their short names."""


@dataclass(frozen=True)
class Role:
    """What one role's pods have of their own."""

    component: str
    """`controller`, `login` or `worker`."""
    daemon: ContainerArgs
    mounts: Sequence[Mount]
    """All mounts of the role's own containers."""
    scheduling: Scheduled
    prepare: ContainerArgs | None = None
    node_set: str | None = None
    guaranteed: bool = False
    """Whether all containers are to have equal requests and limits."""
    grace_seconds: int = 30
    """From SIGTERM until the pod is killed."""
    volume_group: int | None = None
    """Group that the kubelet gives the volumes to. Never on a pod with the shared claim: some drivers would
    change the group of every file in it."""
    affinity: AffinityArgs | None = None
    """Used where the spec says nothing."""


def pod_template(scope: Scope, parts: Parts, role: Role) -> PodTemplateSpecArgs:
    """Return the template of a role's pods."""
    spec = parts.spec
    sidecar, sidecar_mounts = munged(spec, parts.keys.munge, guaranteed=role.guaranteed)
    volumes = {mount.name: mount.source for mount in [*role.mounts, *sidecar_mounts]}
    scheduling = role.scheduling
    return PodTemplateSpecArgs(
        metadata=ObjectMetaArgs(
            labels=scope.pod_labels(role.component, role.node_set), annotations={**scope.annotations} or None
        ),
        spec=PodSpecArgs(
            init_containers=[*([role.prepare] if role.prepare else []), sidecar],
            containers=[role.daemon],
            volumes=list(volumes.values()),
            # slurmctld must resolve a login pod's short name, or a job stays completing for a minute.
            dns_config=PodDNSConfigArgs(searches=[f"{NODES_SERVICE}.{scope.namespace}.svc.{spec.cluster_domain}"]),
            enable_service_links=False,
            automount_service_account_token=False,
            termination_grace_period_seconds=role.grace_seconds,
            security_context=PodSecurityContextArgs(
                fs_group=role.volume_group,
                fs_group_change_policy="OnRootMismatch" if role.volume_group else None,
                seccomp_profile=SeccompProfileArgs(type="RuntimeDefault"),
            ),
            image_pull_secrets=[LocalObjectReferenceArgs(name=name) for name in spec.images.pull_secrets] or None,
            node_selector=scheduling.node_selector or None,
            tolerations=[TolerationArgs(**taint.model_dump(exclude_none=True)) for taint in scheduling.tolerations]
            or None,
            affinity=_affinity(scheduling) or role.affinity,
            priority_class_name=scheduling.priority_class,
        ),
    )


def _affinity(scheduling: Scheduled) -> AffinityArgs | None:
    """Return the spec's affinity: it is written as a manifest is, which Pulumi takes in place of its own classes."""
    return cast("AffinityArgs | None", scheduling.affinity)
