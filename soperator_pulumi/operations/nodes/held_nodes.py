"""Nodes that drains of a stack hold until they have joined with new pods, and their return into service."""

from collections.abc import Sequence
from dataclasses import dataclass

from soperator_pulumi.errors import NotReadyError, SlurmError, TransportError
from soperator_pulumi.operations.nodes.draining import Draining
from soperator_pulumi.operations.nodes.live_node_set import WORKER_CONTAINER
from soperator_pulumi.operations.nodes.registration import NodeSetStatus, Registration, named
from soperator_pulumi.operations.nodes.undrain import UNDRAIN_SECONDS
from soperator_pulumi.operations.progress import saying, until
from soperator_pulumi.slurm.drain.reason import OVER_WHEN_JOINED, SET_BY_RUNS, Operation
from soperator_pulumi.slurm.hostlist import compress, in_order


@dataclass(frozen=True)
class HeldNodes:
    """Finds the held nodes of one node set, and gives them back."""

    registration: Registration
    draining: Draining

    def of(self, status: NodeSetStatus) -> dict[str, Operation]:
        """Return the nodes that this stack's drains still hold although their pods are new and have joined."""
        markers = status.drained_by(self.registration.ref.owner).items()
        held = {name: marker.operation for name, marker in markers if marker.operation in OVER_WHEN_JOINED}
        outdated = {*status.outdated}
        return {name: why for name, why in held.items() if status.joined(name) and name not in outdated}

    def undrain(self, status: NodeSetStatus) -> NodeSetStatus:
        """Undrain the held nodes, after waiting for another planner, and return the node set's new state.

        Raises:
            DrainError: another planner still drains after ten minutes.
            NotReadyError: slurmctld has not undrained them within two minutes after the last of them has joined.
            KubernetesError: the pods cannot be read.
        """
        if not self.of(status):
            return status
        with self.draining.context.alone():
            return self._undrain(self.registration.look())

    def _undrain(self, status: NodeSetStatus) -> NodeSetStatus:
        trouble, clock = "slurmctld still has them drained", self.registration.clock
        say = saying(self.registration.report, "waits until slurmctld has undrained its nodes")
        seen: frozenset[str] = frozenset()
        # Many nodes may join one after another for longer than slurmctld has for the last of them.
        while new := self.of(status).keys() - seen:
            seen |= new
            for _ in until(clock.now() + UNDRAIN_SECONDS, clock, say=say):
                held = self.of(status)
                if not held or held.keys() - seen:
                    break
                self.draining.context.keep_alone()
                try:
                    back = self.draining.undrain(held, OVER_WHEN_JOINED)
                except (SlurmError, TransportError) as error:
                    trouble = str(error)  # the next look shows if it was done
                else:
                    # New nodes are reported as they join.
                    if again := [name for name in back if held[name] is not Operation.POD_START]:
                        self.registration.report(f"undrained: {compress(in_order(again))}")
                status = self.registration.look()
        if held := self.of(status):
            raise NotReadyError(
                f"{self.registration.node_set}: {named(held)} cannot be undrained: {trouble}\n"
                "Run again when slurmctld answers."
            )
        return status

    def awaited(self, status: NodeSetStatus, missing: Sequence[str]) -> list[str]:
        """Return the missing nodes that a run of this stack has drained, and where slurmd does not run yet."""
        pods, held = status.live.pods, status.drained_by(self.registration.ref.owner)
        return [
            name
            for name in missing
            if name in held
            and held[name].operation in OVER_WHEN_JOINED & SET_BY_RUNS
            and (name not in pods or not pods[name].runs(WORKER_CONTAINER))
        ]

    def hand_over_to_pods(self, status: NodeSetStatus, missing: Sequence[str]) -> None:
        """Let nodes that come later undrain themselves, as no run may look again."""
        names = self.awaited(status, missing)
        try:
            self.draining.hand_over_to_pods(names)
        except (SlurmError, TransportError) as error:
            self.registration.report(f"{named(names)} may stay drained until the next run: {error}")
