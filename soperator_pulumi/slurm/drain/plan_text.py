"""Text of a plan for users: its preview, its progress, and its error."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from types import MappingProxyType

from soperator_pulumi.slurm.drain.formatting import ending, lasting, named, span
from soperator_pulumi.slurm.drain.plan import Plan
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.drain.time_out import TREATED_SECONDS, longest_wait_seconds
from soperator_pulumi.slurm.hostlist import compress
from soperator_pulumi.slurm.models import Job, Snapshot
from soperator_pulumi.spec.drain import DrainSpec, NotRequeueable, OnTimeout
from soperator_pulumi.wording import counted, listed

_LINES = 20
"""Most lines about nodes of one node set: a thousand lines for a thousand nodes help no reader."""

_JOBS_IN_A_LINE = 3

_LIST = 40
"""Most characters of a user's list of nodes."""

_WITHOUT_WAITING = (
    "Drains now and does not wait: free nodes leave now, the others in a later run, after their jobs have ended."
)

_Group = tuple[list[str], str]
"""Nodes, and the text that applies to all of them."""

_NONE: Mapping[str, str] = MappingProxyType({})


def preview(
    plan: Plan,
    leaving: Sequence[DrainRequest],
    snapshot: Snapshot,
    now: float,
    *,
    cluster: str,
    zone: tzinfo | None = None,
) -> list[str]:
    """Return the lines of the preview: the nodes that leave, their jobs, and when these end.

    Args:
        plan: Plan for this moment, with no time elapsed.
        leaving: Requests of the plan.
        snapshot: State from which the plan was made.
        now: Time in seconds since 1970.
        cluster: Name of the cluster.
        zone: Time zone of the output; None for that of the machine.
    """
    page = _Page(plan, snapshot, now, zone)
    lines = [line for node_set in leaving if node_set.names for line in page.node_set(node_set, cluster)]
    unread = [
        f"{named(job)}: {job.unreadable_nodes[:_LIST]!r}"
        for job in snapshot.jobs
        if job.pending and job.unreadable_nodes
    ]
    if lines and unread:
        lines.append(
            "Pending jobs that may ask for these nodes, by lists that can't be read: "
            f"{listed(unread, _JOBS_IN_A_LINE)}. See `scontrol show job`."
        )
    return lines + [f"Stops here: {reason}" for reason in plan.stop]


def progress(
    plan: Plan,
    leaving: Sequence[DrainRequest],
    now: float,
    *,
    cluster: str,
    elapsed_seconds: float,
    zone: tzinfo | None = None,
) -> str:
    """Return the progress, with a line for every node set that is not free: free nodes, jobs and time left."""
    return "\n".join(
        f"{cluster}/{node_set.node_set}: {_progress(plan, node_set, now, elapsed_seconds, zone)}"
        for node_set in leaving
        if any(name in plan.waiting for name in node_set.names)
    )


def aborted(
    plan: Plan,
    leaving: Sequence[DrainRequest],
    now: float,
    *,
    cluster: str,
    kept: Mapping[str, str] = _NONE,
    zone: tzinfo | None = None,
) -> str:
    """Return the error for a plan that stopped: reasons, jobs with users and end times, and next steps.

    Args:
        plan: Plan with `stop`.
        leaving: Requests of the plan.
        now: Time in seconds since 1970.
        cluster: Name of the cluster.
        kept: Nodes that could not be undrained, with the reasons. If empty, the text reports that all are undrained.
        zone: Time zone of the output; None for that of the machine.
    """
    lines = [f"{cluster}: no node is removed.", *(f"  {reason}" for reason in plan.stop)]
    if not plan.refused:
        held = {name: plan.waiting[name] for node_set in leaving for name in node_set.names if name in plan.waiting}
        shown = {name: (waiting.jobs, () if waiting.jobs else (waiting.why,)) for name, waiting in held.items()}
        lines += _table(_grouped(shown, now, zone), indent=4)
        jobs = {job.job_id: job for waiting in held.values() for job in waiting.jobs}
        lines += [f"  {line}" for line in _next_steps(plan, jobs.values(), cluster)]
    by_why: dict[str, list[str]] = {}
    for name, why in kept.items():
        by_why.setdefault(why, []).append(name)
    lines += [
        f"  Still drained: {compress(names)} ({why}). Run again, or: "
        f"scontrol update nodename={compress(names)} state=undrain reason=none"
        for why, names in by_why.items()
    ]
    if not kept:
        lines.append("  All nodes drained for this change are undrained.")
    return "\n".join(lines)


