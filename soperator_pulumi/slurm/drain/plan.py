"""Plan for the nodes that are to leave: drain, wait, treat jobs, continue or stop.

`plan` is pure: every look makes a new one from the newest state of slurmctld. It remembers only its arguments, so
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
from soperator_pulumi.slurm.drain.time_out import Beside, Held, Treatment, verdict
from soperator_pulumi.slurm.hostlist import compress
from soperator_pulumi.slurm.models import Job, Node, Reservation, Snapshot
from soperator_pulumi.spec.drain import DrainSpec, Reaction

T = TypeVar("T")

_NOTHING: Mapping[int, float] = MappingProxyType({})
_NOBODY: Mapping[int, str] = MappingProxyType({})
_NO_OTHERS: Mapping[str, DrainSpec] = MappingProxyType({})


@dataclass(frozen=True)
class Waiting:
    """A node that is not free yet."""

    why: str
    """Reason, to stand after the node's name."""
    jobs: tuple[Job, ...]
    """Jobs that hold the node."""
    until: float | None
    """End of the last of these jobs by its limit, in seconds since 1970; None without jobs or without a limit."""


@dataclass(frozen=True)
class Plan:
    """Actions at this look."""

    drain: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Nodes to drain now, by the reason to give. No node that somebody else has drained is among them."""
    free: frozenset[str] = frozenset()
    """Nodes whose pods may be removed."""
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    """All other nodes, those to drain now among them."""
    requeue: tuple[int, ...] = ()
    """Jobs to requeue now."""
    cancel: tuple[int, ...] = ()
    """Jobs to cancel now."""
    stop: tuple[str, ...] = ()
    """Reasons to stop here: undrain all nodes, remove none. Then no node is drained and no job is treated."""
    refused: bool = False
    """True where it stops for something that counts on a node (`drain.reservations`, `drain.pending_jobs`)."""
    foreign: Mapping[str, str] = field(default_factory=dict)
    """Nodes that somebody else has drained, with the reason."""
    reserved: Mapping[str, tuple[Reservation, ...]] = field(default_factory=dict)
    """Nodes that a current or future reservation names."""
    pending: Mapping[str, tuple[Job, ...]] = field(default_factory=dict)
    """Nodes that pending jobs request by name."""
    beside: tuple[Beside, ...] = ()
    """Node sets whose policies count for jobs here, although they keep the nodes that these jobs hold there."""

    @property
    def done(self) -> bool:
        """True where all nodes are free."""
        return not self.waiting and not self.stop


def plan(
    leaving: Sequence[DrainRequest],
    snapshot: Snapshot,
    marker: Marker,
    *,
    elapsed_seconds: float,
    now: float,
    treated: Mapping[int, float] = _NOTHING,
    unrequeueable: Mapping[int, str] = _NOBODY,
    others: Mapping[str, DrainSpec] = _NO_OTHERS,
) -> Plan:
    """Return the actions of this look, for all node sets at once: a reason to stop one stops all.

    Args:
        leaving: Nodes that are to leave, the same ones during a run.
        snapshot: Newest state of slurmctld, none older than one seen before.
        marker: Marker of this run, without a reason from before.
        elapsed_seconds: Time since this run began.
        now: Time in seconds since 1970.
        treated: Jobs that this run has requeued or cancelled, each with the seconds since.
        unrequeueable: Jobs that Slurm refused to requeue in this run, with Slurm's message.
        others: Policies of the cluster's other node sets, by name: they count for jobs on nodes of both (see
            `shared`). An unknown policy counts as the default one, by which no job is requeued or cancelled.
    """
    names = frozenset(name for each in leaving for name in each.names)
    held_by = _by_node(names, ((job, job.node_names) for job in snapshot.jobs if job.active))
    reserved = _by_node(names, ((each, each.node_names) for each in snapshot.reservations if each.ends_at > now))
    pending = _by_node(
        names, ((job, job.required_nodes) for job in snapshot.jobs if job.pending and job.job_id not in treated)
    )
    looks = [_look(each, snapshot, marker, held_by) for each in leaving]
    refusals = [] if marker.operation in RECREATES_PODS else [*_refusals(leaving, reserved, pending)]
    held = [look.held() for look in looks if look.waiting]
    beside = [*_beside(leaving, snapshot, others)]
    judged = verdict(held, elapsed_seconds, Treatment(treated, unrequeueable), beside)
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
        beside=tuple(beside),
    )


def shared(leaving: Sequence[DrainRequest], snapshot: Snapshot) -> dict[str, frozenset[str]]:
    """Return the jobs on leaving nodes that also hold nodes of node sets that lose no node.

    Returns:
        References of jobs, by the name of the other node set.
    """
    going = {name: each.node_set for each in leaving for name in each.names}
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
    """Return the nodes of `names` that a drain of ours for one of `operations` holds."""
    markers = {name: drain_of_ours(snapshot.nodes[name], owner) for name in names if name in snapshot.nodes}
    return frozenset(name for name, marker in markers.items() if marker and marker.operation in operations)


@dataclass(frozen=True)
class _Look:
    """One node set at one look."""

    leaving: DrainRequest
    drain: Mapping[str, str]
    """Reason to give, by node."""
    waiting: Mapping[str, Waiting]
    undrained: frozenset[str]
    """Nodes to drain now, and nodes that registered and got jobs after the list of nodes was read."""

    def held(self) -> Held:
        """Return the input of its policy."""
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
    """Return the reason for a drain now; None where this run or somebody else has drained the node."""
    if drained_by_another(node, marker.owner) or "UNDRAIN" in node.state:
        return None  # an undrain in progress is judged at the next look
    held = drain_of_ours(node, marker.owner)
    if held and (held.operation, held.run) == (marker.operation, marker.run):
        return None
    # 24.11 keeps the reason after an undrain, so one of ours may be there without a drain.
    earlier = Marker.read(node.reason, marker.owner)
    return str(replace(marker, before=earlier.before if earlier else node.reason))


def _beside(leaving: Sequence[DrainRequest], snapshot: Snapshot, others: Mapping[str, DrainSpec]) -> Iterator[Beside]:
    policies = {**others, **{each.node_set: each.policy for each in leaving}}
    for node_set, references in shared(leaving, snapshot).items():
        yield Beside(node_set, policies.get(node_set) or DrainSpec(), references)


def _last_end(jobs: Collection[Job]) -> float | None:
    ends = [job.ends_at for job in jobs if job.ends_at is not None]
    return max(ends) if ends and len(ends) == len(jobs) else None


def _by_node(names: frozenset[str], things: Iterable[tuple[T, frozenset[str]]]) -> dict[str, tuple[T, ...]]:
    """Return the things that name each of `names`."""
    found: dict[str, list[T]] = {}
    for thing, nodes in things:
        for name in names & nodes:
            found.setdefault(name, []).append(thing)
    return {name: tuple(found[name]) for name in sorted(found)}


def _together(drains: Iterable[Mapping[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the nodes by reason: one call drains all nodes of one reason."""
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
    for each in leaving:
        if each.policy.reservations is Reaction.REFUSE:
            for reservation, names in _named_in(each.names, reserved):
                yield (
                    f"{each.node_set}: reservation {reservation.name} names {compress(names)}, and drain.reservations "
                    "is refuse. Wait for its end, remove the nodes from it, or set the policy to report."
                )
        if each.policy.pending_jobs is Reaction.REFUSE:
            for job, names in _named_in(each.names, pending):
                yield (
                    f"{each.node_set}: pending {named(job)} asks for {compress(names)}, and drain.pending_jobs is "
                    "refuse. Cancel it, change its nodes, or set the policy to report."
                )


def _named_in(names: Iterable[str], things: Mapping[str, tuple[T, ...]]) -> list[tuple[T, list[str]]]:
    """Return each thing with the nodes of `names` that it names."""
    found: dict[T, list[str]] = {}
    for name in names:
        for thing in things.get(name, ()):
            found.setdefault(thing, []).append(name)
    return [*found.items()]
