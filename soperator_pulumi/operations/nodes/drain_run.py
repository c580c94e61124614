"""One drain run: drains nodes, waits with progress, and treats jobs by the policies.

The planner (`slurm.drain.plan`) decides at each look, and the run acts, whatever slurmctld and the way to it do
meanwhile. An answer that is missing, odd, or older than an earlier one changes nothing: the next look decides again.
Nothing that failed is repeated blindly.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

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
from soperator_pulumi.operations.nodes.drain_result import DrainResult
from soperator_pulumi.operations.nodes.live_node_set import LiveNodeSet
from soperator_pulumi.operations.nodes.undrain import Undrain, way_out
from soperator_pulumi.operations.progress import report_pause_seconds, unless_cancelled
from soperator_pulumi.slurm.drain import plan_text
from soperator_pulumi.slurm.drain.formatting import counted
from soperator_pulumi.slurm.drain.plan import Plan, plan, shared
from soperator_pulumi.slurm.drain.reason import Marker
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.drain.time_out import longest_wait_seconds
from soperator_pulumi.slurm.hostlist import compress, in_order
from soperator_pulumi.slurm.models import Reservation, Snapshot
from soperator_pulumi.spec.drain import DrainSpec

ANSWER_SECONDS = 300
"""Time for slurmctld to answer at all: after a restart it recovers its state."""

_FIRST_PAUSE_SECONDS = 0.2
_LOOK_SECONDS = 5.0
_ATTEMPTS = 3
"""Attempts at a job whose answer is lost, before it counts as treated; and at a drain that Slurm refuses."""

_Treat = Callable[[Collection[int], Collection[str]], dict[int, str]]


class DrainRun:
    """One run, with all that it has seen and done so far."""

    def __init__(self, context: DrainContext, leaving: Sequence[DrainRequest], marker: Marker) -> None:
        """Prepare.

        Args:
            context: The cluster.
            leaving: The nodes, and the policy of each node set.
            marker: Of this run.
        """
        self._context = context
        self._leaving = [*leaving]
        self._names = frozenset(name for each in leaving for name in each.names)
        self._marker = marker
        self._undrain = Undrain(context, self._names, marker)
        self._others: Mapping[str, DrainSpec] = {}
        """Policies of the cluster's node sets, once they are needed."""
        self._began = context.clock.now()
        """Time of slurmctld's first answer: the policies' timeouts count from it."""
        self._silent: float | None = None
        """Time of its last answer, while it does not answer."""
        self._last: Snapshot | None = None
        """The last answer."""
        self._reservations: tuple[Reservation, ...] | None = None
        self._taken: frozenset[str] = frozenset()
        """Nodes with this run's drain, seen with another run's since."""
        self._treated: dict[int, float] = {}
        self._lost: Counter[int] = Counter()
        """Lost answers, by job."""
        self._unrequeueable: dict[int, str] = {}
        self._refusals = 0
        """Drains that Slurm has refused, one after the other."""
        self._reported: tuple[object, float] = (None, 0.0)

    def free(self, first: Callable[[Snapshot], None] | None = None) -> DrainResult:
        """Free them.

        Args:
            first: Called with the first look, before anything is drained.

        Raises:
            DrainError: it was stopped.
            AnotherPlannerError: another planner holds the cluster's Lease, or drains the same nodes.
            RunCancelledError: somebody cancelled the run.
        """
        pause, at_once = _FIRST_PAUSE_SECONDS, False
        while self._names:
            acted = False
            self._context.keep_alone()
            if (snapshot := self._look()) is not None:
                if first is not None:
                    first(snapshot)
                    first = None
                planned = self._planned(snapshot)
                if planned.stop:
                    raise self._aborted(planned)
                with self._naming_the_way_out():
                    unless_cancelled()
                acted = self._act(planned)
                if not acted and self._enough(planned):
                    self._context.report(f"{len(planned.free)} of {counted(len(self._names), 'node')} free")
                    return DrainResult(planned.free, {name: each.why for name, each in planned.waiting.items()})
                if not acted:
                    self._report_progress(planned)
            if acted and not at_once:
                pause, at_once = _FIRST_PAUSE_SECONDS, True
                continue  # an act shows at once
            at_once = False
            with self._naming_the_way_out():
                self._context.clock.sleep(pause)
            pause = min(pause * 1.3, _LOOK_SECONDS)
        return DrainResult(frozenset())

    @contextmanager
    def _naming_the_way_out(self) -> Iterator[None]:
        """Name the way out where somebody has cancelled the run. The drains stay, for the next run.

        Raises:
            RunCancelledError: somebody has.
        """
        try:
            yield
        except RunCancelledError:
            raise RunCancelledError(f"{self._context.cluster}: cancelled. {self._way_out()}") from None

    # -- looking --------------------------------------------------------------------------------------------------

    def _look(self) -> Snapshot | None:
        """Return slurmctld's answer; None where nothing can be decided by it.

        Raises:
            DrainError: it has not answered for too long.
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
            self._reservations, self._began = snapshot.reservations, self._context.clock.now()
        if self._silent is not None:
            self._context.report("slurmctld answers again")
        self._last, self._silent = snapshot, None
        if self._taken_over(snapshot):
            return None
        self._look_at_starts(frozenset(snapshot.nodes))
        return replace(snapshot, reservations=self._reservations)

    def _look_at_starts(self, known: frozenset[str]) -> None:
        """Look at the pods again that were starting: slurmd has started in some, and some cannot start.

        A node that Slurm has known once is judged by Slurm's record alone from then on.
        """
        self._leaving = [
            replace(each, never_started=each.never_started - known, starting=each.starting - known)
            for each in self._leaving
        ]
        if not any(each.starting for each in self._leaving):
            return
        try:
            live = self._context.live()
        except KubernetesError as error:  # all count as starting; the next look asks again
            self._context.report(f"the pods that are starting are not known: {error}")
            return
        waited = self._context.clock.now() - self._began
        self._leaving = [
            (live.get(each.node_set) or LiveNodeSet(each.node_set)).with_starts(each, waited) for each in self._leaving
        ]

    def _taken_over(self, snapshot: Snapshot) -> bool:
        """Return True where another run seems to drain the same nodes: this one was cut off, and a new one continues.

        Raises:
            AnotherPlannerError: it does.
        """
        taken = self._undrain.note(snapshot)
        if both := taken & self._taken:
            raise AnotherPlannerError(
                f"{self._context.cluster}: another run drains {compress(in_order(both))} now, so this one ends. "
                "It has undrained nothing: the other run does."
            )
        self._taken = taken
        return bool(taken)

    def _unanswered(self, why: str) -> None:
        """Wait for an answer, with a line, as long as the policies allow.

        Raises:
            DrainError: they do not.
        """
        now = self._context.clock.now()
        first = self._silent is None
        self._silent = now if self._silent is None else self._silent
        ends = self._silent + ANSWER_SECONDS
        if self._reservations is not None:  # it has answered before
            ends = max(ends, self._began + max(longest_wait_seconds(each.policy) for each in self._leaving))
        if now >= ends:
            raise DrainError(
                f"{self._context.cluster}: no node is removed: slurmctld has not answered for "
                f"{now - self._silent:.0f} s ({why.rstrip('.')}). {self._undrain.left_drained()}"
            )
        if first or now - self._reported[1] >= report_pause_seconds(0):
            self._reported = (None, now)
            self._context.report(
                f"slurmctld does not answer, waits for it {ends - now:.0f} s at most: "
                f"{why.rstrip('.')}. {self._way_out()}"
            )

    def _planned(self, snapshot: Snapshot) -> Plan:
        now = self._context.clock.now()
        if not self._others and shared(self._leaving, snapshot):
            try:
                self._others = self._context.policies()
            except KubernetesError as error:  # unknown ones have no job requeued or cancelled; the next look asks again
                self._context.report(f"the drain policies of other node sets are not known yet: {error}")
        return plan(
            self._leaving,
            snapshot,
            self._marker,
            elapsed_seconds=now - self._began,
            now=self._context.clock.wall(),
            treated={job_id: now - since for job_id, since in self._treated.items()},
            unrequeueable=self._unrequeueable,
            others=self._others,
        )

    # -- doing ----------------------------------------------------------------------------------------------------

    def _act(self, planned: Plan) -> bool:
        """Act on the plan, and return True where it had anything to do.

        Raises:
            DrainError: Slurm refuses.
        """
        for reason, names in planned.drain.items():
            self._undrain.expect(names)
            try:
                self._context.slurm.drain(names, reason)
            except (TransportError, NotRunningError, UnknownNodeError):
                continue  # it may be done, or one of them has just gone: the next look shows
            except SlurmError as error:
                self._refusals += 1
                if self._refusals >= _ATTEMPTS:
                    words = f"Slurm refuses to drain {compress(names)}: {str(error).rstrip('.')}"
                    raise self._aborted(replace(planned, stop=(words,), refused=True)) from error
            else:
                self._refusals = 0
                self._context.report(f"drains {compress(names)}")
        called = {job.job_id: job.reference for waiting in planned.waiting.values() for job in waiting.jobs}
        self._unrequeueable |= self._treat(planned.requeue, called, self._context.slurm.requeue, "requeues")
        refused = self._treat(planned.cancel, called, self._context.slurm.cancel, "cancels")
        self._note_treated(refused)  # nothing else can be done to them
        return bool(planned.drain or planned.requeue or planned.cancel)

    def _treat(self, job_ids: Collection[int], called: Mapping[int, str], call: _Treat, what: str) -> dict[int, str]:
        """Requeue or cancel jobs, which users know as `called`; return those that Slurm refused, with its messages."""
        if not job_ids:
            return {}
        names = list(dict.fromkeys(called[each] for each in job_ids))
        self._context.report(f"{what} job{'s' if len(names) > 1 else ''} {', '.join(names)}")
        try:
            refused = call(job_ids, {name for each in self._leaving for name in each.names})
        except (SlurmError, TransportError) as error:
            # Some may be done: a job that still holds a node at the next look is treated again, a few times.
            self._context.report(f"{error}")
            self._lost.update(job_ids)
            self._note_treated(each for each in job_ids if self._lost[each] >= _ATTEMPTS)
            return {}
        for each, words in refused.items():
            self._context.report(f"job {called[each]}: {words}")
        self._note_treated(each for each in job_ids if each not in refused)
        return refused

    def _note_treated(self, job_ids: Iterable[int]) -> None:
        self._treated |= dict.fromkeys(job_ids, self._context.clock.now())

    def _enough(self, planned: Plan) -> bool:
        """Return True where all are free, but those of node sets whose policy does not wait."""
        awaited = {name for each in self._leaving if each.policy.wait for name in each.names}
        return not awaited & planned.waiting.keys()

    def _aborted(self, planned: Plan) -> DrainError:
        """Undrain everything, and return the error to raise."""
        kept, wall = self._undrain.run(), self._context.clock.wall()
        return DrainError(plan_text.aborted(planned, self._leaving, wall, cluster=self._context.cluster, kept=kept))

    # -- reporting ---------------------------------------------------------------------------------------------------

    def _report_progress(self, planned: Plan) -> None:
        """Show progress, where it has changed or the last line is long ago.

        The line ends with how to continue and how to undo: an interrupted run can show neither.
        """
        now, state = self._context.clock.now(), {name: waiting.why for name, waiting in planned.waiting.items()}
        elapsed = now - self._began
        if self._reported[0] == state and now - self._reported[1] < report_pause_seconds(elapsed):
            return
        self._reported = (state, now)
        wall, cluster = self._context.clock.wall(), self._context.cluster
        text = plan_text.progress(planned, self._leaving, wall, cluster=cluster, elapsed_seconds=elapsed)
        self._context.show(f"{text}. {self._way_out()}")

    def _way_out(self) -> str:
        return way_out(self._marker.operation, self._leaving)