@dataclass(frozen=True)
class _Page:
    """Data for a preview."""

    plan: Plan
    snapshot: Snapshot
    now: float
    zone: tzinfo | None

    def node_set(self, leaving: DrainRequest, cluster: str) -> Iterator[str]:
        """Yield the lines of one node set."""
        nodes = compress(leaving.names)
        yield f"{cluster}/{leaving.node_set}: " + (
            f"{counted(len(leaving.names), 'node')} to be recreated: {nodes}"
            if leaving.come_back
            else f"{leaving.before} -> {counted(leaving.after, 'node')}. Leaving: {nodes}"
        )
        yield from _table(self._groups(leaving), indent=2)
        if leaving.staying and not leaving.come_back:
            idle = sum(self._is_idle(name) for name in leaving.staying)
            yield f"Idle nodes with lower ordinals: {idle} (a StatefulSet can only give up the highest)."
        yield from self._policy(leaving)

    def _groups(self, leaving: DrainRequest) -> list[_Group]:
        """Return the nodes, grouped by equal texts."""
        waiting = self.plan.waiting
        jobs = {name: waiting[name].jobs if name in waiting else () for name in leaving.names}
        shown = {name: (jobs[name], self._condition(name)) for name in leaving.names}
        return [(names, text or "idle") for names, text in _grouped(shown, self.now, self.zone)]

    def _condition(self, name: str) -> tuple[str, ...]:
        """Return the text about a node, apart from its jobs."""
        reserved = (lasting(reservation, self.now, self.zone) for reservation in self.plan.reserved.get(name, ()))
        pending = (f"pending {named(job)} asks for it" for job in self.plan.pending.get(name, ()))
        return (*self._state(name), *reserved, *pending)

    def _state(self, name: str) -> Iterator[str]:
        node, waiting = self.snapshot.nodes.get(name), self.plan.waiting.get(name)
        if node is None:
            yield waiting.why if waiting else "slurmd has not started there, and its pod cannot start"
            return
        if name in self.plan.foreign:
            yield f"drained by someone else ({node.reason or 'no reason given'}), stays drained"
        elif "DRAIN" in node.state:
            yield "drained by an earlier run"
        if not node.joined:
            state = "+".join(sorted(node.state - {"DRAIN", "DYNAMIC_NORM"})).lower()
            yield f"{state} ({node.reason})" if node.reason and not node.drained else state

    def _is_idle(self, name: str) -> bool:
        node = self.snapshot.nodes.get(name)
        return node is not None and "IDLE" in node.state and node.joined and not node.drained and not node.busy_state

    def _policy(self, leaving: DrainRequest) -> Iterator[str]:
        policy = leaving.policy
        if not policy.wait:
            yield _WITHOUT_WAITING
            return
        yield f"Drains now, waits up to {span(policy.timeout.total_seconds())}, then {_afterwards(policy)}."
        if policy.on_timeout is OnTimeout.REQUEUE:
            yield from self._requeueing(leaving)
        yield from self._protected(leaving)

    def _requeueing(self, leaving: DrainRequest) -> Iterator[str]:
        """Yield lines about jobs that cannot be requeued, or could not start again after that."""
        held = (self.plan.waiting[name].jobs for name in leaving.names if name in self.plan.waiting)
        jobs = {job.job_id: job for some in held for job in some}.values()
        if fixed := [job for job in jobs if not job.requeueable]:
            cancels = leaving.policy.not_requeueable is NotRequeueable.CANCEL
            then = "is cancelled" if cancels else "aborts the run instead"
            yield f"Can't be requeued, so each of them then {then}: {listed(map(named, fixed), _JOBS_IN_A_LINE)}."
        gone = frozenset(() if leaving.come_back else leaving.names)
        if lost := [job for job in jobs if job.requeueable and job.required_nodes & gone]:
            shown = listed(map(named, lost), _JOBS_IN_A_LINE)
            yield f"Can't start again once requeued, as they ask for leaving nodes: {shown}."

    def _protected(self, leaving: DrainRequest) -> Iterator[str]:
        """Yield lines about jobs that also hold nodes of another node set, whose policy protects them, too."""
        held = (self.plan.waiting[name].jobs for name in leaving.names if name in self.plan.waiting)
        jobs = {job.reference: job for some in held for job in some}
        for elsewhere in self.plan.protecting:
            both = [named(job) for reference, job in jobs.items() if reference in elsewhere.jobs]
            if both and leaving.policy.on_timeout in {OnTimeout.REQUEUE, OnTimeout.CANCEL}:
                policy = elsewhere.policy
                acts = f"{policy.on_timeout} after {span(policy.timeout.total_seconds())}"
                yield (
                    f"Also on nodes of {elsewhere.node_set}, whose drain protects them as well "
                    f"({acts if policy.wait else 'it does not wait'}): {listed(both, _JOBS_IN_A_LINE)}."
                )


def _afterwards(policy: DrainSpec) -> str:
    match policy.on_timeout:
        case OnTimeout.ABORT:
            return "abort: all nodes are undrained"
        case OnTimeout.REQUEUE:
            return "requeue: the remaining jobs are requeued"
        case OnTimeout.CANCEL:
            return "cancel: the remaining jobs are cancelled"
        case OnTimeout.WAIT:
            return f"wait: up to {span(policy.max_wait.total_seconds())} in all, then all nodes are undrained"


