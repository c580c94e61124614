"""Draining of nodes until they hold no job, and undraining."""

import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from soperator_pulumi.operations.nodes.context import DrainContext
from soperator_pulumi.operations.nodes.drain_override import unheeded
from soperator_pulumi.operations.nodes.drain_run import DrainRun
from soperator_pulumi.operations.nodes.drained_nodes import DrainResult
from soperator_pulumi.operations.nodes.undrain import by_reason_before, hand_over_to_pods, undrain_nodes
from soperator_pulumi.slurm.drain import plan_text
from soperator_pulumi.slurm.drain.plan import drained_for, plan, shared
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.models import Snapshot


@dataclass(frozen=True)
class Draining:
    """Drains and undrains nodes of one cluster.

    All methods raise a `SlurmError` if slurmctld refuses or gives an unexpected answer, and a `TransportError` if the
    effect is unknown: the next look shows it.
    """

    context: DrainContext

    def nodes(self) -> Snapshot:
        """Return the nodes that slurmctld knows, without jobs and reservations."""
        return Snapshot({node.name: node for node in self.context.slurm.nodes()}, (), (), 0)

    def preview(self, leaving: Sequence[DrainRequest], operation: Operation) -> list[str]:
        """Return what `free` would do, in lines. It only reads.

        Raises:
            KubernetesError: the policies of other node sets cannot be read.
        """
        if not leaving:
            return []
        cluster, now = self.context.cluster, self.context.clock.wall()
        snapshot = self.context.slurm.snapshot()
        others = self.context.policies() if shared(leaving, snapshot) else {}
        planned = plan(leaving, snapshot, self._marker(operation), elapsed_seconds=0, now=now, others=others)
        lines = plan_text.preview(planned, leaving, snapshot, now, cluster=cluster)
        return [*lines, *filter(None, [unheeded(cluster)])]

    def free(
        self, leaving: Sequence[DrainRequest], operation: Operation, *, first: Callable[[Snapshot], None] | None = None
    ) -> DrainResult:
        """Drain the nodes of all node sets and wait until they hold no job; a reason to stop one node set stops all.

        If the policy does not wait, return when the nodes are drained.

        Args:
            leaving: The nodes, with the policies of their node sets.
            operation: Purpose of the drains.
            first: Called with the first look, before anything is drained.

        Raises:
            DrainError: the run was stopped. Its nodes are undrained, or the message names those that are not.
        """
        return self.run(leaving, operation).free(first)

    def run(self, leaving: Sequence[DrainRequest], operation: Operation) -> DrainRun:
        """Return a drain run with these nodes, to which nodes can be added; it does nothing yet."""
        if note := unheeded(self.context.cluster):
            self.context.show(note)
        return DrainRun(self.context, leaving, self._marker(operation))

    def undrain(self, names: Iterable[str], operations: Collection[Operation]) -> frozenset[str]:
        """Undrain the nodes that this cluster's drains for one of `operations` hold, and return them."""
        snapshot = self.nodes()
        found = drained_for(operations, names, snapshot, self.context.owner)
        self.undrain_seen(found, snapshot)
        return found

    def undrain_seen(self, names: Iterable[str], snapshot: Snapshot) -> None:
        """Undrain the nodes that this cluster's drains hold according to a new snapshot."""
        undrain_nodes(self.context.slurm, names, snapshot, self.context.owner)

    def mark(self, names: Iterable[str], snapshot: Snapshot, operation: Operation) -> None:
        """Change the purpose of drains: an operation with that purpose then undrains the nodes."""
        marker = self._marker(operation)
        for before, some in by_reason_before(names, snapshot, self.context.owner).items():
            self.context.slurm.drain(some, str(replace(marker, before=before)))

    def hand_over_to_pods(self, names: Collection[str]) -> None:
        """Let nodes be undrained by their own pods when these start: see `undrain.hand_over_to_pods`."""
        hand_over_to_pods(self.context.slurm, names, self.context.owner)

    def _marker(self, operation: Operation) -> Marker:
        return Marker(self.context.owner, operation, secrets.token_hex(3))
