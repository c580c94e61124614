"""Time-out of a drain: jobs on nodes that are not free are requeued or cancelled, or the run stops."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from soperator_pulumi.slurm.drain.formatting import named, span
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.models import Job
from soperator_pulumi.spec.drain import DrainSpec, NotRequeueable, OnTimeout
from soperator_pulumi.wording import counted

TREATED_SECONDS = 300
"""Time for requeued or cancelled jobs to leave their nodes: Slurm's KillWait (30 s) and UnkillableStepTimeout (180 s)
as this package's slurm.conf sets them, and a margin."""

SETTLE_SECONDS = 60
"""Time after the time-out during which nodes that an admin has undrained may still be drained again."""

_TREATS = frozenset({OnTimeout.REQUEUE, OnTimeout.CANCEL})


@dataclass(frozen=True)
class Held:
    """Nodes of a node set that are not free: at least one."""

    leaving: DrainRequest
    names: tuple[str, ...]
    jobs: tuple[Job, ...]
    """Jobs on these nodes, without repetitions."""
    undrained: frozenset[str] = frozenset()
    """Nodes of `names` to drain now: jobs on them have not had their time yet."""

    @property
    def policy(self) -> DrainSpec:
        """Policy of the node set."""
        return self.leaving.policy

    def is_late(self, elapsed_seconds: float) -> bool:
        """Return True if the time of the node set's policy is up."""
        late = elapsed_seconds - self.policy.timeout.total_seconds()
        return self.policy.wait and late >= (SETTLE_SECONDS if self.undrained else 0)


@dataclass(frozen=True)
class ProtectingSet:
    """A node set that loses no node, with jobs that also hold leaving nodes: its policy protects these jobs, too."""

    node_set: str
    policy: DrainSpec
    jobs: frozenset[str]
    """References of the jobs."""

    def treats(self, elapsed_seconds: float) -> bool:
        """Return True if the time has come at which the policy requeues or cancels jobs."""
        late = self.policy.wait and elapsed_seconds >= self.policy.timeout.total_seconds()
        return late and self.policy.on_timeout in _TREATS

    def refuses(self, elapsed_seconds: float) -> bool:
        """Return True if the time has come at which the policy undrains all nodes."""
        if not self.policy.wait:
            return True
        return self.policy.on_timeout not in _TREATS and elapsed_seconds >= longest_wait_seconds(self.policy)


@dataclass(frozen=True)
class Verdict:
    """Joint decision of the policies."""

    requeue: tuple[int, ...] = ()
    cancel: tuple[int, ...] = ()
    stop: tuple[str, ...] = ()
    """Reasons to stop, one per line; then no job is requeued or cancelled."""


@dataclass(frozen=True)
class Treatment:
    """Jobs that this run has tried to requeue or cancel."""

    treated: Mapping[int, float]
    """Jobs that were requeued or cancelled, with the seconds since."""
    unrequeueable: Mapping[int, str]
    """Jobs that Slurm refused to requeue, with Slurm's message."""


def verdict(
    held: Sequence[Held], elapsed_seconds: float, done: Treatment, protecting: Sequence[ProtectingSet] = ()
) -> Verdict:
    """Return the joint decision of the policies of all node sets.

    A job that holds nodes of several node sets is requeued or cancelled when the time is up in all of them, even in
    those that lose no node: the most patient policy protects it.
    """
    held = _as_wholes(held, done)
    late = [holding for holding in held if holding.is_late(elapsed_seconds)]
    treating = [holding for holding in late if holding.policy.on_timeout in _TREATS]
    treating_sets = {holding.leaving.node_set for holding in treating}
    # By reference: all parts of a heterogeneous job get the same treatment.
    patient = {
        job.reference for holding in held if holding.leaving.node_set not in treating_sets for job in holding.jobs
    }
    patient |= {
        reference for holding in protecting if not holding.treats(elapsed_seconds) for reference in holding.jobs
    }
    protected = {job.job_id for holding in held for job in holding.jobs if job.reference in patient}
    undrained = frozenset().union(*(holding.undrained for holding in held))
    restless = frozenset(job.reference for holding in held for job in holding.jobs if job.node_names & undrained)
    due = {holding.leaving.node_set: _due(holding, protected, restless, done) for holding in treating}
    stop = [
        *(reason for holding in late if (reason := _over(holding, elapsed_seconds))),
        *(reason for holding in treating if (reason := _stuck(holding, due, protected, elapsed_seconds, done))),
        *_not_requeueable(treating, due, done),
        *(reason for holding in protecting for reason in _against(holding, treating, due, elapsed_seconds, done)),
    ]
    if stop:
        return Verdict(stop=tuple(dict.fromkeys(stop)))
    kinder = {
        reference
        for holding in protecting
        if holding.policy.on_timeout is OnTimeout.REQUEUE
        for reference in holding.jobs
    }
    requeue = {
        job.job_id
        for holding in treating
        for job in due[holding.leaving.node_set]
        if (holding.policy.on_timeout is OnTimeout.REQUEUE or job.reference in kinder) and _requeueable(job, done)
    }
    cancel = {job.job_id for jobs in due.values() for job in jobs} - requeue
    return Verdict(requeue=tuple(sorted(requeue)), cancel=tuple(sorted(cancel)))


