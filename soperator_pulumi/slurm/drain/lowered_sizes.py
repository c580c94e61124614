"""Pending jobs that request larger nodes than there will be once pods are recreated: Slurm holds them.

Slurm checks the size of a job's nodes at submission, and again whenever it tries to start the job. If too few nodes
have the memory or the CPUs then, the job gets the reason BadConstraints and the priority 0, and keeps them whatever
nodes come later. CPUs of reserved cores count as missing (measured with Slurm 26.05).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from soperator_pulumi.slurm.drain.formatting import named
from soperator_pulumi.slurm.models import Job, Node, NodeSize, Snapshot
from soperator_pulumi.wording import counted

_JOBS = 10
"""Most jobs that are named."""

_UNITS = ("CPU", "MiB")

_NONE = NodeSize(memory_mib=0, cpus=0)
"""Size of a node that leaves."""


def held_lines(
    node_set: str, names: Collection[str], sizes: Mapping[str, NodeSize], snapshot: Snapshot
) -> Iterator[str]:
    """Yield lines about pending jobs that fit now, and will not fit when nodes of this node set are recreated.

    Args:
        node_set: The node set.
        names: Its nodes to be recreated.
        sizes: Size of a node for jobs after the update, by node set of the cluster: other node sets may be lowered in
            the same update. Nodes of node sets that are not in it leave.
        snapshot: State of slurmctld.
    """
    if node_set not in sizes:  # recorded by a version that did not give the memory
        return
    size = sizes[node_set]
    kinds = _kinds(snapshot.nodes.values(), frozenset(names), sizes)
    jobs = [job for job in snapshot.jobs if job.pending and not size.takes(job) and _is_held(job, kinds)]
    if not jobs:
        return
    lowered = _amounts(size, [unit for unit in _UNITS if any(unit in _lacking(size, job) for job in jobs)])
    reason = "because too few others have what they ask for"
    yield f"Held by Slurm (BadConstraints) once these nodes have {lowered}, {reason}:"
    for job in jobs[:_JOBS]:
        units = _lacking(size, job)
        asked = _amounts(NodeSize(job.node_memory_mib, job.node_cpus), units)
        yield f"  {named(job)}, {asked} on a node. To let it start on them{_next_step(job, size, units)}"
    if len(jobs) > _JOBS:
        yield f"  and {counted(len(jobs) - _JOBS, 'more job')}"


def _lacking(size: NodeSize, job: Job) -> list[str]:
    """Return the units of what a node of this size lacks for a job."""
    lacks = {
        "CPU": not replace(size, memory_mib=job.node_memory_mib).takes(job),
        "MiB": not replace(size, cpus=None).takes(job),
    }
    return [unit for unit in _UNITS if lacks[unit]]


def _amounts(size: NodeSize, units: Collection[str]) -> str:
    """Return the parts of a size as `16 CPUs and 8192 MiB`."""
    texts = {"CPU": counted(size.cpus or 0, "CPU"), "MiB": f"{size.memory_mib} MiB"}
    return " and ".join(texts[unit] for unit in units)


def _next_step(job: Job, size: NodeSize, units: Collection[str]) -> str:
    """Return the rest of a line, with a command if a job only requests too much memory.

    No single command lowers CPUs: if the numbers of tasks, of CPUs, and of CPUs of a task don't agree, Slurm holds the
    job all the same (measured with Slurm 26.05).
    """
    if "CPU" in units:
        return f", cancel it and submit it with at most {_amounts(size, units)} on a node"
    return f": scontrol update jobid={job.reference} MinMemoryNode={size.memory_mib}"


@dataclass(frozen=True)
class _Kind:
    """Properties of a node that decide whether a job fits. A large cluster has few kinds of nodes, and many jobs."""

    now: NodeSize
    after: NodeSize
    generic_resources: frozenset[str]
    partitions: frozenset[str]
    is_recreated: bool

    def has(self, job: Job) -> bool:
        """Return True if such a node has everything but the size that a job requests, in a partition of the job.

        Features are not compared: a job requests them in an expression, and only slurmctld can evaluate it.
        """
        return self.generic_resources >= job.generic_resources and bool(self.partitions & job.partitions)


def _kinds(nodes: Iterable[Node], names: Collection[str], sizes: Mapping[str, NodeSize]) -> dict[_Kind, set[str]]:
    """Return the names of the nodes of every kind."""
    kinds: dict[_Kind, set[str]] = {}
    for node in nodes:
        now = NodeSize(node.memory_mib, node.cpus)
        after = sizes.get(node.name.rpartition("-")[0], _NONE)
        kind = _Kind(now, after, node.generic_resources, node.partitions, node.name in names)
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
        fits, stays = kind.now.takes(job), kind.after.takes(job)
        now += count * fits
        later += count * stays
        loses = loses or (kind.is_recreated and fits and not stays and count > 0)
    return now >= job.node_count > later and loses
