"""What to do now with the nodes that are to leave: drain, wait, treat jobs, go on or stop.

`plan` is pure and made anew at every look from what slurmctld said just now. It remembers nothing but what it is
given, so that a run which was killed is gone on with by the next one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from soperator_pulumi.slurm.leaving import Leaving
from soperator_pulumi.slurm.marker import Marker
from soperator_pulumi.slurm.states import Job, Reservation, Snapshot

TREATED_SECONDS = 300
"""How long requeued or cancelled jobs may take to leave their nodes: Slurm's KillWait (30 s) and UnkillableStepTimeout
(180 s) as this package sets them, and a margin."""

_NOTHING: Mapping[int, float] = MappingProxyType({})
_NOBODY: Mapping[int, str] = MappingProxyType({})


@dataclass(frozen=True)
class Waiting:
    """Why a node is not free yet."""

    why: str
    """In words that follow its name."""
    jobs: tuple[Job, ...]
    """The jobs that hold it."""
    until: float | None
    """When the time limit of the last of them ends, in seconds since 1970; None without jobs or without a limit."""


@dataclass(frozen=True)
class Plan:
    """What to do at this look."""

    drain: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The nodes to drain now, by the reason to give. Never one that somebody else has drained."""
    free: frozenset[str] = frozenset()
    """The nodes whose pods may be taken away."""
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    """The others, those to be drained now among them."""
    requeue: tuple[int, ...] = ()
    """The jobs to put back into the queue now."""
    cancel: tuple[int, ...] = ()
    """The jobs to cancel now."""
    stop: tuple[str, ...] = ()
    """Why all of it ends here: put everything back, take nothing away. Nothing is to be drained or treated then."""
    foreign: Mapping[str, str] = field(default_factory=dict)
    """The nodes that somebody else has drained, with the reason."""
    reserved: Mapping[str, tuple[Reservation, ...]] = field(default_factory=dict)
    """The nodes that a reservation of now or later names."""
    pending: Mapping[str, tuple[Job, ...]] = field(default_factory=dict)
    """The nodes that pending jobs ask for by name."""

    @property
    def done(self) -> bool:
        """Whether all nodes are free."""
        return not self.waiting and not self.stop


def plan(
    leaving: Sequence[Leaving],
    snapshot: Snapshot,
    marker: Marker,
    *,
    elapsed_seconds: float,
    now: float,
    treated: Mapping[int, float] = _NOTHING,
    unrequeueable: Mapping[int, str] = _NOBODY,
) -> Plan:
    """Return what to do now, for all node sets at once: what stops one stops all.

    Args:
        leaving: The nodes that are to leave. One run goes on with the same ones.
        snapshot: What slurmctld said just now. One older than one seen before must not be given.
        marker: Of this run, without a reason of before.
        elapsed_seconds: Since this run began.
        now: In seconds since 1970.
        treated: The jobs that this run has requeued or cancelled, each with the seconds since.
        unrequeueable: The jobs that Slurm refused to requeue in this run, with its words.
    """
    raise NotImplementedError


def put_back(names: Iterable[str], snapshot: Snapshot, owner: str) -> frozenset[str]:
    """Return those of `names` that a drain of ours holds: to be resumed when nothing is taken away after all."""
    raise NotImplementedError
