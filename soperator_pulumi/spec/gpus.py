"""GPUs of a node set: the devices of its pods in Kubernetes, and the GPUs that Slurm schedules."""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.types.names import ResourceName
from soperator_pulumi.spec.validation.base import Matches, Model, whole
from soperator_pulumi.spec.validation.partial import known

_MAX_FILES = 1024
"""Largest number of devices of a node that have their own files (gres.conf(5), `File`)."""

_MIG = r"[1-7]g\.[1-9][0-9]{0,2}gb(\.me)?(\.all)?(\.gfx)?(-me)?"
"""Profile as in the device plugin's resource, which has `.` for every `+` of nvidia-smi's `1g.24gb+gfx`."""

GpuType = Annotated[
    str,
    Matches(
        rf"(?!{_MIG}$)[A-Za-z][A-Za-z0-9_.-]*",
        "needs letters, digits, '_', '-' and '.', a letter first, as users write it in --gpus=h100:2.",
        63,
    ),
]
"""Type of a GRES: users name it in `--gpus=<type>:<number>`."""

MigProfile = Annotated[
    str,
    Matches(
        _MIG,
        'needs a MIG profile as the device plugin names its resource, such as "1g.10gb", "1g.10gb.me", "1g.24gb.gfx" '
        'or "1g.24gb-me": "." for each "+" that nvidia-smi prints.',
    ),
]
"""Profile of MIG instances, as in the resource `nvidia.com/mig-<profile>`."""


class Vendor(StrEnum):
    """Vendors of GPUs whose device files slurmd gets, by the domain of the resource."""

    NVIDIA = "nvidia.com"
    """`/dev/nvidia<number>`, and capabilities of MIG instances in `/dev/nvidia-caps`."""
    AMD = "amd.com"
    """`/dev/dri/renderD<number>`."""


class GpusSpec(Model):
    """GPUs of a node set's nodes. The pods request them; Slurm schedules them as the GRES `gpu`."""

    count: Annotated[int, whole(0, _MAX_FILES, why="Slurm's own limit (gres.conf(5)).")] = 0
    """Whole GPUs of a node. Default: none, for nodes with only MIG instances."""
    type: GpuType | None = None
    """Slurm's type of the whole GPUs, such as `h100`, for `--gpus=h100:2`. Default: none; users give only a number."""
    resource: ResourceName = "nvidia.com/gpu"
    """Extended resource of one whole GPU, as its device plugin names it: of `nvidia.com/` or `amd.com/`."""
    mig: dict[MigProfile, Annotated[int, whole(1, _MAX_FILES)]] = Field(default_factory=dict)
    """MIG instances of a node by profile, such as `1g.10gb: 7`. They are resources of the device plugin's strategy
    `mixed` (`nvidia.com/mig-1g.10gb`), and types of GPUs in Slurm: `--gpus=1g.10gb:1`."""
    shards_per_gpu: Annotated[int, whole(2, 1024)] | None = None
    """Jobs that may share a whole GPU by `--gres=shard:1`, without any isolation between them. Default: none."""
    sockets: tuple[Annotated[int, whole(0, 1023)], ...] | None = None
    """Socket that every whole GPU is attached to, counted from 0, in the order of the device files, such as
    `[0, 0, 0, 0, 1, 1, 1, 1]`. Set it if the machine hides it, as some virtual machines do. Needs `sockets` of the node
    set. Default: read from the machine when a pod starts (docs/placement.md)."""

    @property
    def vendor(self) -> Vendor:
        """Vendor of the GPUs."""
        return Vendor(self.resource.partition("/")[0])

    @property
    def of_nvidia(self) -> bool:
        """True for GPUs of NVIDIA; False for others, and for an invalid resource."""
        return known(self.resource) and self.resource.partition("/")[0] == Vendor.NVIDIA

    @property
    def total(self) -> int:
        """Number of whole GPUs and MIG instances of a node."""
        return self.count + sum(self.mig.values())

    @property
    def resources(self) -> dict[str, int]:
        """Extended resources of a pod, by name."""
        of_profiles = {f"{Vendor.NVIDIA}/mig-{profile}": number for profile, number in sorted(self.mig.items())}
        return {**({self.resource: self.count} if self.count else {}), **of_profiles}

    @property
    def types(self) -> dict[str | None, int]:
        """Number of GPUs by Slurm's type."""
        return {**({self.type: self.count} if self.count else {}), **dict(sorted(self.mig.items()))}

    @property
    def shards(self) -> int:
        """Shards of a node."""
        return self.count * (self.shards_per_gpu or 0)

    @property
    def gres(self) -> str:
        """Value of `Gres` in a node's registration."""
        of_types = [f"gpu:{kind}:{number}" if kind else f"gpu:{number}" for kind, number in self.types.items()]
        return ",".join([*of_types, *([f"shard:{self.shards}"] if self.shards else [])])


