"""Plan for nodes that are to leave: drain, wait, requeue or cancel jobs, continue or stop.

`plan` is pure: every look at slurmctld makes a new plan from the newest state. A plan depends only on its arguments, so
that the next run continues a killed one.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeVar

from soperator_pulumi.slurm.drain.checks import Evidence, why_not_free
from soperator_pulumi.slurm.drain.formatting import named
from soperator_pulumi.slurm.drain.reason import RECREATES_PODS, Marker, Operation, drain_of_ours, drained_by_another
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.drain.time_out import Held, ProtectingSet, Treatment, verdict
from soperator_pulumi.slurm.hostlist import compress
from soperator_pulumi.slurm.models import Job, Node, Reservation, Snapshot
from soperator_pulumi.spec.drain import DrainSpec, Reaction

T = TypeVar("T")

_NOTHING: Mapping[int, float] = MappingProxyType({})
_NONE_REFUSED: Mapping[int, str] = MappingProxyType({})
_NO_OTHERS: Mapping[str, DrainSpec] = MappingProxyType({})


@dataclass(frozen=True)
class Waiting:
    """A node that is not free yet."""

    why: str
    """Reason why the node is not free, written to follow its name."""
    jobs: tuple[Job, ...]
    """Jobs that hold the node."""
    until: float | None
    """Latest end of these jobs by their limits, in seconds since 1970; None without jobs or without a limit."""


@dataclass(frozen=True)
class Plan:
    """Actions to take now."""

    drain: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Nodes to drain now, by reason. It never includes nodes that someone else has drained."""
    free: frozenset[str] = frozenset()
    """Nodes whose pods may be removed."""
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    """All other nodes, including those to drain now."""
    requeue: tuple[int, ...] = ()
    """Jobs to requeue now."""
    cancel: tuple[int, ...] = ()
    """Jobs to cancel now."""
    stop: tuple[str, ...] = ()
    """Reasons to stop: undrain all nodes and remove none. Then no node is drained, and no job requeued or cancelled."""
    refused: bool = False
    """True if the run stops because something depends on a node (`drain.reservations`, `drain.pending_jobs`)."""
    foreign: Mapping[str, str] = field(default_factory=dict)
    """Nodes that someone else has drained, with the reasons."""
    reserved: Mapping[str, tuple[Reservation, ...]] = field(default_factory=dict)
    """Nodes named by a current or future reservation."""
    pending: Mapping[str, tuple[Job, ...]] = field(default_factory=dict)
    """Nodes that pending jobs request by name."""
    protecting: tuple[ProtectingSet, ...] = ()
    """Node sets that lose no node, but whose policies protect jobs here that also hold their nodes."""

    @property
    def done(self) -> bool:
        """True if all nodes are free."""
        return not self.waiting and not self.stop


