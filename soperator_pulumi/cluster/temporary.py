"""Temporary directories of pods, /tmp and /dev/shm: in memory and of a size, so that filling them hurts nobody else.

On the machine's disk a directory has no size: whoever fills it fills the machine, and a `sizeLimit` lets the kubelet
end the pod, with slurmd and all jobs in it. A file system in memory refuses to grow. What is in it counts as memory of
the job that wrote it where jobs are constrained, else of the pod. A submount takes the place of either.
"""

from soperator_pulumi.cluster import mounts
from soperator_pulumi.cluster.mounts import Mount
from soperator_pulumi.render import layout
from soperator_pulumi.spec.node_set import NodeSetSpec
from soperator_pulumi.spec.types.quantity import PodResources, amount

_TEMPORARY_SHARE, _SHARED_MEMORY_SHARE = 4, 2
"""Of a pod's memory, /tmp gets a quarter and /dev/shm half, what Linux gives it by default. A quarter is left when both
are full."""

_UNLIMITED_MIB = 4096
"""What is taken for the memory of a pod that has no limit."""

_MIB = 1024**2


def directories(memory_mib: int, *, shared_memory: bool) -> list[Mount]:
    """Return /tmp, and /dev/shm where it is wanted, of a pod of so much memory."""
    found = [mounts.memory("tmp", layout.TEMPORARY_DIR, f"{max(1, memory_mib // _TEMPORARY_SHARE)}Mi")]
    if shared_memory:
        # The runtime's own is 64 MiB, too small for MPI between the tasks of a node.
        found.append(mounts.memory("shm", layout.SHARED_MEMORY_DIR, f"{max(1, memory_mib // _SHARED_MEMORY_SHARE)}Mi"))
    return found


def worker_memory_mib(node_set: NodeSetSpec) -> int:
    """Return the memory of a worker's pod in MiB: what its limit is, or what Slurm schedules."""
    limit = node_set.pod_resources and node_set.pod_resources.limits.memory
    return min(node_set.memory_mib, _mib(limit)) if limit else node_set.memory_mib


def login_memory_mib(resources: PodResources) -> int:
    """Return the memory of a login pod in MiB."""
    return _mib(resources.limits.memory) if resources.limits.memory else _UNLIMITED_MIB


def _mib(quantity: str) -> int:
    return int(amount(quantity) / _MIB)