def problems(gpus: GpusSpec | None, path: str, *, constrained: bool) -> Iterator[Problem]:
    """Yield problems between the keys of a node set's GPUs, and MIG instances that would not be isolated."""
    if gpus is None or not known(gpus):
        return
    found = list(_own_problems(gpus, path))
    yield from found
    if not found and known(gpus.mig) and gpus.mig and not constrained:
        yield Problem(
            f"{path}.mig",
            'needs slurm.constrain = "cgroup": CUDA takes the UUID of an instance, but Slurm gives a number, which is '
            "only right if the kernel shows a job nothing but its own instances.",
        )


def _own_problems(gpus: GpusSpec, path: str) -> Iterator[Problem]:
    if known(gpus.count, gpus.mig) and not gpus.count and not gpus.mig:
        yield Problem(path, 'no GPU: give their number as "count", MIG instances as "mig", or remove "gpus".')
    if known(gpus.resource):
        yield from _vendor_problems(gpus, path)
    if known(gpus.count, gpus.mig) and gpus.count and gpus.mig and gpus.type is None:
        yield Problem(
            f"{path}.type",
            "missing: MIG instances have types, and Slurm needs a type for all GPUs of a node or for none "
            '(gres.conf(5)). Give the type of the whole GPUs, such as "h100".',
        )
    if known(gpus.count, gpus.shards_per_gpu) and gpus.shards_per_gpu and (not gpus.count or gpus.mig):
        yield Problem(
            f"{path}.shards_per_gpu",
            "needs nodes with only whole GPUs: a MIG instance is a share already. Remove it, or declare the whole GPUs "
            "as a separate node set.",
        )
    if known(gpus.count, gpus.mig, gpus.sockets) and gpus.sockets is not None:
        yield from _socket_problems(gpus, gpus.sockets, f"{path}.sockets")
    if known(gpus.mig) and len(gpus.mig) > 1:
        yield Problem(
            f"{path}.mig",
            f"got {len(gpus.mig)} profiles, but only one is allowed: slurmd cannot distinguish instances of several "
            "profiles by "
            "their device files. Give every profile its own node set.",
        )
    if known(gpus.count, gpus.mig) and gpus.total > _MAX_FILES:
        yield Problem(
            path, f"{gpus.total} GPUs on a node; {_MAX_FILES} at most are allowed (gres.conf(5)). Lower them."
        )


def _socket_problems(gpus: GpusSpec, sockets: tuple[int, ...], path: str) -> Iterator[Problem]:
    if gpus.mig:
        yield Problem(
            path, "needs nodes with only whole GPUs: sockets of MIG instances are read from the machine. Remove it."
        )
    elif len(sockets) != gpus.count:
        yield Problem(
            path,
            f"got {len(sockets)}, but gpus.count is {gpus.count}. Give one socket for every GPU, such as [0, 1].",
        )


def _vendor_problems(gpus: GpusSpec, path: str) -> Iterator[Problem]:
    domain = gpus.resource.partition("/")[0]
    if domain not in {*Vendor}:
        yield Problem(
            f"{path}.resource",
            f'got "{gpus.resource}", needs a resource of {" or ".join(f"{vendor}/" for vendor in Vendor)}, whose '
            "device "
            "files are known. Declare any other resource in extra_resources.",
        )
    elif re.search(r"/mig-", gpus.resource):
        yield Problem(
            f"{path}.resource",
            f'got "{gpus.resource}", a resource of MIG instances. Declare them by their profile: '
            f'mig: {{"{gpus.resource.partition("/mig-")[2]}": {gpus.count or 1}}}.',
        )
    elif domain != Vendor.NVIDIA and known(gpus.mig) and gpus.mig:
        yield Problem(f"{path}.mig", f"only GPUs of {Vendor.NVIDIA} have MIG instances. Remove it.")
