"""Slurm for the whole cluster, and the pod of its controller."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from soperator_pulumi.spec.scheduling import Scheduled
from soperator_pulumi.spec.slurm_settings import SlurmConfExtra
from soperator_pulumi.spec.types.quantity import PodResources, ResourceAmounts
from soperator_pulumi.spec.validation.base import Model, whole

MAX_NODES = 65_536

_HOSTS_IN_A_LIST = 4096
"""Hosts that a list may have at least, however few nodes there are: each task of an arbitrary layout (srun -m) is one.
They cost some 0.3 s of slurmctld (7.7 s for 100,000, measured with 24.11)."""


class Constrain(StrEnum):
    """Enforcement of the CPUs and memory of jobs."""

    CGROUP = "cgroup"
    """By the kernel. Needs machines where slurmd can create cgroups, or slurmd does not start. slurmd counts a
    machine's CPUs from the first (measured), so jobs of two worker pods on one machine share CPUs: give each worker a
    machine of its own."""
    NONE = "none"
    """None: a job can use all resources of the pod. For trials, and for machines without usable cgroups."""


class SlurmSpec(Model):
    """Settings of Slurm for the whole cluster."""

    version: Literal["24.11", "26.05"] = "24.11"
    """Version of Slurm in the images. A later one upgrades a running cluster; an earlier one is refused there."""
    constrain: Constrain = Constrain.CGROUP
    """Enforcement of the CPUs and memory of jobs. Default: by cgroups; without them workers do not start."""
    max_nodes: Annotated[int, whole(1, MAX_NODES, why="Slurm's own limit.")] = 4096
    """Nodes that the cluster may grow to without a change of slurm.conf. Default: 4096; each costs room in slurmctld's
    tables."""
    max_jobs_per_user: Annotated[int, whole(1)] = 5000
    """Waiting and running jobs that a user may have at a time; tasks of an array count. Default: 5000, half of Slurm's
    MaxJobCount, so that no single user keeps the others from submitting."""
    max_environment_kib: Annotated[int, whole(16)] = 1024
    """Size of a batch job's environment in KiB, as a program gets it; its arguments may have as much. Default: 1 MiB,
    half of what Linux gives a program."""
    extra: SlurmConfExtra = Field(default_factory=dict)
    """Further parameters of slurm.conf, checked against Slurm's own. They replace our defaults. Parameters on which the
    cluster is built are refused."""

    @property
    def hosts_in_a_list(self) -> int:
        """The number of hosts that a list of a user may have: slurmctld makes all names while everybody waits."""
        return max(self.max_nodes, _HOSTS_IN_A_LIST)


class ControllerSpec(Scheduled):
    """The pod that runs slurmctld."""

    pod_resources: PodResources = PodResources(
        requests=ResourceAmounts(cpu="500m", memory="1Gi"), limits=ResourceAmounts(memory="4Gi")
    )
    """Resources of the slurmctld container. Default: half a CPU and 1 GiB, at most 4 GiB of memory, and no limit of
    CPU: a throttled controller delays every job."""
