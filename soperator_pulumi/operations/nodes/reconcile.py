"""What keeps a node set as it is to be: no record without a pod, no drain of ours, no old pod, no missing node."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from soperator_pulumi.errors import NotReadyError, SlurmError, TransportError
from soperator_pulumi.operations.nodes.live_node_set import LiveNodeSet
from soperator_pulumi.operations.nodes.node_cleanup import Records, kept_lines
from soperator_pulumi.operations.nodes.registration import Joining, Roll
from soperator_pulumi.operations.nodes.rolling_update import Rolling
from soperator_pulumi.operations.progress import until
from soperator_pulumi.slurm.hostlist import compress

_STOP_SECONDS = 60
"""How long a pod may take to go beyond its grace period: the kubelet kills it, and tells the API server."""

_TELL_SECONDS = 10
_ANSWER_SECONDS = 5.0
"""slurmctld asks a node within a second."""

TEMPLATE_ANNOTATION = "soperator-pulumi/template"
"""On a worker StatefulSet: digest of its pods' template."""


@dataclass(frozen=True)
class Drift:
    """How a node set differs from what it is to be."""

    lines: list[str] = field(default_factory=list)
    """For people."""
    changes: bool = False
    """Whether an update has something to do about it."""
    unseen: bool = False
    """Whether the node set could not be looked at."""