def _as_wholes(held: Sequence[Held], done: Treatment) -> list[Held]:
    """Return node sets in which all parts of a heterogeneous job are alike: if one cannot be requeued, none can."""
    rigid = {job.reference for holding in held for job in holding.jobs if not _requeueable(job, done)}
    return [
        replace(holding, jobs=tuple(replace(job, requeueable=job.reference not in rigid) for job in holding.jobs))
        for holding in held
    ]


def longest_wait_seconds(policy: DrainSpec) -> float:
    """Return the seconds after which a run ends regardless of its jobs."""
    longest = max(policy.timeout, policy.max_wait).total_seconds()
    match policy.on_timeout:
        case OnTimeout.ABORT:
            return policy.timeout.total_seconds()
        case OnTimeout.WAIT:
            return longest
        case OnTimeout.REQUEUE | OnTimeout.CANCEL:
            return longest + TREATED_SECONDS


def _due(held: Held, protected: Collection[int], restless: frozenset[str], done: Treatment) -> tuple[Job, ...]:
    """Return the jobs to requeue or cancel now.

    A completing job leaves on its own. A job on a node that is not drained could start there again. As long as a job
    that can't be requeued might stop the run, the other jobs are left alone.
    """
    if _aborts_for_one(held.policy) and any(
        job.job_id in protected and not _requeueable(job, done) for job in held.jobs
    ):
        return ()
    return tuple(
        job
        for job in held.jobs
        if job.job_id not in protected
        and job.job_id not in done.treated
        and "COMPLETING" not in job.state
        and job.reference not in restless
    )


def _aborts_for_one(policy: DrainSpec) -> bool:
    return policy.on_timeout is OnTimeout.REQUEUE and policy.not_requeueable is NotRequeueable.ABORT


def _over(held: Held, elapsed_seconds: float) -> str | None:
    policy, longest = held.policy, longest_wait_seconds(held.policy)
    if elapsed_seconds < longest:
        return None
    setting = "drain.timeout" if policy.on_timeout is OnTimeout.ABORT else "drain.max_wait"
    return f"{_not_free(held)} after {span(longest)} ({setting})"


def _stuck(
    held: Held, due: Mapping[str, Sequence[Job]], protected: Collection[int], elapsed_seconds: float, done: Treatment
) -> str | None:
    """Return the reason to stop if jobs stay on their nodes after they were requeued or cancelled."""
    if due[held.leaving.node_set] or any(job.job_id in protected for job in held.jobs):
        return None
    treated = [done.treated[job.job_id] for job in held.jobs if job.job_id in done.treated]
    since = min(treated, default=elapsed_seconds - held.policy.timeout.total_seconds())
    if since < TREATED_SECONDS:
        return None
    up = f"{span(TREATED_SECONDS)} after its jobs' time was up"
    return f"{_not_free(held)} {up} (drain.on_timeout: {held.policy.on_timeout})"


def _not_requeueable(treating: Sequence[Held], due: Mapping[str, Sequence[Job]], done: Treatment) -> Iterator[str]:
    for holding in treating:
        if _aborts_for_one(holding.policy):
            for job in due[holding.leaving.node_set]:
                if not _requeueable(job, done):
                    why = done.unrequeueable.get(job.job_id) or "it is interactive or was submitted with --no-requeue"
                    yield (
                        f"{holding.leaving.node_set}: {named(job)} can't be requeued ({why}), "
                        "and drain.not_requeueable is abort"
                    )


def _against(
    protecting: ProtectingSet,
    treating: Sequence[Held],
    due: Mapping[str, Sequence[Job]],
    elapsed_seconds: float,
    done: Treatment,
) -> Iterator[str]:
    """Yield a staying node set's reasons to stop, for jobs that hold its nodes and leaving ones."""
    policy = protecting.policy
    for holding in treating:
        theirs = f"also on nodes of {protecting.node_set}, whose drain"
        if protecting.refuses(elapsed_seconds):
            setting = f"on_timeout is {policy.on_timeout}" if policy.wait else "wait is false"
            for job in holding.jobs:
                if job.reference in protecting.jobs:
                    yield f"{holding.leaving.node_set}: {named(job)} is {theirs}.{setting}"
        elif _aborts_for_one(policy):
            for job in due[holding.leaving.node_set]:
                if job.reference in protecting.jobs and not _requeueable(job, done):
                    yield (
                        f"{holding.leaving.node_set}: {named(job)} can't be requeued, and is {theirs}.on_timeout is "
                        "requeue and drain.not_requeueable abort"
                    )


def _requeueable(job: Job, done: Treatment) -> bool:
    return job.requeueable and job.job_id not in done.unrequeueable


def _not_free(held: Held) -> str:
    count, all_of = len(held.names), len(held.leaving.names)
    return f"{held.leaving.node_set}: {count} of {counted(all_of, 'node')} {'is' if count == 1 else 'are'} not free"
