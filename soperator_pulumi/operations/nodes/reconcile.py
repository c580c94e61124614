"""Reconciliation of a node set: no record without a pod, no leftover drain, no old pod, no missing node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from soperator_pulumi.errors import NotReadyError, SlurmError, TransportError
from soperator_pulumi.kube.verbs import Json
from soperator_pulumi.operations.nodes.live_node_set import LiveNodeSet
from soperator_pulumi.operations.nodes.node_cleanup import NodeCleanup, kept_lines
from soperator_pulumi.operations.nodes.registration import NodeSetStatus, Registration
from soperator_pulumi.operations.nodes.rolling_update import RollingUpdate
from soperator_pulumi.operations.nodes.template_change import changes_pods
from soperator_pulumi.operations.progress import saying, until
from soperator_pulumi.slurm.drain.reason import Operation
from soperator_pulumi.slurm.hostlist import compress, in_order

_STOP_SECONDS = 60
"""Time for a pod to disappear, beyond its grace period: the kubelet kills it, and updates the API server."""

_REPORT_SECONDS = 10
_ANSWER_SECONDS = 15.0
"""Time for slurmctld to contact a node: usually a second; on a machine under load it took more than 5 s."""


@dataclass(frozen=True)
class Drift:
    """Differences of a node set from its inputs."""

    lines: list[str] = field(default_factory=list)
    """Lines for users."""
    changes: bool = False
    """True if an update has to act on them."""
    unseen: bool = False
    """True if the node set could not be read."""


@dataclass(frozen=True)
class Reconciliation:
    """Brings one node set into its wanted state."""

    registration: Registration
    rolling_update: RollingUpdate
    cleanup: NodeCleanup
    timeout_seconds: int
    """Time for new nodes to join, in seconds."""
    tolerated: int
    """Number of nodes that may be missing after that time."""
    wait_until_ready: bool
    """False to skip waiting for nodes."""

    def run(self) -> None:
        """Reconcile; safe to rerun after an interruption.

        Raises:
            NotReadyError: nodes are missing, recreated ones do not join, or the StatefulSet has another size.
            DrainError: nodes that are to be recreated did not become free; they are undrained.
            KubernetesError: the pods cannot be read.
        """
        self._await_gone()
        first = self.registration.look()
        if words := self.registration.not_observed(first):
            raise NotReadyError(words)
        self._remove_surplus(first)
        last = self.rolling_update.held.undrain(self._wait(self.rolling_update.run(first)))
        self.rolling_update.note_taken(last)
        self._await_answers(last)
        if first.trouble:  # surplus records were not known before
            self._remove_surplus(last)

    def drift(self, template: Json | None = None, *, resized: bool = False, refreshes: bool = False) -> Drift:
        """Return the differences of the node set from its inputs.

        Args:
            template: Template of the pods that is about to be applied; if it differs, all pods are recreated.
            resized: True if the size has just been changed, so that nodes may still be missing or surplus.
            refreshes: True if the calling run records the live size.

        Raises:
            KubernetesError: the pods cannot be read.
        """
        status = self.registration.look(waits=False)
        if status.trouble:
            return Drift([f"{self.registration.node_set}: {status.trouble}"], changes=True)
        if self.registration.not_observed(status):  # the update waits for it and reports it
            return Drift(changes=True)
        other_size = "" if resized else self.registration.other_size(status.live, refreshes=refreshes)
        missing = () if resized else status.missing_of(status.names)
        held = self.rolling_update.held.of(status)
        outdated = (
            [name for name in status.names if name in status.live.pods]
            if template is not None and changes_pods(template, status.live.stateful_set or {})
            else self.rolling_update.outdated(status)
        )
        surplus_lines, removable = self._surplus_drift(status)
        lines = [
            *([other_size] if other_size else []),
            *(self._missing_lines(status, missing) if missing else []),
            *surplus_lines,
            *_held_lines(held),
            *(self.rolling_update.preview(status, outdated) if outdated else []),
        ]
        waits = self.wait_until_ready and len(missing) > self.tolerated
        waits = waits or bool(self.rolling_update.held.awaited(status, missing))
        return Drift(lines, changes=bool(other_size or waits or removable or held or outdated))

    def possible_drift(self) -> Drift:
        """Return what an update drains if it changes the pods, while their new template is not known yet.

        Raises:
            KubernetesError: the pods cannot be read.
        """
        status = self.registration.look(waits=False)
        names = [name for name in status.names if name in status.live.pods]
        head = f"{self.registration.node_set}: the template of its pods is not known yet. If it changes:"
        try:
            lines = [head, *self.rolling_update.preview_nodes(status, names)] if names else []
        except (SlurmError, TransportError) as error:
            lines = [f"{head} {compress(names)} will be recreated; their jobs are not known: {error}"]
        return Drift(lines, changes=True)

    def _wait(self, status: NodeSetStatus) -> NodeSetStatus:
        names, seconds = status.names, self.timeout_seconds
        if self.wait_until_ready and status.missing_of(names):
            status = self.registration.wait(names, seconds, self.rolling_update.held.undrain)
        missing = status.missing_of(names)
        if not missing:
            return status
        self.rolling_update.held.undrain(status)  # joined nodes take jobs even if others are missing
        self.rolling_update.held.hand_over_to_pods(status, missing)
        if not self.wait_until_ready:
            for line in self._missing_lines(status, missing):
                self.registration.show(line)
            return status
        words = self.registration.not_joined(status, names, seconds)
        if len(missing) > self.tolerated:
            raise NotReadyError(
                f"{words}\nFix the problems above and run again, lower the node set's replicas, or raise its "
                "ready_timeout_seconds or max_unready."
            )
        self.registration.show(f"{words}\nmax_unready lets {self.tolerated} be missing.")
        return status

    def _await_answers(self, status: NodeSetStatus) -> None:
        """Wait briefly for undrained nodes: no job starts there before slurmctld has contacted them."""
        registration = self.registration
        say = saying(registration.report, "waits until its undrained nodes answer slurmctld")
        for _ in until(registration.clock.now() + _ANSWER_SECONDS, registration.clock, say=say):
            nodes = (status.nodes.get(name) for name in status.names)
            if not any(node and "NOT_RESPONDING" in node.state and "IDLE" in node.state for node in nodes):
                return
            status = registration.look()

    def _missing_lines(self, status: NodeSetStatus, missing: Sequence[str]) -> list[str]:
        head = f"{self.registration.node_set}: {status.size - len(missing)} of {status.size} nodes have joined"
        return [head, *(f"  {line}" for line in self.registration.reasons(status, missing))]

    # -- records of nodes beyond the size -------------------------------------------------------------------------

    def _remove_surplus(self, status: NodeSetStatus) -> None:
        """Remove the records of nodes beyond the size.

        Raises:
            KubernetesError: the pods cannot be read.
        """
        try:
            result = self.cleanup.remove(status.surplus, status.nodes)
        except (SlurmError, TransportError) as error:
            self.registration.show(f"{compress(status.surplus)}: the next run removes it from Slurm: {error}")
            return
        for line in result.lines():
            self.registration.show(line)

    def _await_gone(self) -> None:
        """Wait until Kubernetes has deleted pods beyond the size.

        Raises:
            NotReadyError: the StatefulSet has another size.
            KubernetesError: the pods cannot be read.
        """
        registration, grace = self.registration, self.rolling_update.policy.grace.total_seconds()
        reported_at = registration.clock.now()
        for left in until(reported_at + grace + _STOP_SECONDS, registration.clock):
            live = LiveNodeSet.read(registration.kube, registration.ref, registration.node_set)
            registration.require_size(live)
            there = [name for name in live.pods if (live.ordinal(name) or 0) >= registration.size]
            if not there:
                return
            if registration.clock.now() - reported_at >= _REPORT_SECONDS:
                reported_at = registration.clock.now()
                registration.report(f"waits until pods have ended: {compress(there)}, {left:.0f} s left")

    def _surplus_drift(self, status: NodeSetStatus) -> tuple[list[str], bool]:
        """Return lines about records beyond the size, and True if some can be removed, now or soon."""
        pods = status.live.pods
        gone = [name for name in status.surplus if name not in pods]
        going = any(name in pods and pods[name].going for name in status.surplus)
        if not gone:
            return [], going
        try:
            snapshot = self.registration.slurm.snapshot()
        except (SlurmError, TransportError) as error:
            return [f"{compress(gone)}: in Slurm without a pod: {error}"], True
        kept = self.cleanup.kept([name for name in gone if name in snapshot.nodes], snapshot)
        removable = [name for name in gone if name not in kept]
        words = [f"{compress(removable)}: in Slurm without a pod, is removed"] if removable else []
        return words + kept_lines(kept), going or bool(removable)


def _held_lines(held: Mapping[str, Operation]) -> list[str]:
    by_purpose: dict[Operation, list[str]] = {}
    for name in in_order(held):
        by_purpose.setdefault(held[name], []).append(name)
    return [
        f"{compress(names)}: still drained by this stack ({purpose}); pulumi up undrains "
        f"{'it' if len(names) == 1 else 'them'}"
        for purpose, names in by_purpose.items()
    ]
