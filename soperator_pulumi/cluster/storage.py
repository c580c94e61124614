"""Objects that outlive a destroy: the namespace, and the claims of the jail and of slurmctld's state.

The claims are not in the StatefulSets' claim templates, as a changed size there would replace the StatefulSet.
"""

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.core.v1 import (
    Namespace,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpecArgs,
    VolumeResourceRequirementsArgs,
)
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from soperator_pulumi.cluster.scope import SKIP_AWAIT, Scope
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.storage import VolumeSpec

JAIL_CLAIM = "jail"
STATE_CLAIM = "slurmctld-state"


@dataclass(frozen=True)
class Claim:
    """A claim to mount."""

    name: pulumi.Input[str]
    resource: PersistentVolumeClaim | None
    """The claim as a resource; None if it existed before."""

    @property
    def created(self) -> tuple[PersistentVolumeClaim, ...]:
        """The claim, if this package created it."""
        return () if self.resource is None else (self.resource,)


def create_namespace(name: str, scope: Scope, spec: ClusterSpec) -> Namespace | None:
    """Create the namespace, unless the spec says that it exists."""
    if not spec.create_namespace:
        return None
    # The baseline level forbids SYS_ADMIN, which moves jobs into the jail. No container of the cluster is privileged.
    labels = {**scope.object_labels(), "pod-security.kubernetes.io/enforce": "privileged"}
    return Namespace(
        f"{name}-namespace",
        metadata=ObjectMetaArgs(name=spec.namespace, labels=labels, annotations={**spec.annotations} or None),
        opts=scope.options(kept_data(keep=spec.storage.keep)),
    )


def create_claim(
    name: str, scope: Scope, volume: VolumeSpec, claim_name: str, access_mode: str, *, keep: bool
) -> Claim:
    """Create the claim `claim_name`, unless the spec names an existing one."""
    if volume.existing_claim is not None:
        return Claim(volume.existing_claim, None)
    # Without a class, an empty one keeps Kubernetes from choosing its default, which would make another volume.
    no_class = "" if volume.static_volume is not None else None
    created = PersistentVolumeClaim(
        name,
        # A class that waits for the first pod binds the claim only then. The pods report a claim that is not bound.
        metadata=scope.metadata(claim_name, annotations=SKIP_AWAIT),
        spec=PersistentVolumeClaimSpecArgs(
            access_modes=[access_mode],
            storage_class_name=no_class if volume.storage_class is None else volume.storage_class,
            volume_name=volume.static_volume,
            resources=VolumeResourceRequirementsArgs(requests={"storage": f"{volume.size_gib}Gi"}),
        ),
        opts=scope.options(kept_data(keep=keep, protect=volume.protect)),
    )
    return Claim(claim_name, created)


def kept_data(*, keep: bool, protect: bool = True) -> pulumi.ResourceOptions:
    """Return options for an object that `destroy` keeps and nothing may replace, if `keep` is true.

    Args:
        keep: Keep it in Kubernetes, whatever deletes it from the stack.
        protect: Refuse to delete it from the stack as well.
    """
    return pulumi.ResourceOptions(protect=keep and protect, retain_on_delete=keep)
