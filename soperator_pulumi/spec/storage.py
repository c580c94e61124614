"""Volumes that outlive pods: the jail with the homes, and slurmctld's state."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import StrictBool

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.types.deferred import Maybe
from soperator_pulumi.spec.types.names import ObjectName
from soperator_pulumi.spec.validation.base import Model, whole
from soperator_pulumi.spec.validation.partial import known

MAX_GIB = 1_048_576
"""Largest size of a volume, 1 PiB: beyond it a figure in another unit is more likely."""


class VolumeSpec(Model):
    """A PersistentVolumeClaim: one that is made, or one that exists."""

    size_gib: Annotated[int, whole(1, MAX_GIB)]
    """Size in GiB of the claim that is made."""
    storage_class: Maybe[ObjectName] | None = None
    """StorageClass of the claim that is made. Default: the Kubernetes cluster's default class, or none with a
    static_volume."""
    existing_claim: Maybe[ObjectName] | None = None
    """Name of a claim in the namespace to use instead of making one. Size and class are then the claim's own."""
    static_volume: Maybe[ObjectName] | None = None
    """Name of the PersistentVolume that the claim that is made shall have, where no class makes volumes."""


class JailVolume(VolumeSpec):
    """The shared volume (ReadWriteMany) with the jail's trees and the users' home directories."""

    size_gib: Annotated[int, whole(1, MAX_GIB)] = 100
    """Size in GiB. Default: 100."""


class StateVolume(VolumeSpec):
    """The volume (ReadWriteOnce) with slurmctld's state: the queue, jobs, drains, reservations."""

    size_gib: Annotated[int, whole(1, MAX_GIB)] = 10
    """Size in GiB. Default: 10; scripts and environments of 10,000 waiting jobs fit many times."""


class StorageSpec(Model):
    """What is kept when pods come and go, besides the jail."""

    state: StateVolume = StateVolume()
    """slurmctld's state."""
    keep: StrictBool = True
    """Whether the claims, the jail's too, are protected and left behind by `destroy`, with their namespace. Default:
    yes; only clusters for trying out say no."""


def problems(storage: StorageSpec, jail: VolumeSpec) -> Iterator[Problem]:
    """Yield what is wrong between the fields of volumes, and between the jail's and the state's."""
    for path, volume in (("jail.storage", jail), ("storage.state", storage.state)):
        for field in ("storage_class", "static_volume"):
            if _given(volume.existing_claim) and _given(getattr(volume, field)):
                yield Problem(
                    f"{path}.{field}",
                    f"given together with {path}.existing_claim, whose volume cannot be changed. Remove one.",
                )
    for field in ("existing_claim", "static_volume"):
        of_jail, of_state = getattr(jail, field), getattr(storage.state, field)
        if isinstance(of_jail, str) and of_jail == of_state:
            yield Problem(
                f"storage.state.{field}",
                f'"{of_state}" is also that of jail.storage: users could write slurmctld\'s state. Use another one.',
            )


def _given(value: object) -> bool:
    return known(value) and value is not None
