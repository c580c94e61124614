"""Claims that outlive pods: the jail, with the homes, and slurmctld's state.

They stand outside the StatefulSets' claim templates, where a changed size would replace the StatefulSet.
"""

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.core.v1 import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpecArgs,
    VolumeResourceRequirementsArgs,
)

from soperator_pulumi.cluster.scope import SKIP_AWAIT, Scope
from soperator_pulumi.spec.storage import VolumeSpec

JAIL_CLAIM = "jail"
STATE_CLAIM = "slurmctld-state"


@dataclass(frozen=True)
class Claim:
    """A claim to mount."""

    name: pulumi.Input[str]
    created: tuple[PersistentVolumeClaim, ...]
    """The claim, when it is our own; empty when it existed before."""


def kept(*, keep: bool) -> pulumi.ResourceOptions:
    """Return the options of an object that `destroy` leaves behind, and that nothing may replace, if `keep` says so."""
    return pulumi.ResourceOptions(protect=keep, retain_on_delete=keep)


def create_claim(
    name: str, scope: Scope, volume: VolumeSpec, claim_name: str, access_mode: str, *, keep: bool
) -> Claim:
    """Create the claim `claim_name`, unless the spec names one that exists."""
    if volume.existing_claim is not None:
        return Claim(volume.existing_claim, ())
    # Without a class, an empty one keeps Kubernetes from choosing its default, which would make another volume.
    no_class = "" if volume.static_volume is not None else None
    created = PersistentVolumeClaim(
        name,
        # A class that waits for the first pod binds the claim only after that; the pods tell when it can't.
        metadata=scope.metadata(claim_name, annotations=SKIP_AWAIT),
        spec=PersistentVolumeClaimSpecArgs(
            access_modes=[access_mode],
            storage_class_name=no_class if volume.storage_class is None else volume.storage_class,
            volume_name=volume.static_volume,
            resources=VolumeResourceRequirementsArgs(requests={"storage": f"{volume.size_gib}Gi"}),
        ),
        opts=scope.options(kept(keep=keep)),
    )
    return Claim(claim_name, (created,))
