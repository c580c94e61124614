"""One run at freeing nodes of jobs: drains them, waits with progress, and treats jobs as the policies say.

What to do at each look is the planner's to say (`slurm.plan`). Here it is done, whatever slurmctld and the way to it do
meanwhile: an answer that does not come, is odd or is older than one seen before changes nothing, and the next look
decides again. Nothing that failed is repeated blindly.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from soperator_pulumi.errors import (
    DrainError,
    KubernetesError,
    NotRunningError,
    SlurmError,
    TransportError,
    UnknownNodeError,
)
from soperator_pulumi.operations.nodes.undrain import Undrain, way_out
from soperator_pulumi.operations.progress import Clock, Say
from soperator_pulumi.slurm.client import SlurmClient
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
"""How long slurmctld may take until it answers at all: after a restart it recovers its state."""

_FIRST_PAUSE_SECONDS = 0.2
_LOOK_SECONDS = 5.0
_TELL_SECONDS = 60.0
_TELL_LATER_SECONDS = 300.0
_LONG_SECONDS = 600.0
"""After so long it is told less often how far it is: a wait may take days."""
_ATTEMPTS = 3
"""How often a job is treated while the answer is lost, before it counts as done; and a drain that Slurm refuses."""

_Treat = Callable[[Collection[int]], dict[int, str]]


@dataclass(frozen=True)
class DrainResult:
    """What became of nodes that were to be freed."""

    free: frozenset[str]
    """Their pods may be taken away."""
    busy: Mapping[str, str] = field(default_factory=dict)
    """The others, drained, with what keeps each; only where the policy does not wait."""

    def busy_words(self) -> str:
        """Return what keeps the others, those that the same keeps together."""
        by_reason: dict[str, list[str]] = {}
        for name, why in self.busy.items():
            by_reason.setdefault(why, []).append(name)
        return "; ".join(f"{compress(names)} {why}" for why, names in by_reason.items())


class DrainRun:
    """What a run has seen and done so far."""

    def __init__(
        self,
        slurm: SlurmClient,
        leaving: Sequence[DrainRequest],
        marker: Marker,
        *,
        cluster: str,
        say: Say,
        clock: Clock,
        now: Callable[[], float],
        standing: Callable[[], Collection[str]],
        policies: Callable[[], Mapping[str, DrainSpec]],
    ) -> None:
        """Prepare; the parameters are those of `Draining`.

        Args:
            slurm: The cluster's slurmctld.
            leaving: The nodes, and the policy of each node set.
            marker: Of this run.
            cluster: The cluster's name, for messages.
            say: Shows a line.
            clock: Waits, and bounds waits.
            now: Returns the seconds since 1970.
            standing: Returns the nodes whose pods are there and are not being stopped.
            policies: Returns the policies of the cluster's node sets, by name.
        """
        self._policies = policies
        self._others: Mapping[str, DrainSpec] = {}
        """Those policies, once they are needed."""
        self._slurm = slurm
        self._leaving = [*leaving]
        self._names = frozenset(name for each in leaving for name in each.names)
        self._marker = marker
        self._cluster = cluster
        self._say = say
        self._clock = clock
        self._now = now
        self._back = Undrain(slurm, self._names, marker, clock, standing)
        self._began = clock.now()
        """When slurmctld answered first: the policies' time counts from then."""
        self._silent: float | None = None
        """Since when it has not answered."""
        self._last: Snapshot | None = None
        """What slurmctld said last."""
        self._reservations: tuple[Reservation, ...] | None = None
        self._taken: frozenset[str] = frozenset()
        """The nodes with this run's drain that were seen with another run's since."""
        self._treated: dict[int, float] = {}
        self._lost: Counter[int] = Counter()
        """How often the answer was lost, by job."""
        self._unrequeueable: dict[int, str] = {}
        self._refusals = 0
        """How often Slurm has refused to drain, one after the other."""
        self._told: tuple[object, float] = (None, 0.0)

    def free(self, first: Callable[[Snapshot], None] | None = None) -> DrainResult:
        """Free them.

        Args:
            first: Called with what slurmctld says at the first look, before anything is drained.

        Raises:
            DrainError: it was stopped.
        """
        pause, at_once = _FIRST_PAUSE_SECONDS, False
        while self._names:
            acted = False
            if (snapshot := self._look()) is not None:
                if first is not None:
                    first(snapshot)
                    first = None
                planned = self._planned(snapshot)
                if planned.stop:
                    raise self._aborted(planned)
                acted = self._act(planned)
                if not acted and self._enough(planned):
                    self._say(f"{self._cluster}: {len(planned.free)} of {counted(len(self._names), 'node')} free")
                    return DrainResult(planned.free, {name: each.why for name, each in planned.waiting.items()})
                if not acted:
                    self._tell(planned)
            if acted and not at_once:
                pause, at_once = _FIRST_PAUSE_SECONDS, True
                continue  # what was done shows at once
            at_once = False
            self._clock.sleep(pause)
            pause = min(pause * 1.3, _LOOK_SECONDS)
        return DrainResult(frozenset())

    # -- looking --------------------------------------------------------------------------------------------------

    def _look(self) -> Snapshot | None:
        """Return what slurmctld says; None when that is nothing to go by.

        Raises:
            DrainError: it has not answered for too long.
        """
        try:
            snapshot = self._slurm.snapshot(reservations=self._reservations is None)
        except (SlurmError, TransportError) as error:
            self._unanswered(str(error))
            return None
        if self._last is not None and snapshot.older_than(self._last):
            self._unanswered("an answer came that is older than one before")
            return None
        if self._reservations is None:
            self._reservations, self._began = snapshot.reservations, self._clock.now()
        if self._silent is not None:
            self._say(f"{self._cluster}: slurmctld answers again")
        self._last, self._silent = snapshot, None
        if self._taken_over(snapshot):
            return None
        known = snapshot.nodes.keys()
        # Slurm has known it once: from now on its record says what is there, and without a record nothing does.
        self._leaving = [replace(each, never_started=each.never_started - known) for each in self._leaving]
        return replace(snapshot, reservations=self._reservations)

    def _taken_over(self, snapshot: Snapshot) -> bool:
        """Whether another run seems to drain the same nodes now: this one was cut off and a new one goes on.

        Raises:
            DrainError: it does.
        """
        taken = self._back.note(snapshot)
        if both := taken & self._taken:
            raise DrainError(
                f"{self._cluster}: another run drains {compress(in_order(both))} now, so this one ends. "
                "It has put nothing back: that is the other run's to do."
            )
        self._taken = taken
        return bool(taken)

    def _unanswered(self, why: str) -> None:
        """Go on without an answer, with a line, as long as the policies allow.

        Raises:
            DrainError: they do not.
        """
        now = self._clock.now()
        first = self._silent is None
        self._silent = now if self._silent is None else self._silent
        ends = self._silent + ANSWER_SECONDS
        if self._reservations is not None:  # it has answered before
            ends = max(ends, self._began + max(longest_wait_seconds(each.policy) for each in self._leaving))
        if now >= ends:
            raise DrainError(
                f"{self._cluster}: no node is taken away: slurmctld has not answered for {now - self._silent:.0f} s "
                f"({why.rstrip('.')}). {self._back.left_drained()}"
            )
        if first or now - self._told[1] >= _TELL_SECONDS:
            self._told = (None, now)
            self._say(
                f"{self._cluster}: slurmctld does not answer, waits for it {ends - now:.0f} s at most: "
                f"{why.rstrip('.')}. {self._way_out()}"
            )

    def _planned(self, snapshot: Snapshot) -> Plan:
        now = self._clock.now()
        if not self._others and shared(self._leaving, snapshot):
            try:
                self._others = self._policies()
            except KubernetesError as error:  # unknown ones have no job requeued or cancelled; the next look asks again
                self._say(f"{self._cluster}: the drain policies of other node sets are not known yet: {error}")
        return plan(
            self._leaving,
            snapshot,
            self._marker,
            elapsed_seconds=now - self._began,
            now=self._now(),
            treated={job_id: now - since for job_id, since in self._treated.items()},
            unrequeueable=self._unrequeueable,
            others=self._others,
        )

    # -- doing ----------------------------------------------------------------------------------------------------

    def _act(self, planned: Plan) -> bool:
        """Do what is to be done now, and return whether that was anything.

        Raises:
            DrainError: Slurm refuses.
        """
        for reason, names in planned.drain.items():
            self._back.expect(names)
            try:
                self._slurm.drain(names, reason)
            except (TransportError, NotRunningError, UnknownNodeError):
                continue  # it may be done, or one of them has just gone: the next look tells
            except SlurmError as error:
                self._refusals += 1
                if self._refusals >= _ATTEMPTS:
                    words = f"Slurm refuses to drain {compress(names)}: {str(error).rstrip('.')}"
                    raise self._aborted(replace(planned, stop=(words,), refused=True)) from error
            else:
                self._refusals = 0
                self._say(f"{self._cluster}: drains {compress(names)}")
        called = {job.job_id: job.reference for waiting in planned.waiting.values() for job in waiting.jobs}
        self._unrequeueable |= self._treat(planned.requeue, called, self._slurm.requeue, "requeues")
        refused = self._treat(planned.cancel, called, self._slurm.cancel, "cancels")
        self._note_treated(refused)  # nothing else can be done to them
        return bool(planned.drain or planned.requeue or planned.cancel)

    def _treat(self, job_ids: Collection[int], called: Mapping[int, str], call: _Treat, what: str) -> dict[int, str]:
        """Requeue or cancel jobs, which users know as `called`; return those that Slurm refused, with its words."""
        if not job_ids:
            return {}
        names = list(dict.fromkeys(called[each] for each in job_ids))
        self._say(f"{self._cluster}: {what} job{'s' if len(names) > 1 else ''} {', '.join(names)}")
        try:
            refused = call(job_ids)
        except (SlurmError, TransportError) as error:
            # Some may be done: what holds a node even so at the next look is treated again, a few times.
            self._say(f"{self._cluster}: {error}")
            self._lost.update(job_ids)
            self._note_treated(each for each in job_ids if self._lost[each] >= _ATTEMPTS)
            return {}
        for each, words in refused.items():
            self._say(f"{self._cluster}: job {called[each]}: {words}")
        self._note_treated(each for each in job_ids if each not in refused)
        return refused

    def _note_treated(self, job_ids: Iterable[int]) -> None:
        self._treated |= dict.fromkeys(job_ids, self._clock.now())

    def _enough(self, planned: Plan) -> bool:
        """Whether all are free, or those that are not belong to node sets whose policy does not wait."""
        awaited = {name for each in self._leaving if each.policy.wait for name in each.names}
        return not awaited & planned.waiting.keys()

    def _aborted(self, planned: Plan) -> DrainError:
        """Put everything back, and return what is to be said."""
        return DrainError(self._words(planned, self._back.undrain()))

    # -- saying ---------------------------------------------------------------------------------------------------

    def _words(self, planned: Plan, kept: Mapping[str, str]) -> str:
        return plan_text.aborted(planned, self._leaving, self._now(), cluster=self._cluster, kept=kept)

    def _tell(self, planned: Plan) -> None:
        """Say how far it is, when that has changed, or is long ago.

        It ends with how to go on and how to undo: nobody can say that any more when the run is interrupted.
        """
        now, state = self._clock.now(), {name: waiting.why for name, waiting in planned.waiting.items()}
        elapsed = now - self._began
        pause = _TELL_SECONDS if elapsed < _LONG_SECONDS else _TELL_LATER_SECONDS
        if self._told[0] == state and now - self._told[1] < pause:
            return
        self._told = (state, now)
        text = plan_text.progress(planned, self._leaving, self._now(), cluster=self._cluster, elapsed_seconds=elapsed)
        self._say(f"{text}. {self._way_out()}")

    def _way_out(self) -> str:
        return way_out(self._marker.operation, self._leaving)
