"""Pending jobs that ask for more memory than nodes have once their pods are recreated: Slurm holds them.

Slurm checks the size of a job's nodes at submit, and again whenever it tries to start the job. If too few nodes have
the memory then, the job gets the reason BadConstraints and the priority 0, and stays so whatever nodes come later.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from soperator_pulumi.slurm.drain.formatting import counted, named
from soperator_pulumi.slurm.models import Job, Node, Snapshot

_JOBS = 10
"""Most jobs that are named."""


def held_lines(
    node_set: str, names: Collection[str], memory_mib: Mapping[str, int], snapshot: Snapshot
) -> Iterator[str]:
    """Yield lines about jobs that wait, fit now, and fit no more when nodes of this node set are recreated.

    Args:
        node_set: The node set.
        names: Its nodes to be recreated.
        memory_mib: Memory that Slurm schedules on a node after the update, in MiB, by node set of the cluster: other
            node sets may be lowered in the same update. Nodes of node sets that are not in it leave.
        snapshot: State of slurmctld.
    """
    if node_set not in memory_mib:  # recorded by a version that did not give the memory
        return
    nodes = snapshot.nodes.values()
    after = [replace(node, memory_mib=memory_mib.get(node.name.rpartition("-")[0], 0)) for node in nodes]
    jobs = [
        job
        for job in snapshot.jobs
        if job.pending and job.node_memory_mib > memory_mib[node_set] and _is_held(job, names, nodes, after)
    ]
    if not jobs:
        return
    yield (
        f"Held by Slurm (BadConstraints) once these nodes have {memory_mib[node_set]} MiB, because too few others have "
        "what they ask for:"
    )
    for job in jobs[:_JOBS]:
        yield (
            f"  {named(job)}, {job.node_memory_mib} MiB on a node. To let it start on them: scontrol update "
            f"jobid={job.reference} MinMemoryNode={memory_mib[node_set]}"
        )
    if len(jobs) > _JOBS:
        yield f"  and {counted(len(jobs) - _JOBS, 'more job')}"


def _is_held(job: Job, names: Collection[str], nodes: Collection[Node], after: Collection[Node]) -> bool:
    """Return True if a job has enough nodes now, and too few after the update, as it loses some of these names."""
    fitting, later = _fitting(job, nodes), _fitting(job, after)
    return len(fitting) >= job.node_count > len(later) and not (fitting - later).isdisjoint(names)


def _fitting(job: Job, nodes: Collection[Node]) -> frozenset[str]:
    """Return the nodes that have what a job asks for, in a partition of the job.

    Features are not compared: a job asks for them in an expression, and only slurmctld can evaluate it.
    """
    return frozenset(
        node.name
        for node in nodes
        if node.memory_mib >= job.node_memory_mib
        and node.generic_resources >= job.generic_resources
        and node.partitions & job.partitions
        and (not job.required_nodes or node.name in job.required_nodes)
    )
