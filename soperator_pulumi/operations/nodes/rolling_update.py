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
from soperator_pulumi.operations.nodes.registration import Joining, Roll, named
from soperator_pulumi.operations.nodes.renewal import Renewal
from soperator_pulumi.operations.nodes.undrain import PUT_BACK_SECONDS
from soperator_pulumi.operations.progress import until
from soperator_pulumi.slurm.drain.reason import Operation
from soperator_pulumi.slurm.drain.request import Leaving
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
class Rolling:
    """The pods of one node set."""

    joining: Joining
    draining: Draining
    policy: DrainSpec
    max_unavailable: Share
    timeout_seconds: float
    """How long a renewed node may take to join, from when its old pod is gone."""
    tolerated: int = 0
    """How many nodes with new pods may be missing without holding up the others."""

    def outdated(self, roll: Roll) -> tuple[str, ...]:
        """Return the nodes to renew: those of an older template that are not about to leave."""
        return self._renewal(roll).outdated

    def held(self, roll: Roll) -> dict[str, Operation]:
        """Return the nodes that a drain of ours still holds although their pods are new and have joined."""
        markers = roll.drained_by(self.joining.place.owner).items()
        held = {name: marker.operation for name, marker in markers if marker.operation in PUT_BACK}
        outdated = {*roll.outdated}
        return {name: why for name, why in held.items() if roll.joined(name) and name not in outdated}

    def put_back(self, roll: Roll) -> Roll:
        """Resume those, and return how it looks then.

        Raises:
            NotReadyError: slurmctld has not done it for two minutes.
            KubernetesError: the pods cannot be looked at.
        """
        trouble = "slurmctld still has them drained"
        for _ in until(self.joining.clock.now() + PUT_BACK_SECONDS, self.joining.clock):
            held = self.held(roll)
            if not held:
                return roll
            try:
                back = self.draining.put_back(held, PUT_BACK)
            except (SlurmError, TransportError) as error:
                trouble = str(error)  # whether it was done the next look tells
            else:
                # That new ones have joined is said as well.
                if again := [name for name in back if held[name] is not Operation.POD_START]:
                    self.joining.say(f"{self.joining.node_set}: {compress(in_order(again))} in service again")
            roll = self.joining.look()
        raise NotReadyError(
            f"{self.joining.node_set}: {named(held)} cannot be put back into service: {trouble}\n"
            "Run again when slurmctld answers."
        )

    def held_until_they_come(self, roll: Roll, missing: Sequence[str]) -> list[str]:
        """Return those that a drain of a run of ours holds, and where no slurmd is yet."""
        pods, held = roll.live.pods, roll.drained_by(self.joining.place.owner)
        return [
            name
            for name in missing
            if name in held
            and held[name].operation in PUT_BACK
            and not held[name].operation.of_a_pod
            and (name not in pods or not pods[name].runs(WORKER_CONTAINER))
        ]

    def leave_to_pods(self, roll: Roll, missing: Sequence[str]) -> None:
        """Have nodes that come later put themselves back: nobody may look again."""
        names = self.held_until_they_come(roll, missing)
        try:
            self.draining.leave_to_pods(names)
        except (SlurmError, TransportError) as error:
            self.joining.say(f"{self.joining.node_set}: {named(names)} may stay drained until the next run: {error}")

    def preview(self, roll: Roll, names: Sequence[str]) -> list[str]:
        """Return what renewing these nodes will do, in lines: what runs on them, and in what order they go."""
        try:
            lines = self.draining.preview([self._leaving(roll, names)], Operation.ROLLING_UPDATE)
            renewal = self._ask()
            waves, left = renewal.waves(names, _WAVES_TOLD)
        except (SlurmError, TransportError) as error:
            return [
                f"{self.joining.node_set}: {compress(names)} will be renewed; what is on them is not known: {error}"
            ]
        order = ", then ".join(compress(wave) for wave in waves)
        more = f", then the other {left}" if left else ""
        return [*lines, f"At most {renewal.budget} at a time (rolling_update.max_unavailable): {order}{more}."]

    def run(self, roll: Roll) -> Roll:
        """Renew what is outdated, wave by wave, and return how it looks then.

        Where the policy does not wait, nodes with jobs stay drained: a later run goes on with them.

        Raises:
            DrainError: the nodes of a wave did not become free; they are in service again.
            NotReadyError: renewed nodes do not join; the others are in service.
            KubernetesError: the pods cannot be looked at, or not deleted.
        """
        roll = self.put_back(roll)
        while self.outdated(roll):
            renewal = self._ask()
            wave = renewal.wave(renewal.outdated)
            if not wave:
                roll = self._await(renewal.out_of_service) if renewal.outdated else renewal.roll
                continue
            new, size = len(roll.names) - len(renewal.outdated), len(roll.names)
            self.joining.say(
                f"{self.joining.node_set}: {new} of {size} nodes have the new pods; renews {compress(wave)}"
            )
            free = self._free(renewal.roll, wave)
            if not free:
                return self.joining.look()
            self._delete_pods(free)
            # What was broken before may still be; whether that matters is seen when all are renewed.
            roll = self._await([name for name in wave if name in free and renewal.takes_jobs(name)])
        return roll

    def _renewal(self, roll: Roll, jobs: Sequence[Job] = ()) -> Renewal:
        return Renewal(roll, jobs, self.joining.place.owner, self.max_unavailable, self.tolerated)

    def _ask(self) -> Renewal:
        """Return what Slurm and Kubernetes say now. Waves are chosen by nothing less: no answer is no information.

        Raises:
            SlurmError: slurmctld has not answered for five minutes.
            TransportError: it was not reached.
        """
        deadline = self.joining.clock.now() + ANSWER_SECONDS
        while True:
            try:
                snapshot = self.joining.slurm.snapshot(reservations=False)
            except (SlurmError, TransportError):
                if self.joining.clock.now() >= deadline:
                    raise
                self.joining.clock.sleep(_ASK_SECONDS)
            else:
                return self._renewal(self.joining.look_with(snapshot.nodes), snapshot.jobs)

    # -- one wave -------------------------------------------------------------------------------------------------

    def _leaving(self, roll: Roll, names: Sequence[str]) -> Leaving:
        every = roll.live.renewed(self.policy)
        chosen = {*names}
        staying = tuple(name for name in roll.names if name not in chosen)
        return replace(every, names=tuple(names), staying=staying, never_started=every.never_started & chosen)

    def _free(self, roll: Roll, wave: Sequence[str]) -> frozenset[str]:
        """Free the nodes of a wave, and return those that are.

        Raises:
            DrainError: they did not become free.
        """
        try:
            freed = self.draining.free([self._leaving(roll, wave)], Operation.ROLLING_UPDATE)
        except DrainError as error:
            self._leave_in_service()
            left = len(self.outdated(roll))
            raise DrainError(
                f"{error}\n  The rolling update of {self.joining.node_set} stops here: {len(roll.names) - left} of "
                f"{len(roll.names)} nodes have the new pods, the others go on with theirs. Run again to go on."
            ) from error
        for name, why in freed.busy.items():
            self.joining.say(f"{self.joining.node_set}: {name} stays drained and is renewed by a later run: {why}")
        return freed.free

    def _delete_pods(self, names: Collection[str]) -> None:
        """Delete the pods that are still old ones, and their nodes still free: the answer that said so may be old."""
        roll = self.joining.look()
        for name in self.outdated(roll):
            if name in names and _still_free(roll, name):
                self.joining.kube.delete(roll.live.pods[name].path)

    def _await(self, names: Sequence[str]) -> Roll:
        """Wait until renewed nodes have joined, and put them back into service.

        Raises:
            NotReadyError: they have not in time.
        """
        seconds = self.policy.grace.total_seconds() + self.timeout_seconds
        roll = self.joining.wait(names, seconds)
        if words := self.joining.not_joined(roll, names, seconds):
            self._leave_in_service()
            raise NotReadyError(
                f"{words}\nThe rolling update stops here: {len(self.outdated(roll))} of {len(roll.names)} nodes have "
                "their old pods and stay in service. Mend what is named and run again."
            )
        return self.put_back(roll)

    def _leave_in_service(self) -> None:
        """Put back what an interrupted run has left drained, and renewed nodes that have joined since."""
        roll = self.joining.look()
        try:
            self.draining.put_back([*self.outdated(roll), *self.held(roll)], {Operation.ROLLING_UPDATE})
        except (SlurmError, TransportError) as error:
            self.joining.say(
                f"{self.joining.node_set}: nodes that are still drained are put back by the next run: {error}"
            )


def _still_free(roll: Roll, name: str) -> bool:
    node = roll.nodes.get(name)
    if node is None:  # slurmctld does not know it: no job is there as long as no slurmd is
        return not roll.trouble and not roll.live.pods[name].runs(WORKER_CONTAINER)
    return node.drained and not node.busy_state
