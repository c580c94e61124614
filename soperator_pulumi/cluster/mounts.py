"""Volumes, their mount paths in containers, submounts and temporary directories.

/tmp and /dev/shm of a pod are in memory and have a size limit, so that a full one harms nothing else. A directory on
the machine's disk is unsuitable: a user could fill the machine, and with a `sizeLimit` the kubelet ends the pod, slurmd
and all jobs with it. A file system in memory refuses to grow. Its content counts as memory of the job that wrote it if
jobs are constrained, otherwise as memory of the pod. A submount at the same path replaces either directory.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.core.v1 import (
    ConfigMapVolumeSourceArgs,
    EmptyDirVolumeSourceArgs,
    HostPathVolumeSourceArgs,
    KeyToPathArgs,
    PersistentVolumeClaimVolumeSourceArgs,
    SecretVolumeSourceArgs,
    VolumeArgs,
    VolumeMountArgs,
)

from soperator_pulumi.render import layout
from soperator_pulumi.render.jail import submounts
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.node_set import NodeSetSpec
from soperator_pulumi.spec.submount import SubmountRole, SubmountSpec
from soperator_pulumi.spec.types.quantity import MIB_PER_GIB, PodResources, whole_mib

_TEMPORARY_SHARE, _SHARED_MEMORY_SHARE = 4, 2
"""Shares of a pod's memory: /tmp gets a quarter, /dev/shm half (Linux' default). A quarter is left when both are
full."""

_UNLIMITED_MIB = 4096
"""Assumed memory of a pod without a limit."""


@dataclass(frozen=True)
class SecretFile:
    """One file in a Secret."""

    secret: pulumi.Input[str]
    """Name of the Secret."""
    key: str


@dataclass(frozen=True)
class Mount:
    """A volume of a pod, and its mount in one container."""

    name: str
    source: VolumeArgs
    path: str
    read_only: bool = False
    sub_path: str | None = None
    needs_mode: bool = False
    """True for a directory that is for all users, and has to get the sticky bit."""

    def in_container(self) -> VolumeMountArgs:
        """Return the mount of the container."""
        return VolumeMountArgs(
            name=self.name,
            mount_path=self.path,
            read_only=True if self.read_only else None,
            sub_path=self.sub_path,
        )


def config_files(name: str, path: str) -> Mount:
    """Mount a ConfigMap as a directory, so that its changes reach the pod. With a `subPath` they would not."""
    source = ConfigMapVolumeSourceArgs(name=name)
    return Mount(name, VolumeArgs(name=name, config_map=source), path, read_only=True)


def secret_file(name: str, file: SecretFile, path: str, file_name: str, mode: int) -> Mount:
    """Mount one file of a Secret, with the given mode and name, in the directory `path`."""
    items = [KeyToPathArgs(key=file.key, path=file_name)]
    source = SecretVolumeSourceArgs(secret_name=file.secret, items=items, default_mode=mode)
    return Mount(name, VolumeArgs(name=name, secret=source), path, read_only=True)


def secret_files(name: str, path: str, mode: int) -> Mount:
    """Mount a Secret as a directory, so that changes reach the pod, with the given mode for its files."""
    source = SecretVolumeSourceArgs(secret_name=name, default_mode=mode)
    return Mount(name, VolumeArgs(name=name, secret=source), path, read_only=True)


def secret_files_as(name: str, secret: pulumi.Input[str], files: Mapping[str, str], path: str, mode: int) -> Mount:
    """Mount files of a Secret, given by key, under new names in the directory `path`."""
    items = [KeyToPathArgs(key=key, path=file_name) for key, file_name in files.items()]
    source = SecretVolumeSourceArgs(secret_name=secret, items=items, default_mode=mode)
    return Mount(name, VolumeArgs(name=name, secret=source), path, read_only=True)


def claim(
    name: str,
    claim_name: pulumi.Input[str],
    path: str,
    sub_path: str | None = None,
    *,
    read_only: bool = False,
) -> Mount:
    """Mount a claim, or one directory of it."""
    source = PersistentVolumeClaimVolumeSourceArgs(claim_name=claim_name)
    return Mount(name, VolumeArgs(name=name, persistent_volume_claim=source), path, read_only, sub_path)


def machine_directory(
    name: str,
    source: str,
    path: str,
    *,
    read_only: bool = False,
    kind: str = "Directory",
    needs_mode: bool = False,
) -> Mount:
    """Mount the machine's directory `source`, which must exist unless `kind` is `DirectoryOrCreate`."""
    host_path = HostPathVolumeSourceArgs(path=source, type=kind)
    return Mount(name, VolumeArgs(name=name, host_path=host_path), path, read_only, needs_mode=needs_mode)


