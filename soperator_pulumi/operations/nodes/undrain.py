"""Undoing the drains of a run: only its own cluster's, only those still in effect, with a report of failures."""

from collections.abc import Collection, Iterable, Sequence

from soperator_pulumi.errors import KubernetesError, SlurmError, TransportError
from soperator_pulumi.operations.nodes.context import DrainContext
from soperator_pulumi.operations.progress import saying, until
from soperator_pulumi.slurm.client import SlurmClient
from soperator_pulumi.slurm.drain.plan import drained_for
from soperator_pulumi.slurm.drain.reason import SET_BY_RUNS, Marker, Operation, drain_of_ours
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.hostlist import compress, in_order
from soperator_pulumi.slurm.models import Snapshot

UNDRAIN_SECONDS = 120
"""Time for all attempts, in seconds: slurmctld may be restarting."""

_WAYS_BACK = {
    Operation.SCALE_DOWN: lambda node_set: f"replicas: {node_set.before} of {node_set.node_set}",
    Operation.REMOVAL: lambda node_set: f"{node_set.node_set} in the spec",
}


class Undrain:
    """The drains that a run has seen and ordered, and how to undo them."""

    def __init__(self, context: DrainContext, names: frozenset[str], marker: Marker) -> None:
        """Create a record without any drains.

        Args:
            context: The cluster.
            names: The run's nodes.
            marker: Identifies the run's drains.
        """
        self._context = context
        self.names = names
        self._marker = marker
        self._last: Snapshot | None = None
        self._ours: frozenset[str] = frozenset()
        """Nodes that this cluster's drains held at the last look, or were ordered for since."""
        self._drained: frozenset[str] = frozenset()
        """Nodes that were seen with a drain of this run."""
        self._stopping: frozenset[str] = frozenset()
        """Nodes that their own pods had drained before this run did."""

    def note(self, snapshot: Snapshot) -> frozenset[str]:
        """Note the owners of all drains, and return the nodes whose drain changed from this run's to another run's."""
        self._last = snapshot
        there = (self.names | self._drained) & snapshot.nodes.keys()
        held = {name: drain_of_ours(snapshot.nodes[name], self._marker.owner) for name in there}
        markers = {name: marker for name, marker in held.items() if marker is not None}
        self._ours = frozenset(markers)
        self._drained |= {name for name, marker in markers.items() if marker.run == self._marker.run}
        self._stopping |= {name for name, marker in markers.items() if marker.operation.of_a_pod}
        return frozenset(
            name for name in self._drained & markers.keys() if markers[name].run not in {"", self._marker.run}
        )

    def expect(self, names: Iterable[str]) -> None:
        """Note that nodes are about to be drained: without an answer it is unknown if they are."""
        self._ours |= frozenset(names)

    def run(self) -> dict[str, str]:
        """Undrain the nodes that this cluster's runs have drained; return those that stay drained, with the reasons.

        A node that its own stopping pod had drained gets that reason back, unless its pod is back: then the pod
        undrains it.

        Raises:
            AnotherPlannerError: another planner holds the cluster's Lease now: it undrains the nodes.
        """
        why, clock = "not read", self._context.clock
        say = saying(self._context.report, "waits until slurmctld has undrained the nodes")
        for _ in until(clock.now() + UNDRAIN_SECONDS, clock, longest=5.0, say=say):
            self._context.keep_alone()
            try:
                snapshot = self._context.slurm.snapshot(reservations=False)
                if self._last is not None and snapshot.older_than(self._last):
                    why = "slurmctld's answers are older than an earlier one"
                    continue
                others = self.note(snapshot)
                self._ours = drained_for(SET_BY_RUNS, self.names, snapshot, self._marker.owner) - others
                if not self._ours:
                    break
                self._undo(self._ours, snapshot)
            except (SlurmError, TransportError, KubernetesError) as error:
                why = str(error).rstrip(".")
        return dict.fromkeys(sorted(self._ours), why)

    def left_drained(self) -> str:
        """Return which nodes stay drained if slurmctld does not answer, and what to do, in sentences."""
        if not self._ours:
            return "Nothing was drained. Run again when it answers."
        nodes = compress(in_order(self._ours))
        return (
            f"These nodes stay drained: {nodes}. Run again when it answers, which continues; or undrain them: "
            f"scontrol update nodename={nodes} state=undrain"
        )

    def _undo(self, names: frozenset[str], snapshot: Snapshot) -> None:
        stopping = names & self._stopping
        if stopping and (stopping := stopping - frozenset(self._context.standing())):
            hand_over_to_pods(self._context.slurm, stopping, self._marker.owner)
        undrain_nodes(self._context.slurm, names - stopping, snapshot, self._marker.owner)


def undrain_nodes(slurm: SlurmClient, names: Iterable[str], snapshot: Snapshot, owner: str) -> None:
    """Undrain nodes that this owner's drains hold, and restore the reasons that they had before.

    Raises:
        SlurmError: slurmctld refuses.
        TransportError: the effect is unknown.
    """
    for before, some in by_reason_before(names, snapshot, owner).items():
        slurm.undrain(some, before)


def hand_over_to_pods(slurm: SlurmClient, names: Collection[str], owner: str) -> None:
    """Let nodes be undrained by their own pods when these start, as no run may look again.

    Raises:
        SlurmError: slurmctld refuses.
        TransportError: the effect is unknown.
    """
    slurm.drain(names, str(Marker(owner, Operation.POD_STOP)))


def by_reason_before(names: Iterable[str], snapshot: Snapshot, owner: str) -> dict[str, list[str]]:
    """Return the nodes that this owner's drains hold, by the reason that they had before."""
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        marker = drain_of_ours(snapshot.nodes[name], owner)
        found.setdefault(marker.before if marker else "", []).append(name)
    return found


def continue_or_undo(operation: Operation, leaving: Sequence[DrainRequest]) -> str:
    """Return how to continue and how to undo an interrupted run, in one line."""
    if operation is Operation.DESTROY:
        return "If interrupted, the drains stay: pulumi destroy continues, pulumi up undoes them."
    if operation in {Operation.REPLACEMENT, Operation.ROLLING_UPDATE}:
        undo = "the change reverted"
    else:
        undo = " and ".join(_WAYS_BACK[operation](node_set) for node_set in leaving if node_set.names)
    return f"If interrupted, the drains stay: pulumi up continues; with {undo} it undoes them."
