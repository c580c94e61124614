"""NVIDIA's GPU Operator: drivers, container toolkit, device plugin, DCGM and node labels."""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import StrictBool

from soperator_pulumi.spec.platform.chart_part import ChartPart
from soperator_pulumi.spec.scheduling import Toleration
from soperator_pulumi.spec.types.absolute_path import AbsolutePath
from soperator_pulumi.spec.types.names import ObjectName, ResourceName
from soperator_pulumi.spec.validation.base import Matches

JOB_MAPPING = "/var/lib/dcgm-exporter/job-mapping"
"""Directory of the files that name the jobs of GPUs, as in the documentation of dcgm-exporter."""

DriverVersion = Annotated[
    str, Matches(r"[0-9]+\.[0-9]+(\.[0-9]+)?(-[A-Za-z0-9.-]+)?", 'needs a version of the driver, such as "595.91.07".')
]
"""Version of NVIDIA's driver."""


class DriverSource(StrEnum):
    """Origin of NVIDIA's driver."""

    OPERATOR = "operator"
    """The GPU Operator builds and loads it."""
    MACHINE_IMAGE = "machine_image"
    """It is part of the machines' image: GPU images of EKS, GKE, AKS and Nebius."""


class MigStrategy(StrEnum):
    """Naming of the resources of MIG devices."""

    SINGLE = "single"
    """All MIG devices of a machine have the same profile, and the resource name of whole GPUs."""
    MIXED = "mixed"
    """Every profile is a resource, such as `nvidia.com/mig-1g.10gb`."""


class GpuOperatorSpec(ChartPart):
    """NVIDIA's GPU Operator. It never replaces the driver of a machine on its own: see docs/platform.md."""

    OF_EXISTING: ClassVar[tuple[str, ...]] = ("runtime_class", "resource")

    driver: DriverSource | None = None
    """Origin of the driver. Default: machine_image on EKS, GKE, AKS and Nebius, otherwise operator."""
    driver_version: DriverVersion | None = None
    """Version of the driver that the operator loads. Default: the chart's."""
    rdma: StrictBool = False
    """Load the module that gives network adapters access to GPU memory (GPUDirect RDMA)."""
    gdrcopy: StrictBool = False
    """Load GDRCopy, which gives CPUs access to GPU memory, for NCCL's small messages."""
    mig_strategy: MigStrategy = MigStrategy.SINGLE
    """Naming of the resources of MIG devices."""
    runtime_class: ObjectName = "nvidia"
    """RuntimeClass of pods with GPUs, which the operator creates."""
    job_mapping: AbsolutePath = JOB_MAPPING
    """Directory on a machine with a file per GPU that names the GPU's job, for the label `hpc_job` in DCGM's metrics.
    Default: that of dcgm-exporter's documentation."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints of machines with GPUs, in addition to `nvidia.com/gpu`."""
    install_dir: AbsolutePath | None = None
    """Directory of toolkit and driver on the machines. Default: the chart's; `/home/kubernetes/bin/nvidia` on GKE."""
    node_feature_discovery: StrictBool = True
    """Install Node Feature Discovery, which labels machines. Set it to false if the Kubernetes has one."""
    resource: ResourceName = "nvidia.com/gpu"
    """Resource of whole GPUs, which node sets request."""