def scratch(name: str, path: str, size: str | None = None, *, read_only: bool = False) -> Mount:
    """Mount an empty directory on the machine's disk. A pod whose directory outgrows `size` is evicted."""
    source = EmptyDirVolumeSourceArgs(size_limit=size)
    return Mount(name, VolumeArgs(name=name, empty_dir=source), path, read_only, needs_mode=True)


def memory(name: str, path: str, size: str, *, read_only: bool = False) -> Mount:
    """Mount an empty directory in the pod's memory, with the mode of /tmp, 1777."""
    source = EmptyDirVolumeSourceArgs(medium="Memory", size_limit=size)
    return Mount(name, VolumeArgs(name=name, empty_dir=source), path, read_only)


def with_submounts(defaults: Sequence[Mount], spec: ClusterSpec, role: SubmountRole, *names: str) -> list[Mount]:
    """Return the mounts of a role, or those that all of its named pods have. They replace defaults at a path."""
    ours = [_mount(submount) for submount in submounts(spec, role, *names)]
    replaced = {mount.path for mount in ours}
    return [*(mount for mount in defaults if mount.path not in replaced), *ours]


def _mount(submount: SubmountSpec) -> Mount:
    # Named after the path: the order of submounts changes no pod.
    name = f"submount-{hashlib.sha256(submount.path.encode()).hexdigest()[:10]}"
    if submount.existing_claim is not None:
        return claim(name, submount.existing_claim, submount.path, submount.sub_path, read_only=submount.read_only)
    if submount.host_path is not None:
        return machine_directory(name, submount.host_path, submount.path, read_only=submount.read_only)
    if submount.scratch_gib is not None:
        return scratch(name, submount.path, f"{submount.scratch_gib}Gi")
    if submount.memory_gib is not None:
        return memory(name, submount.path, f"{round(submount.memory_gib * MIB_PER_GIB)}Mi")
    raise ValueError(f"submount {submount.path} has no volume")  # the spec has exactly one


def temporary_directories(memory_mib: int, *, shared_memory: bool) -> list[Mount]:
    """Return the mounts of /tmp and, with `shared_memory`, of /dev/shm for a pod with this memory."""
    found = [memory("tmp", layout.TEMPORARY_DIR, f"{max(1, memory_mib // _TEMPORARY_SHARE)}Mi")]
    if shared_memory:
        # The runtime's own is 64 MiB, too small for MPI between the tasks of a node.
        found.append(memory("shm", layout.SHARED_MEMORY_DIR, f"{max(1, memory_mib // _SHARED_MEMORY_SHARE)}Mi"))
    return found


def worker_memory_mib(node_set: NodeSetSpec) -> int:
    """Return the memory of a worker's pod in MiB: its limit, or the memory that Slurm schedules."""
    limit = node_set.pod_resources and node_set.pod_resources.limits.memory
    return min(node_set.memory_mib, whole_mib(limit)) if limit else node_set.memory_mib


def login_memory_mib(resources: PodResources) -> int:
    """Return the memory of a login pod in MiB."""
    return whole_mib(resources.limits.memory) if resources.limits.memory else _UNLIMITED_MIB


def spool_mib(node_set: NodeSetSpec) -> int:
    """Return the size of slurmd's spool in MiB: 1 GiB, plus two job scripts for every CPU.

    Only root writes there: scripts, of 4 MiB at most (`slurm.max_script_kib`), of running and of suspended jobs
    (`SlurmdSpoolDir` and `PreemptMode=SUSPEND` in slurm.conf(5)).
    """
    return MIB_PER_GIB + 2 * 4 * node_set.cpus
