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

TMP = "/tmp"  # noqa: S108 a place in containers, of which each has its own


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


def claim(name: str, claim_name: pulumi.Input[str], path: str, sub_path: str | None = None) -> Mount:
    """Mount a claim, or one directory of it."""
    source = PersistentVolumeClaimVolumeSourceArgs(claim_name=claim_name)
    return Mount(name, VolumeArgs(name=name, persistent_volume_claim=source), path, sub_path=sub_path)


def machine_directory(name: str, path: str) -> Mount:
    """Mount a directory of the machine, which must exist there."""
    source = HostPathVolumeSourceArgs(path=path, type="Directory")
    return Mount(name, VolumeArgs(name=name, host_path=source), path)


def scratch(name: str, path: str) -> Mount:
    """Mount an empty directory on the machine's disk. Kubernetes makes it 0777: give it a mode before use."""
    return Mount(name, VolumeArgs(name=name, empty_dir=EmptyDirVolumeSourceArgs()), path)


def memory(name: str, path: str, size: str, *, read_only: bool = False) -> Mount:
    """Mount an empty directory in memory, which counts as the pod's. Its mode is that of /tmp, 1777."""
    source = EmptyDirVolumeSourceArgs(medium="Memory", size_limit=size)
    return Mount(name, VolumeArgs(name=name, empty_dir=source), path, read_only=read_only)
