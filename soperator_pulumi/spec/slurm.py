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
"""Smallest limit for the hosts in a list, for small clusters too: every task of an arbitrary layout (srun -m) is a host
there. Expanding them costs slurmctld some 0.3 s (7.7 s for 100,000, measured with 24.11)."""

_LARGEST_SCRIPT_KIB = 4096
"""Largest script that slurmd's spool has space for."""

_LARGEST_COMMAND_KIB = 1024


class Constrain(StrEnum):
    """Enforcement of jobs' CPU and memory limits."""

    CGROUP = "cgroup"
    """By the kernel. Needs machines on which slurmd can create cgroups; otherwise slurmd does not start. slurmd counts
    a machine's CPUs from the first one (measured), so jobs of two worker pods on one machine share CPUs: give every
    worker its own machine."""
    NONE = "none"
    """None: a job can use all resources of the pod. For trials, and for machines without usable cgroups."""


class SlurmSpec(Model):
    """Settings of Slurm for the whole cluster."""

    version: Literal["24.11", "26.05"] = "24.11"
    """Version of Slurm in the images. A later version upgrades a running cluster; an earlier one is refused then."""
    constrain: Constrain = Constrain.CGROUP
    """Enforcement of jobs' CPU and memory limits. Default: by cgroups; workers do not start on machines without
    them."""
    max_nodes: Annotated[int, whole(1, MAX_NODES, why="Slurm's own limit.")] = 4096
    """Nodes that the cluster may grow to without a change of slurm.conf. Default: 4096. Every node uses memory of
    slurmctld."""
    max_jobs_per_user: Annotated[int, whole(1)] = 5000
    """Waiting and running jobs that a user may have at a time; tasks of an array count. Default: 5000, half of Slurm's
    MaxJobCount, so that no single user prevents others from submitting."""
    max_script_kib: Annotated[int, whole(16, _LARGEST_SCRIPT_KIB, why="Slurm's own default.")] = 256
    """Size of a batch job's script in KiB. Default: 256. With `max_environment_kib` and `max_jobs_per_user`, one user
    fills at most 4 GiB of `storage.state`."""
    max_environment_kib: Annotated[int, whole(16)] = 512
    """Size of a batch job's environment in KiB, as a program gets it. Default: 512, a quarter of what Linux gives a
    program."""
    max_arguments_kib: Annotated[int, whole(16, _LARGEST_COMMAND_KIB, why="Slurm's own default.")] = 128
    """Size in KiB of a batch job's arguments, of its variables for plugins (SPANK), and of the command line that
    submits a job or starts a step. slurmctld keeps them in memory. At most `max_environment_kib` counts. Default:
    128."""
    extra: SlurmConfExtra = Field(default_factory=dict)
    """Further parameters of slurm.conf, checked against Slurm's own. They replace this project's defaults. Parameters
    on which the cluster is built are refused."""

    @property
    def hosts_in_a_list(self) -> int:
        """Number of hosts that a user's list may have: slurmctld builds all names while other requests wait."""
        return max(self.max_nodes, _HOSTS_IN_A_LIST)


class ControllerSpec(Scheduled):
    """The pod that runs slurmctld."""

    pod_resources: PodResources = PodResources(
        requests=ResourceAmounts(cpu="500m", memory="1Gi"), limits=ResourceAmounts(memory="4Gi")
    )
    """Resources of the slurmctld container. Default: half a CPU and 1 GiB, at most 4 GiB of memory, and no CPU limit: a
    throttled controller delays every job."""
