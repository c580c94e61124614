"""Claims that outlive pods: the homes, and slurmctld's state.

They stand outside the StatefulSets' claim templates, where a changed size would replace the StatefulSet.
"""

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.core.v1 import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpecArgs,
    VolumeResourceRequirementsArgs,
)

from soperator_pulumi.cluster.options import SKIP_AWAIT, Scope
from soperator_pulumi.spec import StorageSpec, VolumeSpec

SHARED_CLAIM = "shared"
STATE_CLAIM = "slurmctld-state"

HOMES_DIRECTORY = "home"
"""Directory of the shared claim that is mounted at /home; beside it there is room for others."""

SHARED_DIR = "/shared"
"""Where the container that prepares a pod sees the whole claim."""


@dataclass(frozen=True)
class Claims:
    """Names of the claims to mount."""

    shared: pulumi.Input[str]
    """ReadWriteMany, with the homes."""
    state: pulumi.Input[str]
    """ReadWriteOnce, with slurmctld's state."""
    created: tuple[PersistentVolumeClaim, ...]
    """The claims of our own; claims that existed before are not among them."""


def kept(*, keep: bool) -> pulumi.ResourceOptions:
    """Return the options of an object that `destroy` leaves behind, and that nothing may replace, if `keep` says so."""
    return pulumi.ResourceOptions(protect=keep, retain_on_delete=keep)


def create_claims(name: str, scope: Scope, storage: StorageSpec) -> Claims:
    """Create the claims for which the spec names no existing one."""
    created = []

    def claim(suffix: str, claim_name: str, volume: VolumeSpec, access_mode: str) -> pulumi.Input[str]:
        if volume.existing_claim is not None:
            return volume.existing_claim
        claim = PersistentVolumeClaim(
            f"{name}-{suffix}",
            # A class that waits for the first pod binds the claim only after that; the pods tell when it can't.
            metadata=scope.metadata(claim_name, annotations=SKIP_AWAIT),
            spec=PersistentVolumeClaimSpecArgs(
                access_modes=[access_mode],
                storage_class_name=volume.storage_class,
                resources=VolumeResourceRequirementsArgs(requests={"storage": f"{volume.size_gib}Gi"}),
            ),
            opts=scope.options(kept(keep=storage.keep)),
        )
        created.append(claim)
        return claim_name

    return Claims(
        shared=claim("shared", SHARED_CLAIM, storage.homes, "ReadWriteMany"),
        state=claim("slurmctld-state", STATE_CLAIM, storage.state, "ReadWriteOnce"),
        created=tuple(created),
    )
