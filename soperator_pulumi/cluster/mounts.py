"""Volumes and where a container sees them."""

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


@dataclass(frozen=True)
class SecretFile:
    """One file in a Secret."""

    secret: pulumi.Input[str]
    """Name of the Secret."""
    key: str


@dataclass(frozen=True)
class Mount:
    """A volume of a pod and the place of it in one container."""

    name: str
    source: VolumeArgs
    path: str
    read_only: bool = False
    sub_path: str | None = None
    needs_mode: bool = False
    """Whether Kubernetes makes it open to everybody, without the sticky bit."""

    def in_container(self) -> VolumeMountArgs:
        """Return the container's side."""
        return VolumeMountArgs(
            name=self.name,
            mount_path=self.path,
            read_only=True if self.read_only else None,
            sub_path=self.sub_path,
        )


def config_files(name: str, path: str) -> Mount:
    """Mount a ConfigMap as a directory: its changes arrive in the pod, as they would not with a `subPath`."""
    source = ConfigMapVolumeSourceArgs(name=name)
    return Mount(name, VolumeArgs(name=name, config_map=source), path, read_only=True)


def secret_file(name: str, file: SecretFile, path: str, file_name: str, mode: int) -> Mount:
    """Mount one file of a Secret, with the given mode and name, in the directory `path`."""
    items = [KeyToPathArgs(key=file.key, path=file_name)]
    source = SecretVolumeSourceArgs(secret_name=file.secret, items=items, default_mode=mode)
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


def machine_directory(name: str, source: str, path: str, *, read_only: bool = False) -> Mount:
    """Mount the directory `source` of the machine, which must exist there."""
    host_path = HostPathVolumeSourceArgs(path=source, type="Directory")
    return Mount(name, VolumeArgs(name=name, host_path=host_path), path, read_only)


def scratch(name: str, path: str, size: str | None = None, *, read_only: bool = False) -> Mount:
    """Mount an empty directory on the machine's disk. A pod whose directory outgrows `size` is evicted."""
    source = EmptyDirVolumeSourceArgs(size_limit=size)
    return Mount(name, VolumeArgs(name=name, empty_dir=source), path, read_only, needs_mode=True)


def memory(name: str, path: str, size: str, *, read_only: bool = False) -> Mount:
    """Mount an empty directory in memory, which counts as the pod's. Its mode is that of /tmp, 1777."""
    source = EmptyDirVolumeSourceArgs(medium="Memory", size_limit=size)
    return Mount(name, VolumeArgs(name=name, empty_dir=source), path, read_only)
