"""Slurm itself, for the whole cluster."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from soperator_pulumi.spec.scheduling import Scheduled
from soperator_pulumi.spec.slurm_settings import SlurmConfExtra
from soperator_pulumi.spec.types.quantity import PodResources, ResourceAmounts
from soperator_pulumi.spec.validation.base import Model, whole

MAX_NODES = 65_536


class Constrain(StrEnum):
    """How jobs are held to the CPUs and memory that they were given."""

    CGROUP = "cgroup"
    """By the kernel. Needs machines where slurmd can make cgroups; where it cannot, slurmd does not start. slurmd
    counts a machine's CPUs from the first (measured), so jobs of two worker pods on one machine are held to the same
    CPUs: give each worker a machine of its own."""
    NONE = "none"
    """Not at all: a job can use what the pod has. For trying out, and for machines without usable cgroups."""


class SlurmSpec(Model):
    """Settings of Slurm for the whole cluster."""

    version: Literal["24.11"] = "24.11"
    """Slurm's version, which the images hold."""
    constrain: Constrain = Constrain.CGROUP
    """How jobs are held to their CPUs and memory. Default: by cgroups, never silently by nothing."""
    max_nodes: Annotated[int, whole(1, MAX_NODES, why="Slurm's own limit.")] = 4096
    """How many nodes the cluster may grow to without a change of slurm.conf. Default: 4096; slurmctld needs room in
    its tables for each."""
    extra: SlurmConfExtra = Field(default_factory=dict)
    """More parameters of slurm.conf, checked against Slurm's own. They replace our defaults; what the cluster is
    built on cannot be set."""


class ControllerSpec(Scheduled):
    """The pod that runs slurmctld."""

    pod_resources: PodResources = PodResources(
        requests=ResourceAmounts(cpu="500m", memory="1Gi"), limits=ResourceAmounts(memory="4Gi")
    )
    """What the slurmctld container asks for. Default: half a CPU and 1 GiB, at most 4 GiB of memory; CPU is not
    limited, as a throttled controller delays every job."""