def _grouped(
    shown: Mapping[str, tuple[tuple[Job, ...], tuple[str, ...]]], now: float, zone: tzinfo | None
) -> list[_Group]:
    """Return the nodes, grouped by equal texts: their jobs, then the other parts.

    A job is written in full the first time, and by its number wherever else it runs.
    """
    groups: dict[tuple[tuple[Job, ...], tuple[str, ...]], list[str]] = {}
    for name, parts in shown.items():
        groups.setdefault(parts, []).append(name)
    seen: set[int] = set()
    lines = []
    for (jobs, others), names in groups.items():
        texts = [
            f"job {job.reference}" if job.job_id in seen else f"{named(job)}, {ending(job, now, zone)}" for job in jobs
        ]
        seen |= {job.job_id for job in jobs}
        lines.append((names, "; ".join([*texts, *others])))
    return lines


def _table(groups: Sequence[_Group], *, indent: int) -> Iterator[str]:
    """Yield a line per group: the nodes in one column, their text in the other."""
    shown = [(compress(names), text) for names, text in groups[:_LINES]]
    width = max((len(nodes) for nodes, _ in shown), default=0)
    for nodes, text in shown:
        yield f"{'':{indent}}{nodes:{width}}  {text}"
    if rest := [name for names, _ in groups[_LINES:] for name in names]:
        yield f"{'':{indent}}and {counted(len(rest), 'more node')}"


def _progress(plan: Plan, leaving: DrainRequest, now: float, elapsed_seconds: float, zone: tzinfo | None) -> str:
    waiting = [name for name in leaving.names if name in plan.waiting]
    free = f"{len(leaving.names) - len(waiting)} of {counted(len(leaving.names), 'node')} free"
    parts = [free, *waited_for(plan, waiting, now, zone), time_left(leaving.policy, elapsed_seconds)]
    return "; ".join(part for part in parts if part)


def waited_for(plan: Plan, names: Sequence[str], now: float, zone: tzinfo | None = None) -> list[str]:
    """Return why these nodes are not free: the jobs that hold them with their ends, the last first, and other reasons.

    Args:
        plan: Plan with the nodes in `waiting`.
        names: The nodes.
        now: Time in seconds since 1970.
        zone: Time zone of the output; None for that of the machine.
    """
    holders: dict[int, tuple[Job, list[str]]] = {}
    others: dict[str, list[str]] = {}
    for name in names:
        for job in plan.waiting[name].jobs:
            holders.setdefault(job.job_id, (job, []))[1].append(name)
        if not plan.waiting[name].jobs:
            others.setdefault(plan.waiting[name].why, []).append(name)
    last_first = sorted(holders.values(), key=lambda held: -math.inf if (end := held[0].ends_at) is None else -end)
    jobs = [f"{compress(names)} {named(job)} {ending(job, now, zone)}" for job, names in last_first]
    rest = [f"{compress(names)} {why}" for why, names in others.items()]
    return [line for line in (listed(jobs, _JOBS_IN_A_LINE), listed(rest, _JOBS_IN_A_LINE)) if line]


def time_left(policy: DrainSpec, elapsed_seconds: float) -> str:
    """Return the time left until the policy acts, in words; empty if it doesn't wait.

    Args:
        policy: The policy.
        elapsed_seconds: Seconds since the drain.
    """
    if not policy.wait:
        return ""
    timeout = policy.timeout.total_seconds()
    if elapsed_seconds < timeout:
        return f"{span(timeout - elapsed_seconds)} left"
    if policy.on_timeout in {OnTimeout.REQUEUE, OnTimeout.CANCEL}:
        return f"the time is up ({policy.on_timeout}): {span(timeout + TREATED_SECONDS - elapsed_seconds)} left"
    return f"{span(longest_wait_seconds(policy) - elapsed_seconds)} left"


def _next_steps(plan: Plan, jobs: Iterable[Job], cluster: str) -> Iterator[str]:
    """Yield the next steps, one per line.

    Args:
        plan: Plan that stopped.
        jobs: Jobs that hold nodes.
        cluster: Name of the cluster.
    """
    running = [job for job in jobs if "COMPLETING" not in job.state]
    completing = [job for job in jobs if "COMPLETING" in job.state]
    if running:
        numbers = " ".join(job.reference for job in running[:_JOBS_IN_A_LINE])
        yield (
            f"Wait for the jobs and run again; or cancel them (scancel {numbers}) or requeue them "
            f"(scontrol requeue {numbers.replace(' ', ',')}); or raise the node set's drain.timeout."
        )
        yield (
            f"For one run only: SOPERATOR_DRAIN='{cluster}: {{timeout: 1d}}' before the command, "
            f"or SOPERATOR_DRAIN='{cluster}: {{on_timeout: requeue}}' ({{on_timeout: cancel}} cancels the jobs)."
        )
    if completing:
        nodes = compress(
            name for name, held in plan.waiting.items() if any("COMPLETING" in job.state for job in held.jobs)
        )
        yield (
            f"Still completing: {listed(map(named, completing), _JOBS_IN_A_LINE)}. Their processes or the epilog do "
            f"not end: look at {nodes}; to give up processes that can't be ended: scontrol update "
            f"nodename={nodes} state=down reason=..."
        )
    lost = [name for name, waiting in plan.waiting.items() if not waiting.jobs]
    if lost:
        yield (
            f"{compress(lost)}: see scontrol show node. A node that slurmctld has lost registers again after slurmd "
            "restarts: delete its pod if nothing runs in it."
        )
