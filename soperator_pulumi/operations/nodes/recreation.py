"""Choice of the nodes whose pods are recreated, and of the next wave, from the state at one time."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property

from soperator_pulumi.operations.nodes.live_node_set import WORKER_CONTAINER
from soperator_pulumi.operations.nodes.registration import NodeSetStatus
from soperator_pulumi.slurm.drain.reason import Marker, Operation, drained_by_another
from soperator_pulumi.slurm.models import Job
from soperator_pulumi.spec.types.int_or_percent import Share

_PASSING = frozenset({"NOT_RESPONDING"})
"""State that an undrained node shows for some seconds, until slurmctld has contacted its slurmd again."""


@dataclass(frozen=True)
class Recreation:
    """A node set whose pods have changed."""

    status: NodeSetStatus
    jobs: Sequence[Job]
    owner: str
    """Owner in the reasons of drains."""
    max_unavailable: Share
    tolerated: int = 0
    """Number of nodes with new pods that may be missing without counting as out of service."""

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
        old = {*self.status.outdated}
        new = [name for name in self.status.names if name in self._lost and name not in old]
        counted = (self._lost | self._unready) - {*self.status.missing_of(new)[: self.tolerated]}
        return tuple(name for name in self.status.names if name in counted)

    def takes_jobs(self, name: str) -> bool:
        """Return True if jobs may start on this node."""
        return name not in self._lost

    def wave(self, outdated: Sequence[str]) -> tuple[str, ...]:
        """Return the next of these nodes to recreate; none while too many are out of service and must join first.

        Nodes without jobs do not wait for those with jobs.
        """
        usable = [name for name in outdated if name not in self._unready]
        nodes = self.status.nodes
        foreign = {name for name in usable if name in nodes and drained_by_another(nodes[name], self.owner)}
        out = {*self.out_of_service} | (foreign - self._busy.keys())
        wave = next_wave(usable, out, len(self.status.names), self.max_unavailable, self._busy)
        if not wave:  # as many as allowed of those that take jobs without being ready
            room = max(0, self.budget - len(self._lost & {*self.out_of_service}))
            wave = tuple(name for name in outdated if name in self._unready)[:room]
        return tuple(name for name in wave if name not in self._busy) or wave

    def waves(self, outdated: Sequence[str], limit: int) -> tuple[list[tuple[str, ...]], int]:
        """Return the order in which these nodes would be recreated if nothing else changed.

        Args:
            outdated: Their names.
            limit: Number of waves to look ahead.

        Returns:
            The waves, and the number of nodes left for later ones.
        """
        recreation, left, waves = self, [*outdated], list[tuple[str, ...]]()
        while left and len(waves) < limit:
            wave = recreation.wave(left) or tuple(left[: self.budget])
            waves.append(wave)
            chosen = {*wave}
            left = [name for name in left if name not in chosen]
            recreation = replace(recreation, status=_in_service(recreation.status, wave))
        return waves, len(left)

    @cached_property
    def _markers(self) -> Mapping[str, Marker]:
        return self.status.drained_by(self.owner)

    @cached_property
    def _leaving(self) -> frozenset[str]:
        """Nodes drained for a scale-down that does not wait for their jobs."""
        return frozenset(name for name, marker in self._markers.items() if marker.operation is Operation.SCALE_DOWN)

    @cached_property
    def _lost(self) -> frozenset[str]:
        """Nodes on which no job can start, so that recreating them loses nothing."""
        return frozenset(name for name in self.status.names if name not in self._leaving and self._is_lost(name))

    @cached_property
    def _unready(self) -> frozenset[str]:
        """Nodes on which Slurm starts jobs although their pods are not ready."""
        ready = {name for name, pod in self.status.live.pods.items() if pod.ready and not pod.going}
        return frozenset(self.status.names) - self._leaving - self._lost - ready

    @cached_property
    def _busy(self) -> dict[str, float]:
        """Ends of the last jobs of nodes, in seconds since 1970, by node."""
        busy: dict[str, float] = {}
        for name, end in _ends(self.jobs):
            busy[name] = max(busy.get(name, 0.0), end)
        return busy

    def _is_lost(self, name: str) -> bool:
        pod, node = self.status.live.pods.get(name), self.status.nodes.get(name)
        if pod is None or node is None or not pod.runs(WORKER_CONTAINER):
            return True
        return name in self._markers or not replace(node, state=node.state - _PASSING).joined


def next_wave(
    outdated: Sequence[str],
    unavailable: AbstractSet[str],
    total: int,
    max_unavailable: Share,
    busy: Mapping[str, float],
) -> tuple[str, ...]:
    """Return the nodes to drain and recreate now; empty if no more may be out of service.

    Nodes that are out of service anyway and hold no job come first and all at once, as that costs nothing; then idle
    nodes; then those whose jobs end first. A node that is out of service while jobs run on it comes when no other node
    is left.

    Args:
        outdated: The nodes whose pods are of an older template, including those that are being recreated.
        unavailable: The node set's nodes on which no job can start: missing, not ready, draining or drained.
        total: Wanted number of nodes.
        max_unavailable: Number that may be unavailable at a time; one is always allowed.
        busy: Ends of the last jobs of nodes, in seconds since 1970, by name; infinity without a time limit. Nodes
            without jobs are not included.
    """
    room = max(1, max_unavailable.of(total)) - len(unavailable)
    out = [name for name in outdated if name in unavailable]
    in_service = [name for name in outdated if name not in unavailable]
    in_service.sort(key=lambda name: busy.get(name, 0.0))
    wave = [name for name in out if name not in busy] + in_service[: max(0, room)]
    return tuple(wave or out)


def _in_service(status: NodeSetStatus, names: Sequence[str]) -> NodeSetStatus:
    nodes = {name: replace(status.nodes[name], state=frozenset({"IDLE"})) for name in names if name in status.nodes}
    return replace(status, nodes={**status.nodes, **nodes})


def _ends(jobs: Sequence[Job]) -> Iterator[tuple[str, float]]:
    for job in jobs:
        for name in job.node_names if job.active else ():
            yield name, float("inf") if job.ends_at is None else job.ends_at
