"""Volumes inside the jail, as the containers of a role have them: at the same path as the jobs and sessions in it."""

import hashlib
from collections.abc import Sequence

from soperator_pulumi.cluster import mounts
from soperator_pulumi.cluster.mounts import Mount
from soperator_pulumi.render.jail import submounts
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.submount import SubmountRole, SubmountSpec

_MIB_PER_GIB = 1024


def with_submounts(defaults: Sequence[Mount], spec: ClusterSpec, role: SubmountRole) -> list[Mount]:
    """Return the mounts of a role with its submounts, which replace those at the same path."""
    ours = [_mount(submount) for submount in submounts(spec, role)]
    replaced = {mount.path for mount in ours}
    return [*(mount for mount in defaults if mount.path not in replaced), *ours]


def _mount(submount: SubmountSpec) -> Mount:
    # Named after the path, so that a pod is the same whatever the order of submounts.
    name = f"submount-{hashlib.sha256(submount.path.encode()).hexdigest()[:10]}"
    if submount.existing_claim is not None:
        return mounts.claim(
            name, submount.existing_claim, submount.path, submount.sub_path, read_only=submount.read_only
        )
    if submount.host_path is not None:
        return mounts.machine_directory(name, submount.host_path, submount.path, read_only=submount.read_only)
    if submount.scratch_gib is not None:
        return mounts.scratch(name, submount.path, f"{submount.scratch_gib}Gi")
    if submount.memory_gib is not None:
        return mounts.memory(name, submount.path, f"{round(submount.memory_gib * _MIB_PER_GIB)}Mi")
    raise ValueError(f"submount {submount.path} has no volume")  # the spec has exactly one
