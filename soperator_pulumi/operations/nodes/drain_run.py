"""One drain run: it drains nodes, waits with progress, and requeues or cancels jobs according to the policies.

The planner (`slurm.drain.plan`) decides at every look, and the run acts, whatever slurmctld and the connection do
meanwhile. A missing, unexpected or outdated answer changes nothing: the next look decides again. Nothing that failed is
blindly repeated.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from soperator_pulumi.errors import (
    AnotherPlannerError,
    DrainError,
    KubernetesError,
    NotRunningError,
    RunCancelledError,
    SlurmError,
    TransportError,
    UnknownNodeError,
)
from soperator_pulumi.operations.nodes.context import DrainContext
from soperator_pulumi.operations.nodes.drained_nodes import DrainBatch, DrainResult, JobsOfNodes
from soperator_pulumi.operations.nodes.live_node_set import LiveNodeSet
from soperator_pulumi.operations.nodes.undrain import Undrain, continue_or_undo
from soperator_pulumi.operations.progress import report_pause_seconds, rest_seconds, unless_cancelled
from soperator_pulumi.slurm.drain import plan_text
from soperator_pulumi.slurm.drain.plan import Plan, plan, shared, together
from soperator_pulumi.slurm.drain.reason import Marker
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.drain.time_out import longest_wait_seconds
from soperator_pulumi.slurm.hostlist import compress, in_order
from soperator_pulumi.slurm.models import Reservation, Snapshot
from soperator_pulumi.spec.drain import DrainSpec
from soperator_pulumi.wording import counted

ANSWER_SECONDS = 300
"""Time for slurmctld to answer at all, in seconds: after a restart it recovers its state."""

_FIRST_PAUSE_SECONDS = 0.2
_LOOK_SECONDS = 5.0
_ATTEMPTS = 3
"""Attempts at a job whose answer is lost, before it counts as done; and at a drain that Slurm refuses."""

_Treat = Callable[[Collection[int], Collection[str]], dict[int, str]]


class DrainRun:
    """A drain run, with everything that it has seen and done so far."""

    def __init__(self, context: DrainContext, leaving: Sequence[DrainRequest], marker: Marker) -> None:
        """Create a run; it does nothing before `free`.

        Args:
            context: The cluster.
            leaving: The nodes, with the policies of their node sets.
            marker: Identifies this run's drains.
        """
        self._context = context
        self._batches = [DrainBatch(tuple(leaving), context.clock.now())] if leaving else []
        self._marker = marker
        self.answer_seconds: float = ANSWER_SECONDS
        """Time for slurmctld to answer, in seconds, if no policy allows more."""
        self._undrain = Undrain(context, self.names, marker)
        self._others: Mapping[str, DrainSpec] = {}
        """Policies of the cluster's node sets, read when they are first needed."""
        self._silent: float | None = None
        """Time of slurmctld's last answer, while it does not answer."""
        self._last: Snapshot | None = None
        """The last answer."""
        self._reservations: tuple[Reservation, ...] | None = None
        self._taken: frozenset[str] = frozenset()
        """Nodes that had this run's drain and now have another run's."""
        self._treated: dict[int, float] = {}
        self._lost: Counter[int] = Counter()
        """Lost answers, by job."""
        self._unrequeueable: dict[int, str] = {}
        self._refusals = 0
        """Consecutive drains that Slurm has refused."""
        self._reported: tuple[object, float] = (None, 0.0)
        self._acted = False
        """True if nodes have been drained or added, or jobs treated, since the last look."""

    @property
    def names(self) -> frozenset[str]:
        """The nodes that the run drains now."""
        return frozenset(name for node_set in self._leaving for name in node_set.names)

    @property
    def _leaving(self) -> list[DrainRequest]:
        return [node_set for batch in self._batches for node_set in batch.leaving]

    def waited_seconds(self, planned: Plan) -> float:
        """Return the time since the drain of the node that has been waited for longest; 0 if none is."""
        waiting = [
            batch.began
            for batch in self._batches
            if any(name in planned.waiting for node_set in batch.leaving for name in node_set.names)
        ]
        return self._context.clock.now() - min(waiting) if waiting else 0.0

    def add(self, leaving: DrainRequest) -> None:
        """Drain further nodes from the next look on; the time of their policy begins now."""
        self._batches.append(DrainBatch((leaving,), self._context.clock.now()))
        self._undrain.names = self.names
        self.look_again()

    def look_again(self) -> None:
        """Look at once, to see the effect of the caller's change."""
        self._acted = True

    def keep(self, names: AbstractSet[str]) -> None:
        """Keep draining only these nodes. What drains hold of the others stays as it is."""
        narrowed = [batch.changed(lambda node_set: node_set.only(names)) for batch in self._batches]
        self._batches = [batch for batch in narrowed if any(node_set.names for node_set in batch.leaving)]
        self._undrain.names = self.names

    def free(self, first: Callable[[Snapshot], None] | None = None) -> DrainResult:
        """Drain the nodes and wait until they hold no job.

        Args:
            first: Called with the first look, before anything is drained.

        Raises:
            DrainError: the run was stopped.
            AnotherPlannerError: another planner holds the cluster's Lease, or drains the same nodes.
            RunCancelledError: the run was cancelled.
        """
        for _, planned in self.looks(first) if self.names else ():
            awaited = {name for node_set in self._leaving if node_set.policy.wait for name in node_set.names}
            if not awaited & planned.waiting.keys():
                self._context.report(f"{len(planned.free)} of {counted(len(self.names), 'node')} free")
                return DrainResult(planned.free, {name: waiting.why for name, waiting in planned.waiting.items()})
            self._report_progress(planned)
        return DrainResult(frozenset())

    def looks(self, first: Callable[[Snapshot], None] | None = None) -> Iterator[tuple[Snapshot, Plan]]:
        """Look at the nodes and act, repeatedly; yield the state whenever a look finds nothing to do.

        Args:
            first: Called with the first look, before anything is drained.

        Raises:
            DrainError: the run was stopped.
            AnotherPlannerError: another planner holds the cluster's Lease, or drains the same nodes.
            RunCancelledError: the run was cancelled.
        """
        pause, at_once = _FIRST_PAUSE_SECONDS, False
        while True:
            self._acted = False
            self._context.keep_alone()
            looked_at = self._context.clock.now()
            snapshot = self._look()
            rest = rest_seconds(looked_at, self._context.clock)
            if snapshot is not None:
                if first is not None:
                    first(snapshot)
                    first = None
                planned = self._planned(snapshot)
                with self._explaining_cancellation():
                    unless_cancelled()
                self._acted = self._act(planned)
                if not self._acted:
                    yield snapshot, planned
            if self._acted and not at_once:
                pause, at_once = _FIRST_PAUSE_SECONDS, True
                continue  # the result of an action shows at once
            at_once = False
            with self._explaining_cancellation():
                self._context.clock.sleep(max(pause, rest))
            pause = min(pause * 1.3, _LOOK_SECONDS)

    @contextmanager
    def _explaining_cancellation(self) -> Iterator[None]:
        """Explain in a cancelled run how to continue or undo it. The drains stay, for the next run.

        Raises:
            RunCancelledError: the run was cancelled.
        """
        try:
            yield
        except RunCancelledError:
            raise RunCancelledError(f"{self._context.cluster}: cancelled. {self._continue_or_undo()}") from None

    # -- looking --------------------------------------------------------------------------------------------------

    def _look(self) -> Snapshot | None:
        """Return slurmctld's answer; None if no decision can be based on it.

        Raises:
            DrainError: slurmctld has not answered for too long.
        """
        try:
            snapshot = self._context.slurm.snapshot(reservations=self._reservations is None)
        except (SlurmError, TransportError) as error:
            self._unanswered(str(error))
            return None
        if self._last is not None and snapshot.older_than(self._last):
            self._unanswered("an answer came that is older than one before")
            return None
        if self._reservations is None:
            self._reservations = snapshot.reservations
            self._batches = [replace(batch, began=self._context.clock.now()) for batch in self._batches]
        if self._silent is not None:
            self._context.report("slurmctld answers again")
        self._last, self._silent = snapshot, None
        if self._taken_over(snapshot):
            return None
        self._look_at_starts(frozenset(snapshot.nodes))
        return replace(snapshot, reservations=self._reservations)

    def _look_at_starts(self, known: frozenset[str]) -> None:
        """Look again at pods that were starting: slurmd may have started, or the pod may be unable to start.

        Once Slurm has known a node, only Slurm's record counts.
        """

        def unknown(node_set: DrainRequest) -> DrainRequest:
            return replace(node_set, never_started=node_set.never_started - known, starting=node_set.starting - known)

        self._batches = [batch.changed(unknown) for batch in self._batches]
        if not any(node_set.starting for node_set in self._leaving):
            return
        try:
            live = self._context.live()
        except KubernetesError as error:  # all of them count as starting; the next look asks again
            self._context.report(f"cannot read the starting pods: {error}")
            return

        def looked_at(node_set: DrainRequest, waited_seconds: float) -> DrainRequest:
            return live.get(node_set.node_set, LiveNodeSet(node_set.node_set)).with_starts(node_set, waited_seconds)

        now = self._context.clock.now()
        self._batches = [batch.changed(partial(looked_at, waited_seconds=now - batch.began)) for batch in self._batches]

    def _taken_over(self, snapshot: Snapshot) -> bool:
        """Return True if another run seems to drain the same nodes: this run was cut off, and a new one continues.

        Raises:
            AnotherPlannerError: another run drains them.
        """
        taken = self._undrain.note(snapshot)
        if both := taken & self._taken:
            raise AnotherPlannerError(
                f"{self._context.cluster}: another run drains {compress(in_order(both))} now, so this one ends. "
                "It undrains nothing: the other run will."
            )
        self._taken = taken
        return bool(taken)

    def _unanswered(self, why: str) -> None:
        """Wait for an answer, and report that, as long as the policies allow.

        Raises:
            DrainError: the policies allow no more waiting.
        """
        now = self._context.clock.now()
        first = self._silent is None
        self._silent = now if self._silent is None else self._silent
        ends = self._silent + self.answer_seconds
        if self._reservations is not None:  # it has answered before
            waits = ((batch, node_set.policy) for batch in self._batches for node_set in batch.leaving)
            ends = max([ends, *(batch.began + longest_wait_seconds(policy) for batch, policy in waits)])
        if now >= ends:
            raise DrainError(
                f"{self._context.cluster}: no node is removed: slurmctld has not answered for "
                f"{now - self._silent:.0f} s ({why.rstrip('.')}). {self._undrain.left_drained()}"
            )
        if first or now - self._reported[1] >= report_pause_seconds(0):
            self._reported = (None, now)
            self._context.report(
                f"slurmctld does not answer, waits for it {ends - now:.0f} s at most: "
                f"{why.rstrip('.')}. {self._continue_or_undo()}"
            )

    def _planned(self, snapshot: Snapshot) -> Plan:
        """Return the plan for this moment, of all batches together.

        Raises:
            DrainError: the time of a policy is up, or something depends on a node; all nodes are undrained.
        """
        now, jobs = self._context.clock.now(), JobsOfNodes(snapshot.jobs)
        if not self._others and shared(self._leaving, replace(snapshot, jobs=jobs.of(self.names))):
            try:
                self._others = self._context.policies()
            except KubernetesError as error:  # unknown policies requeue and cancel no jobs; the next look asks again
                self._context.report(f"cannot read the drain policies of other node sets yet: {error}")
        plans = []
        for batch in self._batches:
            planned = plan(
                batch.leaving,
                replace(snapshot, jobs=jobs.of(name for node_set in batch.leaving for name in node_set.names)),
                self._marker,
                elapsed_seconds=now - batch.began,
                now=self._context.clock.wall(),
                treated={job_id: now - since for job_id, since in self._treated.items() if since >= batch.began},
                unrequeueable=self._unrequeueable,
                others=self._others,
            )
            if planned.stop:
                raise self._aborted(planned, batch.leaving)
            plans.append(planned)
        return together(plans)

    # -- doing ----------------------------------------------------------------------------------------------------

    def _act(self, planned: Plan) -> bool:
        """Carry out the plan, and return True if there was anything to do.

        Raises:
            DrainError: Slurm refuses.
        """
        for reason, names in planned.drain.items():
            self._undrain.expect(names)
            try:
                self._context.slurm.drain(names, reason)
            except (TransportError, NotRunningError, UnknownNodeError):
                continue  # it may be done, or a node may have just gone: the next look shows it
            except SlurmError as error:
                self._refusals += 1
                if self._refusals >= _ATTEMPTS:
                    words = f"Slurm refuses to drain {compress(names)}: {str(error).rstrip('.')}"
                    raise self._aborted(replace(planned, stop=(words,), refused=True), self._leaving) from error
            else:
                self._refusals = 0
                self._context.report(f"drains {compress(names)}")
        called = {job.job_id: job.reference for waiting in planned.waiting.values() for job in waiting.jobs}
        self._unrequeueable |= self._treat(planned.requeue, called, self._context.slurm.requeue, "requeues")
        refused = self._treat(planned.cancel, called, self._context.slurm.cancel, "cancels")
        self._note_treated(refused)  # nothing else can be done about them
        return bool(planned.drain or planned.requeue or planned.cancel)

    def _treat(self, job_ids: Collection[int], called: Mapping[int, str], call: _Treat, what: str) -> dict[int, str]:
        """Requeue or cancel jobs, reported as `called`; return those that Slurm refused, with its messages."""
        if not job_ids:
            return {}
        names = list(dict.fromkeys(called[job_id] for job_id in job_ids))
        self._context.report(f"{what} job{'s' if len(names) > 1 else ''} {', '.join(names)}")
        try:
            refused = call(job_ids, self.names)
        except (SlurmError, TransportError) as error:
            # Some may be done: a job that still holds a node at the next look is tried again, a few times.
            self._context.report(f"{error}")
            self._lost.update(job_ids)
            self._note_treated(job_id for job_id in job_ids if self._lost[job_id] >= _ATTEMPTS)
            return {}
        for job_id, words in refused.items():
            self._context.report(f"job {called[job_id]}: {words}")
        self._note_treated(job_id for job_id in job_ids if job_id not in refused)
        return refused

    def _note_treated(self, job_ids: Iterable[int]) -> None:
        self._treated |= dict.fromkeys(job_ids, self._context.clock.now())

    def _aborted(self, planned: Plan, leaving: Sequence[DrainRequest]) -> DrainError:
        """Undrain all nodes, and return the error to raise."""
        kept, wall = self._undrain.run(), self._context.clock.wall()
        return DrainError(plan_text.aborted(planned, leaving, wall, cluster=self._context.cluster, kept=kept))

    # -- reporting ---------------------------------------------------------------------------------------------------

    def _report_progress(self, planned: Plan) -> None:
        """Report progress if it has changed, or if the last line is long ago.

        The line ends with how to continue and how to undo, as an interrupted run can no longer report that.
        """
        now, state = self._context.clock.now(), {name: waiting.why for name, waiting in planned.waiting.items()}
        elapsed = now - self._batches[0].began
        if self._reported[0] == state and now - self._reported[1] < report_pause_seconds(elapsed):
            return
        self._reported = (state, now)
        wall, cluster = self._context.clock.wall(), self._context.cluster
        text = plan_text.progress(planned, self._leaving, wall, cluster=cluster, elapsed_seconds=elapsed)
        self._context.show(f"{text}. {self._continue_or_undo()}")

    def _continue_or_undo(self) -> str:
        return continue_or_undo(self._marker.operation, self._leaving)
