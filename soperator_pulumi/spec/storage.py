"""Volumes that outlive pods: the jail with the homes, and slurmctld's state."""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Annotated

from pydantic import Field, StrictBool

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.storage_findings import AcceptReason, StateProperty, StorageProperty
from soperator_pulumi.spec.types.deferred import Maybe
from soperator_pulumi.spec.types.names import ObjectName
from soperator_pulumi.spec.validation.base import Model, whole
from soperator_pulumi.spec.validation.partial import known

MAX_GIB = 1_048_576
"""Largest size of a volume, 1 PiB. A larger figure is probably in another unit."""


class VolumeSpec(Model):
    """A PersistentVolumeClaim, new or existing."""

    size_gib: Annotated[int, whole(1, MAX_GIB)]
    """Size of a new claim in GiB. Default: 100 for the jail, 10 for slurmctld's state."""
    storage_class: Maybe[ObjectName] | None = None
    """StorageClass of a new claim. Default: the Kubernetes cluster's default class, or none with a static_volume."""
    existing_claim: Maybe[ObjectName] | None = None
    """Name of an existing claim in the namespace, which has its own size and class."""
    static_volume: Maybe[ObjectName] | None = None
    """Name of the PersistentVolume of a new claim, if no class provisions volumes."""
    protect: StrictBool = True
    """Refuse to delete a new claim from the stack, if `storage.keep` is true. Default: true; set it to false in an `up`
    before the one in which the claim leaves the stack. It stays in Kubernetes, with its data."""


class JailVolume(VolumeSpec):
    """The shared volume (ReadWriteMany) with the jail's trees and the users' home directories."""

    size_gib: Annotated[int, whole(1, MAX_GIB)] = 100
    """Size in GiB. Default: 100."""
    accept: dict[StorageProperty, AcceptReason] = Field(default_factory=dict)
    """Findings of the storage's probe to accept, with the reasons. Default: none, so that an unsuitable volume is
    refused before it is filled."""


class StateVolume(VolumeSpec):
    """The volume (ReadWriteOnce) with slurmctld's state: the queue, jobs, drains, reservations."""

    size_gib: Annotated[int, whole(1, MAX_GIB)] = 10
    """Size in GiB. Default: 10, several times the scripts and environments of 10,000 pending jobs."""
    accept: dict[StateProperty, AcceptReason] = Field(default_factory=dict)
    """Findings to accept, with the reasons (docs/storage.md). Default: none, so that slurmctld does not start on a
    volume that has lost its state."""


class StorageSpec(Model):
    """Data that outlives pods, in addition to the jail."""

    state: StateVolume = StateVolume()
    """slurmctld's state."""
    keep: StrictBool = True
    """Protect all claims, including the jail's, and their namespace, and keep them in a `destroy`. Default: true; set
    it to false only for trials."""


def problems(volumes: Mapping[str, VolumeSpec]) -> Iterator[Problem]:
    """Yield problems between the fields of volumes, and volumes that are used twice. `volumes` has them by path."""
    for path, volume in volumes.items():
        for field in ("storage_class", "static_volume"):
            if _given(volume.existing_claim) and _given(getattr(volume, field)):
                yield Problem(
                    f"{path}.{field}",
                    f"given together with {path}.existing_claim, whose volume is fixed. Remove one.",
                )
    for (first, one), (second, other) in combinations(volumes.items(), 2):
        for field in ("existing_claim", "static_volume"):
            if isinstance(value := getattr(other, field), str) and value == getattr(one, field):
                text = f'"{value}" is also that of {first}, and both have files at its top level. Choose another.'
                yield Problem(f"{second}.{field}", text)


def _given(value: object) -> bool:
    return known(value) and value is not None
