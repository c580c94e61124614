"""Volumes that outlive pods: homes and slurmctld's state."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import StrictBool

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.base import Model, whole
from soperator_pulumi.spec.deferred import Maybe
from soperator_pulumi.spec.names import ObjectName
from soperator_pulumi.spec.partial import known

_MAX_GIB = 1_048_576  # 1 PiB: beyond it a figure in another unit is more likely


class VolumeSpec(Model):
    """A PersistentVolumeClaim: one that is made, or one that exists."""

    size_gib: Annotated[int, whole(1, _MAX_GIB)]
    """Size in GiB of the claim that is made."""
    storage_class: Maybe[ObjectName] | None = None
    """StorageClass of the claim that is made. Default: the Kubernetes cluster's default class."""
    existing_claim: Maybe[ObjectName] | None = None
    """Name of a claim in the namespace to use instead of making one. Size and class are then the claim's own."""


class HomesVolume(VolumeSpec):
    """The shared volume (ReadWriteMany) with the users' home directories."""

    size_gib: Annotated[int, whole(1, _MAX_GIB)] = 100
    """Size in GiB. Default: 100."""


class StateVolume(VolumeSpec):
    """The volume (ReadWriteOnce) with slurmctld's state: the queue, jobs, drains, reservations."""

    size_gib: Annotated[int, whole(1, _MAX_GIB)] = 10
    """Size in GiB. Default: 10; scripts and environments of 10,000 waiting jobs fit many times."""


class StorageSpec(Model):
    """What is kept when pods come and go."""

    homes: HomesVolume = HomesVolume()
    """The shared volume with the home directories, on login and worker nodes."""
    state: StateVolume = StateVolume()
    """slurmctld's state."""
    keep: StrictBool = True
    """Whether the claims are protected and left behind by `destroy`, with their namespace. Default: yes; only
    clusters for trying out say no."""


def problems(storage: StorageSpec) -> Iterator[Problem]:
    """Yield what is wrong between the fields of a volume."""
    for name, volume in (("homes", storage.homes), ("state", storage.state)):
        if known(volume.existing_claim) and volume.existing_claim is not None and volume.storage_class is not None:
            yield Problem(
                f"storage.{name}.storage_class",
                f"given together with storage.{name}.existing_claim, whose class cannot be changed. Remove one.",
            )
    homes, state = storage.homes.existing_claim, storage.state.existing_claim
    if isinstance(homes, str) and homes == state:
        yield Problem(
            "storage.state.existing_claim",
            f'"{state}" is also the claim of storage.homes: users could write slurmctld\'s state. Use another claim.',
        )