def plan(
    leaving: Sequence[DrainRequest],
    snapshot: Snapshot,
    marker: Marker,
    *,
    elapsed_seconds: float,
    now: float,
    treated: Mapping[int, float] = _NOTHING,
    unrequeueable: Mapping[int, str] = _NONE_REFUSED,
    others: Mapping[str, DrainSpec] = _NO_OTHERS,
) -> Plan:
    """Return what to do now, for all node sets at once: a reason to stop one of them stops all.

    Args:
        leaving: Nodes that are to leave; the same throughout a run.
        snapshot: Newest state of slurmctld, not older than any state seen before.
        marker: Marker of this run, without a previous reason.
        elapsed_seconds: Time since this run began.
        now: Time in seconds since 1970.
        treated: Jobs that this run has requeued or cancelled, with the seconds since.
        unrequeueable: Jobs that Slurm refused to requeue in this run, with Slurm's message.
        others: Policies of the cluster's other node sets, by name: they apply to jobs that hold nodes of both (see
            `shared`). An unknown policy counts as the default, which never requeues or cancels a job.
    """
    names = frozenset(name for node_set in leaving for name in node_set.names)
    held_by = _by_node(names, ((job, job.node_names) for job in snapshot.jobs if job.active))
    reserved = _by_node(
        names,
        ((reservation, reservation.node_names) for reservation in snapshot.reservations if reservation.ends_at > now),
    )
    pending = _by_node(
        names, ((job, job.required_nodes) for job in snapshot.jobs if job.pending and job.job_id not in treated)
    )
    looks = [_look(node_set, snapshot, marker, held_by) for node_set in leaving]
    refusals = [] if marker.operation in RECREATES_PODS else [*_refusals(leaving, reserved, pending)]
    held = [look.held() for look in looks if look.waiting]
    policies = {**others, **{node_set.node_set: node_set.policy for node_set in leaving}}
    protecting = [
        ProtectingSet(node_set, policies.get(node_set) or DrainSpec(), references)
        for node_set, references in shared(leaving, snapshot).items()
    ]
    judged = verdict(held, elapsed_seconds, Treatment(treated, unrequeueable), protecting)
    stop = (*refusals, *judged.stop)
    return Plan(
        drain={} if stop else _together(look.drain for look in looks),
        free=names.difference(*(look.waiting for look in looks)),
        waiting={name: waiting for look in looks for name, waiting in look.waiting.items()},
        requeue=() if stop else judged.requeue,
        cancel=() if stop else judged.cancel,
        stop=stop,
        refused=bool(refusals),
        foreign={
            name: node.reason
            for name in sorted(names)
            if (node := snapshot.nodes.get(name)) and drained_by_another(node, marker.owner)
        },
        reserved=reserved,
        pending=pending,
        protecting=tuple(protecting),
    )


def together(plans: Sequence[Plan]) -> Plan:
    """Return the actions of plans for different nodes, none of which stops, as one plan."""
    drain: dict[str, tuple[str, ...]] = {}
    for reason, names in (drained for planned in plans for drained in planned.drain.items()):
        drain[reason] = (*drain.get(reason, ()), *names)
    waiting = {name: held for planned in plans for name, held in planned.waiting.items()}
    requeue = {job_id for planned in plans for job_id in planned.requeue}
    cancel = {job_id for planned in plans for job_id in planned.cancel} - requeue
    free = frozenset[str]().union(*(planned.free for planned in plans))
    return Plan(drain, free, waiting, tuple(sorted(requeue)), tuple(sorted(cancel)))


def shared(leaving: Sequence[DrainRequest], snapshot: Snapshot) -> dict[str, frozenset[str]]:
    """Return the jobs on leaving nodes that also hold nodes of node sets that lose no node.

    Returns:
        References of jobs, by the name of the other node set.
    """
    going = {name: node_set.node_set for node_set in leaving for name in node_set.names}
    holders: dict[str, set[str]] = {}
    everywhere: dict[str, set[str]] = {}
    for job in snapshot.jobs:
        if job.active:
            sets = {going[name] for name in job.node_names if name in going}
            holders.setdefault(job.reference, set()).update(sets)
            everywhere.setdefault(job.reference, set()).update(name.rpartition("-")[0] for name in job.node_names)
    found: dict[str, set[str]] = {}
    for reference, leaves in holders.items():
        for node_set in everywhere[reference] - leaves if leaves else ():
            found.setdefault(node_set, set()).add(reference)
    return {node_set: frozenset(found[node_set]) for node_set in sorted(found)}


def drained_for(
    operations: Collection[Operation], names: Iterable[str], snapshot: Snapshot, owner: str
) -> frozenset[str]:
    """Return the nodes of `names` that this cluster's drains for one of `operations` hold."""
    markers = {name: drain_of_ours(snapshot.nodes[name], owner) for name in names if name in snapshot.nodes}
    return frozenset(name for name, marker in markers.items() if marker and marker.operation in operations)


