"""Undoing the drains of a run: only our own, only where they are still in force, and reported where it fails."""

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
"""Time for all attempts: slurmctld may just be restarting."""

_WAYS_BACK = {
    Operation.SCALE_DOWN: lambda each: f"replicas: {each.before} of {each.node_set}",
    Operation.REMOVAL: lambda each: f"{each.node_set} in the spec",
}


class Undrain:
    """The drains that a run has seen and ordered, and how to undo them."""

    def __init__(self, context: DrainContext, names: frozenset[str], marker: Marker) -> None:
        """Prepare.

        Args:
            context: The cluster.
            names: The run's nodes.
            marker: Of the run.
        """
        self._context = context
        self._names = names
        self._marker = marker
        self._last: Snapshot | None = None
        self._ours: frozenset[str] = frozenset()
        """Nodes that a drain of ours held at the last look, or was ordered for since."""
        self._drained: frozenset[str] = frozenset()
        """Nodes that were seen with a drain of this run."""
        self._stopping: frozenset[str] = frozenset()
        """Nodes that their pods had drained before this run did."""

    def note(self, snapshot: Snapshot) -> frozenset[str]:
        """Note the owners of all drains, and return the nodes whose drain of this run has become another run's."""
        self._last = snapshot
        there = self._names & snapshot.nodes.keys()
        held = {name: drain_of_ours(snapshot.nodes[name], self._marker.owner) for name in there}
        markers = {name: marker for name, marker in held.items() if marker is not None}
        self._ours = frozenset(markers)
        self._drained |= {name for name, each in markers.items() if each.run == self._marker.run}
        self._stopping |= {name for name, each in markers.items() if each.operation.of_a_pod}
        return frozenset(
            name for name in self._drained & markers.keys() if markers[name].run not in {"", self._marker.run}
        )

    def expect(self, names: Iterable[str]) -> None:
        """Note that nodes are about to be drained: without an answer it is not known whether they are."""
        self._ours |= frozenset(names)

    def run(self) -> dict[str, str]:
        """Undrain the nodes that a drain of a run of ours holds, and return those that stay drained, each with why.

        A node that its own pod had drained as it stopped gets that reason again, unless its pod is back: the pod
        undrains it when it is.

        Raises:
            AnotherPlannerError: another planner holds the cluster's Lease now: it undrains them.
        """
        why, clock = "not looked at", self._context.clock
        say = saying(self._context.report, "waits until slurmctld has undrained the nodes")
        for _ in until(clock.now() + UNDRAIN_SECONDS, clock, longest=5.0, say=say):
            self._context.keep_alone()
            try:
                snapshot = self._context.slurm.snapshot(reservations=False)
                if self._last is not None and snapshot.older_than(self._last):
                    why = "slurmctld's answers are older than one before"
                    continue
                others = self.note(snapshot)
                self._ours = drained_for(SET_BY_RUNS, self._names, snapshot, self._marker.owner) - others
                if not self._ours:
                    break
                self._undo(self._ours, snapshot)
            except (SlurmError, TransportError, KubernetesError) as error:
                why = str(error).rstrip(".")
        return dict.fromkeys(sorted(self._ours), why)

    def left_drained(self) -> str:
        """Return which nodes stay drained where slurmctld does not answer, and what to do, in sentences."""
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
    """Undrain nodes with drains of ours, and restore the reasons that they had before.

    Raises:
        SlurmError: slurmctld refuses.
        TransportError: nothing is known about what was done.
    """
    for before, some in by_reason_before(names, snapshot, owner).items():
        slurm.undrain(some, before)


def hand_over_to_pods(slurm: SlurmClient, names: Collection[str], owner: str) -> None:
    """Have nodes undrained by their own pods when these start: no run may look again.

    Raises:
        SlurmError: slurmctld refuses.
        TransportError: nothing is known about what was done.
    """
    slurm.drain(names, str(Marker(owner, Operation.POD_STOP)))


def by_reason_before(names: Iterable[str], snapshot: Snapshot, owner: str) -> dict[str, list[str]]:
    """Return nodes with drains of ours by the reason that they had before."""
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        marker = drain_of_ours(snapshot.nodes[name], owner)
        found.setdefault(marker.before if marker else "", []).append(name)
    return found


def way_out(operation: Operation, leaving: Sequence[DrainRequest]) -> str:
    """Return how an interrupted run is continued, and how it is undone, in one line."""
    if operation is Operation.DESTROY:
        return "If interrupted, the drains stay: pulumi destroy continues, pulumi up undoes them."
    if operation in {Operation.REPLACEMENT, Operation.ROLLING_UPDATE}:
        undo = "the change reverted"
    else:
        undo = " and ".join(_WAYS_BACK[operation](each) for each in leaving if each.names)
    return f"If interrupted, the drains stay: pulumi up continues; with {undo} it undoes them."
