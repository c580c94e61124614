"""Undoing the drains of a run: only its own, only where they still are in force, and in words where that fails."""

from collections.abc import Callable, Collection, Iterable, Sequence

from soperator_pulumi.errors import KubernetesError, SlurmError, TransportError
from soperator_pulumi.operations.progress import Clock, until
from soperator_pulumi.slurm.client import SlurmClient
from soperator_pulumi.slurm.drain.plan import undrain as to_undrain
from soperator_pulumi.slurm.drain.reason import Marker, Operation, drain_of_ours
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.hostlist import compress, in_order
from soperator_pulumi.slurm.models import Snapshot

UNDRAIN_SECONDS = 120
"""How long it is tried: slurmctld may just be restarting."""

_SET_BY_RUNS = frozenset(each for each in Operation if not each.of_a_pod)


class Undrain:
    """What a run knows of its drains."""

    def __init__(
        self,
        slurm: SlurmClient,
        names: frozenset[str],
        marker: Marker,
        clock: Clock,
        standing: Callable[[], Collection[str]],
    ) -> None:
        """Prepare.

        Args:
            slurm: The cluster's slurmctld.
            names: The nodes that the run is about.
            marker: Of the run.
            clock: Bounds the attempts.
            standing: Returns the nodes whose pods are there and are not being stopped.
        """
        self._standing = standing
        self._slurm = slurm
        self._names = names
        self._marker = marker
        self._clock = clock
        self._last: Snapshot | None = None
        self._ours: frozenset[str] = frozenset()
        """The nodes that a drain of ours held at the last look, or was ordered for since."""
        self._drained: frozenset[str] = frozenset()
        """The nodes that were seen with a drain of this run."""
        self._stopping: frozenset[str] = frozenset()
        """The nodes that a pod of theirs had drained before this run did."""

    def note(self, snapshot: Snapshot) -> frozenset[str]:
        """Note whose drains there are, and return the nodes whose drain of this run has become another run's."""
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

    def undrain(self) -> dict[str, str]:
        """Put the nodes back into service that a drain of ours holds, and return those that stay drained, with why.

        A node that its own pod had drained as it stopped gets that reason again, unless its pod is back: the worker
        undoes it when it is.
        """
        why = "not looked at"
        for _ in until(self._clock.now() + UNDRAIN_SECONDS, self._clock, longest=5.0):
            try:
                snapshot = self._slurm.snapshot(reservations=False)
                if self._last is not None and snapshot.older_than(self._last):
                    why = "slurmctld's answers are older than one before"
                    continue
                others = self.note(snapshot)
                self._ours = to_undrain(self._names, snapshot, self._marker.owner, _SET_BY_RUNS) - others
                if not self._ours:
                    break
                self._undo(self._ours, snapshot)
            except (SlurmError, TransportError, KubernetesError) as error:
                why = str(error).rstrip(".")
        return dict.fromkeys(sorted(self._ours), why)

    def left_drained(self) -> str:
        """Return which nodes stay drained when nothing can be put back, and what to do, in sentences."""
        if not self._ours:
            return "Nothing was drained. Run again when it answers."
        nodes = compress(in_order(self._ours))
        return (
            f"These nodes stay drained: {nodes}. Run again when it answers, which goes on; or put them back: "
            f"scontrol update nodename={nodes} state=undrain"
        )

    def _undo(self, names: frozenset[str], snapshot: Snapshot) -> None:
        stopping = names & self._stopping
        if stopping and (stopping := stopping - frozenset(self._standing())):
            hand_over_to_pods(self._slurm, stopping, self._marker.owner)
        resume(self._slurm, names - stopping, snapshot, self._marker.owner)


def resume(slurm: SlurmClient, names: Iterable[str], snapshot: Snapshot, owner: str) -> None:
    """Put nodes with drains of ours back into service, with the reason that they had before."""
    for before, some in by_reason_before(names, snapshot, owner).items():
        slurm.resume(some, before)


def hand_over_to_pods(slurm: SlurmClient, names: Collection[str], owner: str) -> None:
    """Have drains of nodes be undone by the nodes' own pods when they start: nobody else may look again.

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
    """Return how a run that is interrupted now is gone on with, and how it is undone, in one line."""
    sets = [each for each in leaving if each.names]
    undo = {
        Operation.SCALE_DOWN: " and ".join(f"replicas: {each.before} of {each.node_set}" for each in sets),
        Operation.REMOVAL: f"{' and '.join(each.node_set for each in sets)} in the spec",
        Operation.REPLACEMENT: "the change taken back",
        Operation.ROLLING_UPDATE: "the change taken back",
    }.get(operation, "")
    if operation is Operation.DESTROY:
        return "If interrupted, the drains stay: pulumi destroy goes on, pulumi up undoes them."
    return f"If interrupted, the drains stay: pulumi up goes on{f'; with {undo} it undoes them' if undo else ''}."
