"""Choice of the nodes to drain next in a rolling update, from the state at one time."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from math import inf

from soperator_pulumi.operations.nodes.live_node_set import WORKER_CONTAINER
from soperator_pulumi.operations.nodes.registration import NodeSetStatus
from soperator_pulumi.slurm.drain.reason import Marker, Operation, drained_by_another
from soperator_pulumi.slurm.models import Job
from soperator_pulumi.spec.types.int_or_percent import Share

_PASSING = frozenset({"NOT_RESPONDING"})
"""State that an undrained node shows for some seconds, until slurmctld has contacted its slurmd again."""


@dataclass(frozen=True)
class Recreation:
    """A node set whose pods have changed, and the progress of a run."""

    status: NodeSetStatus
    jobs: Sequence[Job]
    owner: str
    """Owner in the reasons of drains."""
    max_unavailable: Share
    tolerated: int = 0
    """Number of nodes with new pods that may be missing without counting as out of service, `lost_by_update` aside."""
    draining: frozenset[str] = frozenset()
    """Nodes that the run drains, or has drained, to recreate them."""
    joining: frozenset[str] = frozenset()
    """Nodes that took jobs until the run recreated them, and that have not joined yet. They count even if they may be
    missing: a template that doesn't work takes no more nodes than `max_unavailable`."""
    only_idle: bool = False
    """True while no node with jobs is to be drained."""

    @cached_property
    def outdated(self) -> tuple[str, ...]:
        """The nodes to recreate: those of an older template that are not about to leave."""
        return tuple(name for name in self.status.outdated if name not in self._leaving)

    @property
    def budget(self) -> int:
        """Number of nodes that may be out of service at a time."""
        return max(1, self.max_unavailable.of(len(self.status.names)))

    @cached_property
    def out_of_service(self) -> tuple[str, ...]:
        """The nodes that count against the budget: missing, not ready, or drained by this stack.

        A node that someone else has drained does not count: it is out of service anyway.
        """
        counted = (self._lost | self._unready) - {*self.excused}
        counted |= (self.draining | self.joining) - self._foreign
        return tuple(name for name in self.status.names if name in counted)

    @cached_property
    def lost_by_update(self) -> tuple[str, ...]:
        """The missing nodes that took jobs until this run, or an earlier one of the same update, recreated them.

        Empty once any node has joined with the new template: then the template isn't the reason.
        """
        if any(self.status.joined(name) for name in self._new):
            return ()
        taken = self.status.live.taken
        return tuple(name for name in self._missing if name in taken)

    @cached_property
    def excused(self) -> tuple[str, ...]:
        """The missing nodes with new pods that don't count, as so many may be missing."""
        lost = {*self.lost_by_update}
        return tuple(name for name in self._missing if name not in lost)[: self.tolerated]

    def takes_jobs(self, name: str) -> bool:
        """Return True if jobs may start on this node."""
        return name not in self._lost

    def runs_slurmd(self, name: str) -> bool:
        """Return True if jobs may start on this node, or could if no run had drained it."""
        pod, node = self.status.live.pods.get(name), self.status.nodes.get(name)
        if pod is None or node is None or not pod.runs(WORKER_CONTAINER):
            return False
        return replace(node, state=node.state - _PASSING).joined

    def taken(self, names: Sequence[str]) -> frozenset[str]:
        """Return the nodes that the update has taken out of service if it takes these now: those not yet back, too."""
        # One that has died with its old pod is lost for another reason.
        dead = {name for name in self.outdated if not self.runs_slurmd(name)}
        taking_jobs = {name for name in names if self.takes_jobs(name)}
        return (self.status.live.taken & self._lost) - dead | taking_jobs

    def next(self) -> tuple[str, ...]:
        """Return the nodes to drain now; none if as many as allowed are out of service."""
        unready = self._unready - self.draining
        later = self._ends.keys() - self._costless if self.only_idle else frozenset()
        passed = self.draining | later
        left = [name for name in self.order(self.outdated) if name not in passed]
        return next_nodes(left, self._costless, unready, {*self.out_of_service}, self.budget)

    def order(self, names: Sequence[str]) -> list[str]:
        """Return nodes in the order of their recreation; names of the same rank stay in the given order.

        Nodes on which no job can start come first; then idle nodes; then those whose jobs end first, by their limits.
        """
        return sorted(names, key=self._rank)

    def groups(self, names: Sequence[str]) -> list[tuple[str, ...]]:
        """Return groups of nodes in the order of their recreation. Nodes of a group have the same rank."""
        return [tuple(group) for _, group in groupby(self.order(names), key=self._rank)]

    @cached_property
    def _markers(self) -> Mapping[str, Marker]:
        return self.status.drained_by(self.owner)

    @cached_property
    def _new(self) -> tuple[str, ...]:
        old = {*self.status.outdated}
        return tuple(name for name in self.status.names if name not in old)

    @cached_property
    def _missing(self) -> tuple[str, ...]:
        return self.status.missing_of(name for name in self._new if name in self._lost)

    @cached_property
    def _leaving(self) -> frozenset[str]:
        """Nodes drained for a scale-down that does not wait for their jobs."""
        return frozenset(name for name, marker in self._markers.items() if marker.operation is Operation.SCALE_DOWN)

    @cached_property
    def _lost(self) -> frozenset[str]:
        """Nodes on which no job can start, so that recreating them loses nothing."""
        return frozenset(
            name
            for name in self.status.names
            if name not in self._leaving and (name in self._markers or not self.runs_slurmd(name))
        )

    @cached_property
    def _unready(self) -> frozenset[str]:
        """Nodes on which Slurm starts jobs although their pods are not ready."""
        ready = {name for name, pod in self.status.live.pods.items() if pod.ready and not pod.going}
        return frozenset(self.status.names) - self._leaving - self._lost - ready

    @cached_property
    def _foreign(self) -> frozenset[str]:
        """Nodes that someone else has drained, and that hold no job."""
        drained = {name for name, node in self.status.nodes.items() if drained_by_another(node, self.owner)}
        return frozenset(drained - self._ends.keys())

    @cached_property
    def _costless(self) -> frozenset[str]:
        """Nodes that no recreation takes from jobs."""
        return self._lost | self._foreign

    @cached_property
    def _ends(self) -> dict[str, float]:
        """Ends of the last jobs of nodes, in seconds since 1970, by node; infinity without a time limit."""
        ends: dict[str, float] = {}
        for job in self.jobs:
            end = inf if job.ends_at is None else job.ends_at
            ends |= {name: max(end, ends.get(name, 0.0)) for name in job.node_names if job.active}
        return ends

    def _rank(self, name: str) -> tuple[bool, float]:
        return name not in self._costless, self._ends.get(name, 0.0)


def next_nodes(
    left: Sequence[str], lost: AbstractSet[str], unready: AbstractSet[str], out: AbstractSet[str], budget: int
) -> tuple[str, ...]:
    """Return the nodes to drain now; empty if no more may be out of service.

    Args:
        left: The nodes to recreate, in their order, without those that are being drained.
        lost: Nodes on which no job can start. They come all at once, as that costs nothing.
        unready: Nodes that count as out of service although jobs may start there.
        out: All nodes that are out of service.
        budget: Number of nodes that may be out of service.
    """
    costless = [name for name in left if name in lost]
    taking_jobs = [name for name in left if name not in lost]
    half_out = [name for name in taking_jobs if name in unready][: max(0, budget - len(out - unready))]
    in_service = [name for name in taking_jobs if name not in unready][: max(0, budget - len(out))]
    return (*costless, *half_out, *in_service)
