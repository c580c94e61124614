"""Pending jobs that request more memory than nodes will have once their pods are recreated: Slurm holds them.

Slurm checks the size of a job's nodes at submission, and again whenever it tries to start the job. If too few nodes
have the memory then, the job gets the reason BadConstraints and the priority 0, and keeps them whatever nodes come
later.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from soperator_pulumi.slurm.drain.formatting import counted, named
from soperator_pulumi.slurm.models import Job, Node, Snapshot

_JOBS = 10
"""Most jobs that are named."""


def held_lines(
    node_set: str, names: Collection[str], memory_mib: Mapping[str, int], snapshot: Snapshot
) -> Iterator[str]:
    """Yield lines about pending jobs that fit now, and will not fit when nodes of this node set are recreated.

    Args:
        node_set: The node set.
        names: Its nodes to be recreated.
        memory_mib: Memory that Slurm schedules on a node after the update, in MiB, by node set of the cluster: other
            node sets may be lowered in the same update. Nodes of node sets that are not in it leave.
        snapshot: State of slurmctld.
    """
    if node_set not in memory_mib:  # recorded by a version that did not give the memory
        return
    kinds = _kinds(snapshot.nodes.values(), frozenset(names), memory_mib)
    jobs = [
        job
        for job in snapshot.jobs
        if job.pending and job.node_memory_mib > memory_mib[node_set] and _is_held(job, kinds)
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


@dataclass(frozen=True)
class _Kind:
    """Properties of a node that decide whether a job fits. A large cluster has few kinds of nodes, and many jobs."""

    memory_mib: int
    memory_mib_after: int
    generic_resources: frozenset[str]
    partitions: frozenset[str]
    is_recreated: bool

    def has(self, job: Job) -> bool:
        """Return True if such a node has everything but memory that a job requests, in a partition of the job.

        Features are not compared: a job requests them in an expression, and only slurmctld can evaluate it.
        """
        return self.generic_resources >= job.generic_resources and bool(self.partitions & job.partitions)


def _kinds(nodes: Iterable[Node], names: Collection[str], memory_mib: Mapping[str, int]) -> dict[_Kind, set[str]]:
    """Return the names of the nodes of every kind."""
    kinds: dict[_Kind, set[str]] = {}
    for node in nodes:
        after = memory_mib.get(node.name.rpartition("-")[0], 0)
        kind = _Kind(node.memory_mib, after, node.generic_resources, node.partitions, node.name in names)
        kinds.setdefault(kind, set()).add(node.name)
    return kinds


def _is_held(job: Job, kinds: Mapping[_Kind, set[str]]) -> bool:
    """Return True if a job has enough nodes now, and too few after the update, as recreated ones no longer fit."""
    now = later = 0
    loses = False
    for kind, members in kinds.items():
        if not kind.has(job):
            continue
        count = len(members & job.required_nodes if job.required_nodes else members)
        fits, stays = (mib >= job.node_memory_mib for mib in (kind.memory_mib, kind.memory_mib_after))
        now += count * fits
        later += count * stays
        loses = loses or (kind.is_recreated and fits and not stays and count > 0)
    return now >= job.node_count > later and loses
