"""Time-out of a drain: jobs on nodes that are not free are treated, or the run stops."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from soperator_pulumi.slurm.drain.formatting import counted, named, span
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.models import Job
from soperator_pulumi.spec.drain import DrainSpec, NotRequeueable, OnTimeout

TREATED_SECONDS = 300
"""Time for requeued or cancelled jobs to leave their nodes: Slurm's KillWait (30 s) and UnkillableStepTimeout (180 s)
as this package's slurm.conf sets them, and a margin."""

SETTLE_SECONDS = 60
"""Time after the time-out in which nodes may still be drained again that somebody has undrained meanwhile."""

_TREATS = frozenset({OnTimeout.REQUEUE, OnTimeout.CANCEL})


@dataclass(frozen=True)
class Held:
    """Nodes of a node set that are not free: at least one."""

    leaving: DrainRequest
    names: tuple[str, ...]
    jobs: tuple[Job, ...]
    """Jobs on these nodes, each once."""
    undrained: frozenset[str] = frozenset()
    """Nodes of `names` to drain now: no job on them has had its time yet."""

    @property
    def policy(self) -> DrainSpec:
        """Policy of the node set."""
        return self.leaving.policy

    def is_late(self, elapsed_seconds: float) -> bool:
        """Return True where its time is up."""
        late = elapsed_seconds - self.policy.timeout.total_seconds()
        return self.policy.wait and late >= (SETTLE_SECONDS if self.undrained else 0)


@dataclass(frozen=True)
class Beside:
    """A node set that loses no node, with jobs that also hold leaving nodes: its policy protects these jobs too."""

    node_set: str
    policy: DrainSpec
    jobs: frozenset[str]
    """References of the jobs."""

    def treats(self, elapsed_seconds: float) -> bool:
        """Return True where its policy requeues or cancels jobs by now."""
        late = self.policy.wait and elapsed_seconds >= self.policy.timeout.total_seconds()
        return late and self.policy.on_timeout in _TREATS

    def refuses(self, elapsed_seconds: float) -> bool:
        """Return True where its policy undrains all nodes by now."""
        if not self.policy.wait:
            return True
        return self.policy.on_timeout not in _TREATS and elapsed_seconds >= longest_wait_seconds(self.policy)


@dataclass(frozen=True)
class Verdict:
    """Decision of the policies now."""

    requeue: tuple[int, ...] = ()
    cancel: tuple[int, ...] = ()
    stop: tuple[str, ...] = ()
    """Reasons to stop here, a line each; then no job is treated."""


@dataclass(frozen=True)
class Treatment:
    """Jobs treated in this run."""

    treated: Mapping[int, float]
    """Jobs that were requeued or cancelled, with the seconds since."""
    unrequeueable: Mapping[int, str]
    """Jobs that Slurm refused to requeue, with Slurm's message."""


def verdict(held: Sequence[Held], elapsed_seconds: float, done: Treatment, beside: Sequence[Beside] = ()) -> Verdict:
    """Return the joint decision of the policies of all node sets.

    A job that holds nodes of several node sets is treated when the time is up in all of them, whichever of them lose
    nodes: the most patient policy protects it.
    """
    held = _as_wholes(held, done)
    late = [each for each in held if each.is_late(elapsed_seconds)]
    treating = [each for each in late if each.policy.on_timeout in _TREATS]
    treating_sets = {each.leaving.node_set for each in treating}
    # By reference: all parts of a heterogeneous job are treated alike.
    patient = {job.reference for each in held if each.leaving.node_set not in treating_sets for job in each.jobs}
    patient |= {reference for each in beside if not each.treats(elapsed_seconds) for reference in each.jobs}
    protected = {job.job_id for each in held for job in each.jobs if job.reference in patient}
    undrained = frozenset().union(*(each.undrained for each in held))
    restless = frozenset(job.reference for each in held for job in each.jobs if job.node_names & undrained)
    due = {each.leaving.node_set: _due(each, protected, restless, done) for each in treating}
    stop = [
        *(reason for each in late if (reason := _over(each, elapsed_seconds))),
        *(reason for each in treating if (reason := _stuck(each, due, protected, elapsed_seconds, done))),
        *_not_requeueable(treating, due, done),
        *(reason for each in beside for reason in _against(each, treating, due, elapsed_seconds, done)),
    ]
    if stop:
        return Verdict(stop=tuple(dict.fromkeys(stop)))
    kinder = {reference for each in beside if each.policy.on_timeout is OnTimeout.REQUEUE for reference in each.jobs}
    requeue = {
        job.job_id
        for each in treating
        for job in due[each.leaving.node_set]
        if (each.policy.on_timeout is OnTimeout.REQUEUE or job.reference in kinder) and _requeueable(job, done)
    }
    cancel = {job.job_id for jobs in due.values() for job in jobs} - requeue
    return Verdict(requeue=tuple(sorted(requeue)), cancel=tuple(sorted(cancel)))