@dataclass(frozen=True)
class _Look:
    """State of one node set at one time."""

    leaving: DrainRequest
    drain: Mapping[str, str]
    """Nodes to drain, with the reason to give."""
    waiting: Mapping[str, Waiting]
    undrained: frozenset[str]
    """Nodes to drain now, and nodes that registered and got jobs after the list of nodes was read."""

    def held(self) -> Held:
        """Return the node set as its policy judges it."""
        jobs = {job.job_id: job for waiting in self.waiting.values() for job in waiting.jobs}
        return Held(self.leaving, tuple(self.waiting), tuple(jobs.values()), self.undrained)


def _look(leaving: DrainRequest, snapshot: Snapshot, marker: Marker, held_by: Mapping[str, tuple[Job, ...]]) -> _Look:
    drain: dict[str, str] = {}
    waiting: dict[str, Waiting] = {}
    for name in leaving.names:
        node, jobs = snapshot.nodes.get(name), held_by.get(name, ())
        if node is not None and (reason := _reason(node, marker)):
            drain[name] = reason
        against = why_not_free(
            Evidence(name, node, jobs, marker, name in leaving.never_started, name in leaving.starting)
        )
        if against:
            waiting[name] = Waiting(", ".join(against), jobs, _last_end(jobs))
    unknown = {name for name in waiting if name not in snapshot.nodes and name in held_by}
    return _Look(leaving, drain, waiting, frozenset(drain) | unknown)


def _reason(node: Node, marker: Marker) -> str | None:
    """Return the reason to drain a node with; None if this run or someone else has drained it."""
    if drained_by_another(node, marker.owner) or "UNDRAIN" in node.state:
        return None  # an undrain is in progress: decide at the next look
    held = drain_of_ours(node, marker.owner)
    if held and (held.operation, held.run) == (marker.operation, marker.run):
        return None
    # Slurm 24.11 keeps the reason after an undrain, so a node may have such a reason without a drain.
    earlier = Marker.read(node.reason, marker.owner)
    return str(replace(marker, before=earlier.before if earlier else node.reason))


def _last_end(jobs: Collection[Job]) -> float | None:
    ends = [job.ends_at for job in jobs if job.ends_at is not None]
    return max(ends) if ends and len(ends) == len(jobs) else None


def _by_node(names: frozenset[str], things: Iterable[tuple[T, frozenset[str]]]) -> dict[str, tuple[T, ...]]:
    """Return the items of every node in `names`, without nodes that have none."""
    found: dict[str, list[T]] = {}
    for thing, nodes in things:
        for name in names & nodes:
            found.setdefault(name, []).append(thing)
    return {name: tuple(found[name]) for name in sorted(found)}


def _together(drains: Iterable[Mapping[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the nodes by reason, so that one call drains all nodes with the same reason."""
    found: dict[str, list[str]] = {}
    for drain in drains:
        for name, reason in drain.items():
            found.setdefault(reason, []).append(name)
    return {reason: tuple(names) for reason, names in found.items()}


def _refusals(
    leaving: Iterable[DrainRequest],
    reserved: Mapping[str, tuple[Reservation, ...]],
    pending: Mapping[str, tuple[Job, ...]],
) -> Iterator[str]:
    for node_set in leaving:
        if node_set.policy.reservations is Reaction.REFUSE:
            for reservation, names in _named_in(node_set.names, reserved):
                yield (
                    f"{node_set.node_set}: reservation {reservation.name} names {compress(names)}, and "
                    "drain.reservations "
                    "is refuse. Wait for its end, remove the nodes from it, or set the policy to report."
                )
        if node_set.policy.pending_jobs is Reaction.REFUSE:
            for job, names in _named_in(node_set.names, pending):
                yield (
                    f"{node_set.node_set}: pending {named(job)} asks for {compress(names)}, and drain.pending_jobs is "
                    "refuse. Cancel it, change its nodes, or set the policy to report."
                )


def _named_in(names: Iterable[str], things: Mapping[str, tuple[T, ...]]) -> list[tuple[T, list[str]]]:
    """Return the things that name any of `names`, with the names."""
    found: dict[T, list[str]] = {}
    for name in names:
        for thing in things.get(name, ()):
            found.setdefault(thing, []).append(name)
    return [*found.items()]
