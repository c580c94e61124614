"""Rolling update of a node set whose template has changed: in waves whose nodes are drained before and undrained after.

Nothing is stored: Kubernetes knows which pods are old, and the drains name their owner. So the next run can continue a
run that was killed at any point.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from soperator_pulumi.errors import (
    AnotherPlannerError,
    DrainError,
    KubernetesError,
    NotReadyError,
    SlurmError,
    TransportError,
)
from soperator_pulumi.operations.nodes.drain_run import ANSWER_SECONDS
from soperator_pulumi.operations.nodes.draining import Draining
from soperator_pulumi.operations.nodes.live_node_set import WORKER_CONTAINER
from soperator_pulumi.operations.nodes.recreation import Recreation
from soperator_pulumi.operations.nodes.registration import NodeSetStatus, Registration, named
from soperator_pulumi.operations.nodes.undrain import UNDRAIN_SECONDS
from soperator_pulumi.operations.progress import saying, unless_cancelled, until
from soperator_pulumi.slurm.drain.reason import OVER_WHEN_JOINED, SET_BY_RUNS, Operation
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.hostlist import compress, in_order
from soperator_pulumi.slurm.models import Job
from soperator_pulumi.spec.drain import DrainSpec
from soperator_pulumi.spec.types.int_or_percent import Share

_WAVES_SHOWN = 10
_ASK_SECONDS = 5.0


@dataclass(frozen=True)
class RollingUpdate:
    """Updates the pods of one node set."""

    registration: Registration
    draining: Draining
    policy: DrainSpec
    max_unavailable: Share
    timeout_seconds: float
    """Time for a recreated node to join after its old pod is gone, in seconds."""
    tolerated: int = 0
    """Number of nodes with new pods that may be missing without stopping the update."""

    def outdated(self, status: NodeSetStatus) -> tuple[str, ...]:
        """Return the nodes to recreate: those of an older template that are not about to leave."""
        return self._recreation(status).outdated

    def held(self, status: NodeSetStatus) -> dict[str, Operation]:
        """Return the nodes that this stack's drains still hold although their pods are new and have joined."""
        markers = status.drained_by(self._owner).items()
        held = {name: marker.operation for name, marker in markers if marker.operation in OVER_WHEN_JOINED}
        outdated = {*status.outdated}
        return {name: why for name, why in held.items() if status.joined(name) and name not in outdated}

    def undrain(self, status: NodeSetStatus) -> NodeSetStatus:
        """Undrain the nodes in `held`, after waiting for another planner, and return the node set's new state.

        Raises:
            DrainError: another planner still drains after ten minutes.
            NotReadyError: slurmctld has not undrained them within two minutes.
            KubernetesError: the pods cannot be read.
        """
        if not self.held(status):
            return status
        with self.draining.context.alone():
            return self._undrain(self.registration.look())

    def _undrain(self, status: NodeSetStatus) -> NodeSetStatus:
        trouble, clock = "slurmctld still has them drained", self.registration.clock
        say = saying(self.registration.report, "waits until slurmctld has undrained its nodes")
        for _ in until(clock.now() + UNDRAIN_SECONDS, clock, say=say):
            held = self.held(status)
            if not held:
                return status
            try:
                back = self.draining.undrain(held, OVER_WHEN_JOINED)
            except (SlurmError, TransportError) as error:
                trouble = str(error)  # the next look shows if it was done
            else:
                # New nodes are reported as they join.
                if again := [name for name in back if held[name] is not Operation.POD_START]:
                    self.registration.report(f"undrained: {compress(in_order(again))}")
            status = self.registration.look()
        raise NotReadyError(
            f"{self.registration.node_set}: {named(held)} cannot be undrained: {trouble}\n"
            "Run again when slurmctld answers."
        )

    def held_until_they_come(self, status: NodeSetStatus, missing: Sequence[str]) -> list[str]:
        """Return the missing nodes that a run of this stack has drained, and where slurmd does not run yet."""
        pods, held = status.live.pods, status.drained_by(self._owner)
        return [
            name
            for name in missing
            if name in held
            and held[name].operation in OVER_WHEN_JOINED & SET_BY_RUNS
            and (name not in pods or not pods[name].runs(WORKER_CONTAINER))
        ]

    def hand_over_to_pods(self, status: NodeSetStatus, missing: Sequence[str]) -> None:
        """Let nodes that come later undrain themselves, as no run may look again."""
        names = self.held_until_they_come(status, missing)
        try:
            self.draining.hand_over_to_pods(names)
        except (SlurmError, TransportError) as error:
            self.registration.report(f"{named(names)} may stay drained until the next run: {error}")

    def preview(self, status: NodeSetStatus, names: Sequence[str]) -> list[str]:
        """Return what the update of these nodes will do, in lines: their jobs, and the order of the waves."""
        try:
            lines = self.preview_nodes(status, names)
            recreation = self._ask()
            waves, left = recreation.waves(names, _WAVES_SHOWN)
        except (SlurmError, TransportError) as error:
            node_set = self.registration.node_set
            return [f"{node_set}: {compress(names)} will be recreated; their jobs are not known: {error}"]
        order = ", then ".join(compress(wave) for wave in waves)
        more = f", then the other {left}" if left else ""
        return [*lines, f"At most {recreation.budget} at a time (rolling_update.max_unavailable): {order}{more}."]

    def preview_nodes(self, status: NodeSetStatus, names: Sequence[str]) -> list[str]:
        """Return what the update of these nodes will drain, in lines: the nodes and their jobs.

        Raises:
            SlurmError: slurmctld gives an unexpected answer.
            TransportError: slurmctld cannot be reached.
        """
        return self.draining.preview([self._leaving(status, names)], Operation.ROLLING_UPDATE)

    def run(self, status: NodeSetStatus) -> NodeSetStatus:
        """Recreate outdated pods, wave by wave, and return the node set's state afterwards.

        If the policy does not wait, nodes with jobs stay drained: a later run continues with them.

        Raises:
            DrainError: nodes of a wave did not become free; they are undrained.
            NotReadyError: recreated nodes do not join; the others are in service.
            KubernetesError: the pods cannot be read or deleted.
            RunCancelledError: the run was cancelled.
        """
        status = self.undrain(status)
        while self.outdated(status):
            with self.draining.context.alone():
                recreation = self._ask()
                wave = recreation.wave(recreation.outdated)
                free = self._recreate(recreation, wave) if wave else frozenset[str]()
            if not wave:
                status = self._await(recreation.out_of_service) if recreation.outdated else recreation.status
            elif not free:
                return self.registration.look()
            else:
                # A node that was broken before may still be broken: that only counts when all are recreated.
                status = self._await([name for name in wave if name in free and recreation.takes_jobs(name)])
        return status

    def _recreate(self, recreation: Recreation, wave: Sequence[str]) -> frozenset[str]:
        """Drain the nodes of a wave and delete their pods; return the nodes that were free.

        Raises:
            DrainError: the nodes did not become free.
        """
        size = len(recreation.status.names)
        new = size - len(recreation.outdated)
        self.registration.report(f"{new} of {size} nodes have the new pods; recreates {compress(wave)}")
        free = self._free(recreation.status, wave)
        self._delete_pods(free)
        return free

    @property
    def _owner(self) -> str:
        return self.registration.ref.owner

    def _recreation(self, status: NodeSetStatus, jobs: Sequence[Job] = ()) -> Recreation:
        return Recreation(status, jobs, self._owner, self.max_unavailable, self.tolerated)

    def _ask(self) -> Recreation:
        """Return the current state in Slurm and Kubernetes: without both answers no wave is chosen.

        Raises:
            SlurmError: slurmctld has not answered for five minutes.
            TransportError: slurmctld cannot be reached.
        """
        clock, say = self.registration.clock, saying(self.registration.report, "waits for slurmctld")
        for left in until(clock.now() + ANSWER_SECONDS, clock, first=_ASK_SECONDS, longest=_ASK_SECONDS, say=say):
            self.draining.context.keep_alone()
            try:
                snapshot = self.registration.slurm.snapshot(reservations=False)
            except (SlurmError, TransportError):
                if not left:
                    raise
            else:
                return self._recreation(self.registration.look_with(snapshot.nodes), snapshot.jobs)
        raise AssertionError("the last look has returned or raised")

    # -- one wave -------------------------------------------------------------------------------------------------

    def _leaving(self, status: NodeSetStatus, names: Sequence[str]) -> DrainRequest:
        every = status.live.recreated(self.policy)
        chosen = {*names}
        staying = tuple(name for name in status.names if name not in chosen)
        never_started, starting = every.never_started & chosen, every.starting & chosen
        return replace(every, names=tuple(names), staying=staying, never_started=never_started, starting=starting)

    def _free(self, status: NodeSetStatus, wave: Sequence[str]) -> frozenset[str]:
        """Drain the nodes of a wave, wait, and return those that are free.

        Raises:
            DrainError: the nodes did not become free.
            AnotherPlannerError: another planner drains nodes now: these nodes are not undrained.
        """
        try:
            freed = self.draining.free([self._leaving(status, wave)], Operation.ROLLING_UPDATE)
        except AnotherPlannerError:
            raise
        except DrainError as error:
            self._undrain_all()
            left, size = len(self.outdated(status)), len(status.names)
            raise DrainError(
                f"{error}\n  The rolling update of {self.registration.node_set} stops here: {size - left} of {size} "
                "nodes have the new pods, the others stay in service with theirs. Run again to continue."
            ) from error
        for name, why in freed.busy.items():
            self.registration.report(f"{name} stays drained, and a later run recreates it: {why}")
        return freed.free

    def _delete_pods(self, names: Collection[str]) -> None:
        """Delete the pods that are still old and whose nodes are still free: the drain run's answer may be outdated."""
        status = self.registration.look()
        for name in self.outdated(status):
            if name in names and _still_free(status, name):
                unless_cancelled()
                self.registration.kube.delete(status.live.pods[name].path)

    def _await(self, names: Sequence[str]) -> NodeSetStatus:
        """Wait until recreated nodes have joined, and undrain them.

        Raises:
            NotReadyError: they have not joined in time.
        """
        seconds = self.policy.grace.total_seconds() + self.timeout_seconds
        status = self.registration.wait(names, seconds)
        if words := self.registration.not_joined(status, names, seconds):
            self._undrain_all()
            raise NotReadyError(
                f"{words}\nThe rolling update stops here: {len(self.outdated(status))} of {len(status.names)} nodes "
                "have their old pods and stay in service. Fix the problems above and run again."
            )
        return self.undrain(status)

    def _undrain_all(self) -> None:
        """Undrain nodes that an interrupted run has left drained, and recreated nodes that have joined since."""
        try:
            with self.draining.context.alone():
                status = self.registration.look()
                self.draining.undrain([*self.outdated(status), *self.held(status)], {Operation.ROLLING_UPDATE})
        except (DrainError, KubernetesError, SlurmError, TransportError) as error:
            self.registration.report(f"the next run undrains nodes that are still drained: {error}")


def _still_free(status: NodeSetStatus, name: str) -> bool:
    node = status.nodes.get(name)
    if node is None:  # unknown to slurmctld: without slurmd, no job can be there
        return not status.trouble and not status.live.pods[name].runs(WORKER_CONTAINER)
    return node.drained and not node.busy_state