@dataclass(frozen=True)
class Upkeep:
    """One node set's."""

    joining: Joining
    rolling: Rolling
    records: Records
    timeout_seconds: int
    """How long new nodes may take to join."""
    tolerated: int
    """How many may be missing then."""
    wait_until_ready: bool
    """Whether they are waited for at all."""

    def settle(self) -> None:
        """Make it so. What is left undone by a run that is killed the next one does.

        Raises:
            NotReadyError: nodes are missing, or renewed ones do not join; or the StatefulSet has another size.
            DrainError: nodes that are to be renewed did not become free; they are in service again.
            KubernetesError: the pods cannot be looked at.
        """
        self._await_gone()
        first = self.joining.look()
        if words := self.joining.not_observed(first):
            raise NotReadyError(words)
        self._remove_surplus(first)
        last = self.rolling.put_back(self._wait(self.rolling.run(first)))
        self._await_answers(last)
        if first.trouble:  # then nothing could be said of surplus records
            self._remove_surplus(last)

    def drift(self, template: str, *, resized: bool) -> Drift:
        """Return how it differs from what it is to be.

        Args:
            template: Digest of the pods' template: where the StatefulSet has another one, all pods will be renewed.
            resized: Whether the size has just been changed, so that nodes may be missing, or too many, as yet.

        Raises:
            KubernetesError: the pods cannot be looked at.
        """
        roll = self.joining.look(waits=False)
        if roll.trouble:
            return Drift([f"{self.joining.node_set}: {roll.trouble}"], changes=True)
        if self.joining.not_observed(roll):  # the update waits for it, and then there is something to say
            return Drift(changes=True)
        other_size = "" if resized else self.joining.other_size(roll.live)
        missing = () if resized else roll.missing_of(roll.names)
        held = self.rolling.held(roll)
        applied = _template(roll.live) == template
        outdated = self.rolling.outdated(roll) if applied else [name for name in roll.names if name in roll.live.pods]
        surplus_lines, removable = self._surplus_drift(roll)
        lines = [
            *([other_size] if other_size else []),
            *(self._missing_lines(roll, missing) if missing else []),
            *surplus_lines,
            *(f"{name}: still drained by us ({why}), is put back into service" for name, why in held.items()),
            *(self.rolling.preview(roll, outdated) if outdated else []),
        ]
        waits = self.wait_until_ready and len(missing) > self.tolerated
        waits = waits or bool(self.rolling.held_until_they_come(roll, missing))
        return Drift(lines, changes=bool(other_size or waits or removable or held or outdated))

    def _wait(self, roll: Roll) -> Roll:
        names, seconds = roll.names, self.timeout_seconds
        if self.wait_until_ready and roll.missing_of(names):
            roll = self.joining.wait(names, seconds, self.rolling.put_back)
        missing = roll.missing_of(names)
        if not missing:
            return roll
        self.rolling.put_back(roll)  # what has joined takes jobs, whatever becomes of the others
        self.rolling.leave_to_pods(roll, missing)
        if not self.wait_until_ready:
            for line in self._missing_lines(roll, missing):
                self.joining.say(line)
            return roll
        words = self.joining.not_joined(roll, names, seconds)
        if len(missing) > self.tolerated:
            raise NotReadyError(
                f"{words}\nMend what is named and run again, lower the node set's replicas, or raise its "
                "ready_timeout_seconds or max_unready."
            )
        self.joining.say(f"{words}\nmax_unready lets {self.tolerated} be missing.")
        return roll

    def _await_answers(self, roll: Roll) -> None:
        """Wait a little for nodes that were put into service: no job starts there before slurmctld has asked them."""
        for _ in until(self.joining.clock.now() + _ANSWER_SECONDS, self.joining.clock):
            nodes = (roll.nodes.get(name) for name in roll.names)
            if not any(node and "NOT_RESPONDING" in node.state and "IDLE" in node.state for node in nodes):
                return
            roll = self.joining.look()

    def _missing_lines(self, roll: Roll, missing: Sequence[str]) -> list[str]:
        head = f"{self.joining.node_set}: {roll.size - len(missing)} of {roll.size} nodes have joined"
        return [head, *(f"  {line}" for line in self.joining.reasons(roll, missing))]

    # -- records of nodes beyond the size -------------------------------------------------------------------------

    def _remove_surplus(self, roll: Roll) -> None:
        """Remove the records of nodes beyond the size.

        Raises:
            KubernetesError: the pods cannot be looked at.
        """
        try:
            removal = self.records.remove(roll.surplus, roll.nodes)
        except (SlurmError, TransportError) as error:
            self.joining.say(f"{compress(roll.surplus)}: the next run removes it from Slurm: {error}")
            return
        for line in removal.lines():
            self.joining.say(line)

    def _await_gone(self) -> None:
        """Wait until pods beyond the size are gone: Kubernetes takes them away. What stays its record says.

        Raises:
            NotReadyError: the StatefulSet has another size.
            KubernetesError: the pods cannot be looked at.
        """
        joining, grace = self.joining, self.rolling.policy.grace.total_seconds()
        told_at = joining.clock.now()
        for left in until(told_at + grace + _STOP_SECONDS, joining.clock):
            live = LiveNodeSet.read(joining.kube, joining.place, joining.node_set)
            joining.require_size(live)
            there = [name for name in live.pods if (live.ordinal(name) or 0) >= joining.size]
            if not there:
                return
            if joining.clock.now() - told_at >= _TELL_SECONDS:
                told_at = joining.clock.now()
                joining.say(f"{joining.node_set}: waits until pods have ended: {compress(there)}, {left:.0f} s left")

    def _surplus_drift(self, roll: Roll) -> tuple[list[str], bool]:
        """Return what is to be said of records beyond the size, and whether any can be removed, now or soon."""
        pods = roll.live.pods
        gone = [name for name in roll.surplus if name not in pods]
        going = any(name in pods and pods[name].going for name in roll.surplus)
        if not gone:
            return [], going
        try:
            snapshot = self.joining.slurm.snapshot()
        except (SlurmError, TransportError) as error:
            return [f"{compress(gone)}: in Slurm without a pod: {error}"], True
        kept = self.records.kept([name for name in gone if name in snapshot.nodes], snapshot)
        removable = [name for name in gone if name not in kept]
        words = [f"{compress(removable)}: in Slurm without a pod, is removed"] if removable else []
        return words + kept_lines(kept), going or bool(removable)


def _template(live: LiveNodeSet) -> str:
    annotations = (live.stateful_set or {}).get("metadata", {}).get("annotations") or {}
    return str(annotations.get(TEMPLATE_ANNOTATION, ""))
