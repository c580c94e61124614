"""Pending jobs that ask for more memory than nodes have once their pods are recreated: Slurm holds them.

Slurm checks the size of a job's nodes at submit, and again whenever it tries to start the job. If too few nodes have
the memory then, the job gets the reason BadConstraints and the priority 0, and stays so whatever nodes come later.
"""

from collections.abc import Collection, Iterator

from soperator_pulumi.slurm.drain.formatting import counted, named
from soperator_pulumi.slurm.models import Job, Node, Snapshot

_JOBS = 10
"""Most jobs that are named."""


def held_lines(names: Collection[str], memory_mib: int, snapshot: Snapshot) -> Iterator[str]:
    """Yield lines about jobs that wait, fit now, and fit no more when these nodes have this much memory.

    Args:
        names: Nodes to be recreated.
        memory_mib: Memory that Slurm schedules on a recreated node, in MiB.
        snapshot: State of slurmctld.
    """
    after = dict.fromkeys(names, memory_mib)
    nodes = snapshot.nodes.values()
    jobs = [
        job
        for job in snapshot.jobs
        if job.pending
        and job.node_memory_mib > memory_mib
        and _fitting(job, nodes, {}) >= job.node_count > _fitting(job, nodes, after)
    ]
    if not jobs:
        return
    yield (
        f"Held by Slurm (BadConstraints) once these nodes have {memory_mib} MiB, because too few others have what they "
        "ask for:"
    )
    for job in jobs[:_JOBS]:
        yield (
            f"  {named(job)}, {job.node_memory_mib} MiB on a node. To let it start on them: scontrol update "
            f"jobid={job.reference} MinMemoryNode={memory_mib}"
        )
    if len(jobs) > _JOBS:
        yield f"  and {counted(len(jobs) - _JOBS, 'more job')}"


def _fitting(job: Job, nodes: Collection[Node], memory_mib: dict[str, int]) -> int:
    """Return the number of nodes that have a job's memory, in a partition of the job."""
    return sum(
        memory_mib.get(node.name, node.memory_mib) >= job.node_memory_mib
        for node in nodes
        if node.partitions & job.partitions and (not job.required_nodes or node.name in job.required_nodes)
    )
