"""Batches of a drain run: nodes whose drain began at the same time, and the jobs that concern them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.hostlist import in_order
from soperator_pulumi.slurm.models import Job


@dataclass(frozen=True)
class DrainBatch:
    """Nodes whose drain began at the same time, from which their policies' time-outs count."""

    leaving: tuple[DrainRequest, ...]
    began: float

    def changed(self, change: Callable[[DrainRequest], DrainRequest]) -> "DrainBatch":
        """Return the batch with its requests changed."""
        return replace(self, leaving=tuple(map(change, self.leaving)))


class JobsOfNodes:
    """Jobs by the nodes that they hold or require, so that a batch looks only at its own jobs."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._parts: dict[str, list[Job]] = {}
        """All parts of a job, on other nodes as well."""
        self._by_node: dict[str, dict[str, None]] = {}
        for job in jobs:
            self._parts.setdefault(job.reference, []).append(job)
            for name in job.node_names | job.required_nodes:
                self._by_node.setdefault(name, {})[job.reference] = None

    def of(self, names: Iterable[str]) -> tuple[Job, ...]:
        """Return the jobs of nodes, whole, in the order of the nodes."""
        references = {reference: None for name in in_order(names) for reference in self._by_node.get(name, ())}
        return tuple(job for reference in references for job in self._parts[reference])
