"""Renewing a node set's pods whose template has changed: in waves, each node drained before and resumed after.

Nothing is remembered: which pods are old Kubernetes says, and whose drains are ours the drains themselves say. So a run
that was killed, at whatever moment, is gone on with by the next one.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from soperator_pulumi.errors import DrainError, NotReadyError, SlurmError, TransportError
from soperator_pulumi.operations.nodes.drain_run import ANSWER_SECONDS
from soperator_pulumi.operations.nodes.draining import Draining
from soperator_pulumi.operations.nodes.live_node_set import WORKER_CONTAINER
from soperator_pulumi.operations.nodes.recreation import Recreation
from soperator_pulumi.operations.nodes.registration import NodeSetStatus, Registration, named
from soperator_pulumi.operations.nodes.undrain import UNDRAIN_SECONDS
from soperator_pulumi.operations.progress import until
from soperator_pulumi.slurm.drain.reason import Operation
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.hostlist import compress, in_order
from soperator_pulumi.slurm.models import Job
from soperator_pulumi.spec.drain import DrainSpec
from soperator_pulumi.spec.types.int_or_percent import Share

PUT_BACK = frozenset(Operation) - {Operation.SCALE_DOWN}
"""Operations whose drains end when their nodes' pods are new and have joined. A node that is drained for a scale-down
may be one that is to leave once its jobs have ended (`drain.wait: false`)."""

_WAVES_TOLD = 10
_ASK_SECONDS = 5.0


@dataclass(frozen=True)
class RollingUpdate:
    """The pods of one node set."""

    registration: Registration
    draining: Draining
    policy: DrainSpec
    max_unavailable: Share
    timeout_seconds: float
    """How long a renewed node may take to join, from when its old pod is gone."""
    tolerated: int = 0
    """How many nodes with new pods may be missing without holding up the others."""

    def outdated(self, status: NodeSetStatus) -> tuple[str, ...]:
        """Return the nodes to renew: those of an older template that are not about to leave."""
        return self._renewal(status).outdated

    def held(self, status: NodeSetStatus) -> dict[str, Operation]:
        """Return the nodes that a drain of ours still holds although their pods are new and have joined."""
        markers = status.drained_by(self.registration.place.owner).items()
        held = {name: marker.operation for name, marker in markers if marker.operation in PUT_BACK}
        outdated = {*status.outdated}
        return {name: why for name, why in held.items() if status.joined(name) and name not in outdated}

    def undrain(self, status: NodeSetStatus) -> NodeSetStatus:
        """Resume those, and return how it looks then.

        Raises:
            NotReadyError: slurmctld has not done it for two minutes.
            KubernetesError: the pods cannot be looked at.
        """
        trouble = "slurmctld still has them drained"
        for _ in until(self.registration.clock.now() + UNDRAIN_SECONDS, self.registration.clock):
            held = self.held(status)
            if not held:
                return status
            try:
                back = self.draining.undrain(held, PUT_BACK)
            except (SlurmError, TransportError) as error:
                trouble = str(error)  # whether it was done the next look tells
            else:
                # That new ones have joined is said as well.
                if again := [name for name in back if held[name] is not Operation.POD_START]:
                    self.registration.say(f"{self.registration.node_set}: {compress(in_order(again))} in service again")
            status = self.registration.look()
        raise NotReadyError(
            f"{self.registration.node_set}: {named(held)} cannot be put back into service: {trouble}\n"
            "Run again when slurmctld answers."
        )

    def held_until_they_come(self, status: NodeSetStatus, missing: Sequence[str]) -> list[str]:
        """Return those that a drain of a run of ours holds, and where no slurmd is yet."""
        pods, held = status.live.pods, status.drained_by(self.registration.place.owner)
        return [
            name
            for name in missing
            if name in held
            and held[name].operation in PUT_BACK
            and not held[name].operation.of_a_pod
            and (name not in pods or not pods[name].runs(WORKER_CONTAINER))
        ]

    def hand_over_to_pods(self, status: NodeSetStatus, missing: Sequence[str]) -> None:
        """Have nodes that come later put themselves back: nobody may look again."""
        names = self.held_until_they_come(status, missing)
        try:
            self.draining.hand_over_to_pods(names)
        except (SlurmError, TransportError) as error:
            self.registration.say(
                f"{self.registration.node_set}: {named(names)} may stay drained until the next run: {error}"
            )

    def preview(self, status: NodeSetStatus, names: Sequence[str]) -> list[str]:
        """Return what renewing these nodes will do, in lines: what runs on them, and in what order they go."""
        try:
            lines = self.draining.preview([self._leaving(status, names)], Operation.ROLLING_UPDATE)
            recreation = self._ask()
            waves, left = recreation.waves(names, _WAVES_TOLD)
        except (SlurmError, TransportError) as error:
            return [
                f"{self.registration.node_set}: {compress(names)} will be renewed; what is on them is not known: {error}"
            ]
        order = ", then ".join(compress(wave) for wave in waves)
        more = f", then the other {left}" if left else ""
        return [*lines, f"At most {recreation.budget} at a time (rolling_update.max_unavailable): {order}{more}."]

    def run(self, status: NodeSetStatus) -> NodeSetStatus:
        """Renew what is outdated, wave by wave, and return how it looks then.

        Where the policy does not wait, nodes with jobs stay drained: a later run goes on with them.

        Raises:
            DrainError: the nodes of a wave did not become free; they are in service again.
            NotReadyError: renewed nodes do not join; the others are in service.
            KubernetesError: the pods cannot be looked at, or not deleted.
        """
        status = self.undrain(status)
        while self.outdated(status):
            recreation = self._ask()
            wave = recreation.wave(recreation.outdated)
            if not wave:
                status = self._await(recreation.out_of_service) if recreation.outdated else recreation.status
                continue
            new, size = len(status.names) - len(recreation.outdated), len(status.names)
            self.registration.say(
                f"{self.registration.node_set}: {new} of {size} nodes have the new pods; renews {compress(wave)}"
            )
            free = self._free(recreation.status, wave)
            if not free:
                return self.registration.look()
            self._delete_pods(free)
            # What was broken before may still be; whether that matters is seen when all are renewed.
            status = self._await([name for name in wave if name in free and recreation.takes_jobs(name)])
        return status

    def _renewal(self, status: NodeSetStatus, jobs: Sequence[Job] = ()) -> Recreation:
        return Recreation(status, jobs, self.registration.place.owner, self.max_unavailable, self.tolerated)

    def _ask(self) -> Recreation:
        """Return what Slurm and Kubernetes say now. Waves are chosen by nothing less: no answer is no information.

        Raises:
            SlurmError: slurmctld has not answered for five minutes.
            TransportError: it was not reached.
        """
        deadline = self.registration.clock.now() + ANSWER_SECONDS
        while True:
            try:
                snapshot = self.registration.slurm.snapshot(reservations=False)
            except (SlurmError, TransportError):
                if self.registration.clock.now() >= deadline:
                    raise
                self.registration.clock.sleep(_ASK_SECONDS)
            else:
                return self._renewal(self.registration.look_with(snapshot.nodes), snapshot.jobs)

    # -- one wave -------------------------------------------------------------------------------------------------

    def _leaving(self, status: NodeSetStatus, names: Sequence[str]) -> DrainRequest:
        every = status.live.renewed(self.policy)
        chosen = {*names}
        staying = tuple(name for name in status.names if name not in chosen)
        return replace(every, names=tuple(names), staying=staying, never_started=every.never_started & chosen)

    def _free(self, status: NodeSetStatus, wave: Sequence[str]) -> frozenset[str]:
        """Free the nodes of a wave, and return those that are.

        Raises:
            DrainError: they did not become free.
        """
        try:
            freed = self.draining.free([self._leaving(status, wave)], Operation.ROLLING_UPDATE)
        except DrainError as error:
            self._leave_in_service()
            left = len(self.outdated(status))
            raise DrainError(
                f"{error}\n  The rolling update of {self.registration.node_set} stops here: {len(status.names) - left} of "
                f"{len(status.names)} nodes have the new pods, the others go on with theirs. Run again to go on."
            ) from error
        for name, why in freed.busy.items():
            self.registration.say(
                f"{self.registration.node_set}: {name} stays drained and is renewed by a later run: {why}"
            )
        return freed.free

    def _delete_pods(self, names: Collection[str]) -> None:
        """Delete the pods that are still old ones, and their nodes still free: the answer that said so may be old."""
        status = self.registration.look()
        for name in self.outdated(status):
            if name in names and _still_free(status, name):
                self.registration.kube.delete(status.live.pods[name].path)

    def _await(self, names: Sequence[str]) -> NodeSetStatus:
        """Wait until renewed nodes have joined, and put them back into service.

        Raises:
            NotReadyError: they have not in time.
        """
        seconds = self.policy.grace.total_seconds() + self.timeout_seconds
        status = self.registration.wait(names, seconds)
        if words := self.registration.not_joined(status, names, seconds):
            self._leave_in_service()
            raise NotReadyError(
                f"{words}\nThe rolling update stops here: {len(self.outdated(status))} of {len(status.names)} nodes have "
                "their old pods and stay in service. Mend what is named and run again."
            )
        return self.undrain(status)

    def _leave_in_service(self) -> None:
        """Put back what an interrupted run has left drained, and renewed nodes that have joined since."""
        status = self.registration.look()
        try:
            self.draining.undrain([*self.outdated(status), *self.held(status)], {Operation.ROLLING_UPDATE})
        except (SlurmError, TransportError) as error:
            self.registration.say(
                f"{self.registration.node_set}: nodes that are still drained are put back by the next run: {error}"
            )


def _still_free(status: NodeSetStatus, name: str) -> bool:
    node = status.nodes.get(name)
    if node is None:  # slurmctld does not know it: no job is there as long as no slurmd is
        return not status.trouble and not status.live.pods[name].runs(WORKER_CONTAINER)
    return node.drained and not node.busy_state