def _as_wholes(held: Sequence[Held], done: Treatment) -> list[Held]:
    """Return them with all parts of a heterogeneous job alike: where one cannot be requeued, none can."""
    rigid = {job.reference for each in held for job in each.jobs if not _requeueable(job, done)}
    return [
        replace(each, jobs=tuple(replace(job, requeueable=job.reference not in rigid) for job in each.jobs))
        for each in held
    ]


def longest_wait_seconds(policy: DrainSpec) -> float:
    """Return the time after which a run ends in any case, whatever its jobs do."""
    longest = max(policy.timeout, policy.max_wait).total_seconds()
    match policy.on_timeout:
        case OnTimeout.ABORT:
            return policy.timeout.total_seconds()
        case OnTimeout.WAIT:
            return longest
        case OnTimeout.REQUEUE | OnTimeout.CANCEL:
            return longest + TREATED_SECONDS


def _due(held: Held, protected: Collection[int], restless: frozenset[str], done: Treatment) -> tuple[Job, ...]:
    """Return the jobs to treat now.

    A completing job leaves by itself. A job on a node that is not drained could start there again. And as long as a
    job that can't be requeued might stop the run, the others are not touched.
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
    """Return the reason to stop where jobs stay on their nodes after the treatment."""
    if due[held.leaving.node_set] or any(job.job_id in protected for job in held.jobs):
        return None
    treated = [done.treated[job.job_id] for job in held.jobs if job.job_id in done.treated]
    since = min(treated, default=elapsed_seconds - held.policy.timeout.total_seconds())
    if since < TREATED_SECONDS:
        return None
    return f"{_not_free(held)} {span(TREATED_SECONDS)} after the time for its jobs was up ({_treatment(held)})"


def _not_requeueable(treating: Sequence[Held], due: Mapping[str, Sequence[Job]], done: Treatment) -> Iterator[str]:
    for each in treating:
        if _aborts_for_one(each.policy):
            for job in due[each.leaving.node_set]:
                if not _requeueable(job, done):
                    why = done.unrequeueable.get(job.job_id) or "it is interactive or was submitted with --no-requeue"
                    yield (
                        f"{each.leaving.node_set}: {named(job)} can't be requeued ({why}), "
                        "and drain.not_requeueable is abort"
                    )


def _against(
    beside: Beside, treating: Sequence[Held], due: Mapping[str, Sequence[Job]], elapsed_seconds: float, done: Treatment
) -> Iterator[str]:
    """Yield the reasons to stop by a node set that loses no node, for jobs on its nodes and on leaving ones."""
    policy = beside.policy
    for each in treating:
        theirs = f"on nodes of {beside.node_set} as well, where drain"
        if beside.refuses(elapsed_seconds):
            setting = f"on_timeout is {policy.on_timeout}" if policy.wait else "wait is false"
            for job in each.jobs:
                if job.reference in beside.jobs:
                    yield f"{each.leaving.node_set}: {named(job)} is {theirs}.{setting}"
        elif _aborts_for_one(policy):
            for job in due[each.leaving.node_set]:
                if job.reference in beside.jobs and not _requeueable(job, done):
                    yield (
                        f"{each.leaving.node_set}: {named(job)} can't be requeued, and is {theirs}.on_timeout is "
                        "requeue and drain.not_requeueable abort"
                    )


def _requeueable(job: Job, done: Treatment) -> bool:
    return job.requeueable and job.job_id not in done.unrequeueable


def _not_free(held: Held) -> str:
    count, all_of = len(held.names), len(held.leaving.names)
    return f"{held.leaving.node_set}: {count} of {counted(all_of, 'node')} {'is' if count == 1 else 'are'} not free"


def _treatment(held: Held) -> str:
    return f"drain.on_timeout: {held.policy.on_timeout}"
