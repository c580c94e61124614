"""Nodes of a drain run: batches whose drain began at the same time, their jobs, and the result."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.hostlist import compress, in_order
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


@dataclass(frozen=True)
class DrainResult:
    """Nodes after a drain run."""

    free: frozenset[str]
    """Nodes whose pods may be removed."""
    busy: Mapping[str, str] = field(default_factory=dict)
    """The other nodes, which are drained, with the reasons; only if the policy does not wait."""

    def busy_words(self) -> str:
        """Return why the other nodes are busy, with nodes of the same reason together."""
        by_reason: dict[str, list[str]] = {}
        for name, why in self.busy.items():
            by_reason.setdefault(why, []).append(name)
        return "; ".join(f"{compress(names)} {why}" for why, names in by_reason.items())
