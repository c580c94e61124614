"""Extended resources of a node set's pods: GPUs, RDMA devices and others, and huge pages.

Kubernetes does not accept requests that differ from limits for them, so every resource has a single number.
"""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec import gpus
from soperator_pulumi.spec.gpus import GpusSpec, Vendor
from soperator_pulumi.spec.types.names import ObjectName, ResourceName
from soperator_pulumi.spec.types.quantity import MemoryQuantity, amount
from soperator_pulumi.spec.validation.base import Matches, Model, whole
from soperator_pulumi.spec.validation.partial import known

_Number = Annotated[int, whole(1, 1_000_000)]

PageSize = Annotated[
    str, Matches(r"[1-9][0-9]*[KMG]i", 'needs the size of a huge page that machines have, such as "2Mi" or "1Gi".', 8)
]
"""Size of huge pages, as in the resource `hugepages-<size>`."""


class RdmaSpec(Model):
    """RDMA devices of a node set's nodes: InfiniBand, RoCE or EFA."""

    resource: ResourceName
    """Extended resource, as its device plugin names it: `rdma/hca_shared_devices_a`, `nvidia.com/hostdev`,
    `vpc.amazonaws.com/efa`."""
    count: _Number = 1
    """Number of the resource that every pod requests. Default: one."""


class Devices(Model):
    """Devices of a node set's nodes, and the runtime that provides them in pods."""

    gpus: GpusSpec | None = None
    """GPUs. Default: none."""
    rdma: RdmaSpec | None = None
    """RDMA devices. Jobs may then lock memory. Default: none."""
    extra_resources: dict[ResourceName, _Number] = Field(default_factory=dict)
    """Further extended resources of a pod and their numbers. Slurm does not schedule them: all jobs of a node share
    them."""
    runtime_class: ObjectName | None = None
    """Name of an existing RuntimeClass, such as `nvidia`, if the machines' default runtime adds no driver. Default: the
    machines' default runtime."""
    huge_pages: dict[PageSize, MemoryQuantity] = Field(default_factory=dict)
    """Huge pages of a pod by their size, such as `2Mi: 4Gi`. All jobs of a node share them."""

    @property
    def device_resources(self) -> dict[str, str]:
        """Resources of a pod other than CPU and memory, by name."""
        numbers = {
            **(self.gpus.resources if self.gpus else {}),
            **({self.rdma.resource: self.rdma.count} if self.rdma else {}),
            **dict(sorted(self.extra_resources.items())),
        }
        pages = {f"hugepages-{size}": self.huge_pages[size] for size in sorted(self.huge_pages)}
        return {**{name: str(number) for name, number in numbers.items()}, **pages}

    @property
    def taints(self) -> tuple[str, ...]:
        """Keys of taints that keep other pods away from such machines: names of their resources.

        Kubernetes' admission plugin ExtendedResourceToleration has the same rule.
        """
        names = [name for name in self.device_resources if "/" in name]
        if self.gpus and self.gpus.mig:
            names.append(f"{Vendor.NVIDIA}/gpu")
        return tuple(dict.fromkeys(names))


def problems(devices: Devices, path: str, *, constrained: bool) -> Iterator[Problem]:
    """Yield problems between the devices of a node set.

    Args:
        devices: The node set.
        path: Path of the node set.
        constrained: True if cgroups limit jobs to their devices.
    """
    yield from gpus.problems(devices.gpus, f"{path}.gpus", constrained=constrained)
    yield from _named_twice(devices, path)
    for size, memory in devices.huge_pages.items() if known(devices.huge_pages) else ():
        if amount(memory) % amount(size):
            text = f'got "{memory}", needs a multiple of the size of a page, {size}.'
            yield Problem(f"{path}.huge_pages.{size}", text)


def _named_twice(devices: Devices, path: str) -> Iterator[Problem]:
    first: dict[str, str] = {}
    if devices.gpus is not None and known(devices.gpus, devices.gpus.resource, devices.gpus.count, devices.gpus.mig):
        first |= dict.fromkeys(devices.gpus.resources, "gpus")
    if devices.rdma is not None and known(devices.rdma, devices.rdma.resource):
        if devices.rdma.resource in first:
            yield _again(devices.rdma.resource, f"{path}.rdma.resource", f"{path}.gpus")
        first.setdefault(devices.rdma.resource, "rdma")
    for name in devices.extra_resources if known(devices.extra_resources) else ():
        if name in first:
            yield _again(name, f"{path}.extra_resources", f"{path}.{first[name]}")


def _again(name: str, path: str, other: str) -> Problem:
    return Problem(path, f'"{name}" is also a resource of {other}. Remove one.')
