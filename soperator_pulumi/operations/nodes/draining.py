"""Freeing nodes of jobs, and putting them back into service."""

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from soperator_pulumi.errors import SpecError
from soperator_pulumi.operations.configuration.slurmctld import CONTROLLER_CONTAINER, CONTROLLER_POD
from soperator_pulumi.operations.kube import Kube
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.nodes.drain_override import policy_of, unheeded
from soperator_pulumi.operations.nodes.drain_run import DrainResult, DrainRun
from soperator_pulumi.operations.nodes.live_node_set import find_policies
from soperator_pulumi.operations.nodes.undrain import by_reason_before, hand_over_to_pods, resume
from soperator_pulumi.operations.pods import find_pods
from soperator_pulumi.operations.progress import Clock, Say, wall_time
from soperator_pulumi.slurm.client import SlurmClient
from soperator_pulumi.slurm.drain import plan_text
from soperator_pulumi.slurm.drain.plan import plan, shared
from soperator_pulumi.slurm.drain.plan import undrain as to_undrain
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.models import Snapshot
from soperator_pulumi.spec.drain import DrainSpec

__all__ = ["DrainResult", "Draining"]


class Draining:
    """Frees nodes of one cluster, as often as wanted."""

    def __init__(
        self,
        slurm: SlurmClient,
        *,
        owner: str,
        cluster: str,
        say: Say,
        clock: Clock,
        now: Callable[[], float] | None = None,
        standing: Callable[[], Collection[str]] = tuple,
        policies: Callable[[], Mapping[str, DrainSpec]] = dict,
    ) -> None:
        """Prepare.

        Args:
            slurm: The cluster's slurmctld.
            owner: Whose drains they are; stands in their reasons.
            cluster: The cluster's name, for messages.
            say: Shows a line.
            clock: Waits, and bounds waits.
            now: Returns the seconds since 1970, as Slurm counts; by default the machine's.
            standing: Returns the nodes whose pods are there and are not being stopped; by default nothing is known of
                pods.
            policies: Returns the policies of the cluster's node sets, by name: they count for jobs on nodes of several.
                By default none is known, and no such job is requeued or cancelled.
        """
        self._standing = standing
        self._policies = policies
        self._slurm = slurm
        self._owner = owner
        self._cluster = cluster
        self._say = say
        self._clock = clock
        self._now = now or wall_time

    @classmethod
    def at(cls, kube: Kube, place: ClusterRef, say: Say, clock: Clock, slurm: SlurmClient | None = None) -> "Draining":
        """Return what frees nodes of the cluster at `place`; by `slurm` where it is given, or a client of its own."""

        def standing() -> list[str]:
            return [pod.name for pod in find_pods(kube, place.namespace, place.selector) if not pod.going]

        def policies() -> dict[str, DrainSpec]:
            return {name: _policy(place.cluster, recorded) for name, recorded in find_policies(kube, place).items()}

        return cls(
            slurm or slurm_of(kube, place, clock),
            owner=place.owner,
            cluster=place.cluster,
            say=say,
            clock=clock,
            standing=standing,
            policies=policies,
        )

    def nodes(self) -> Snapshot:
        """Return what slurmctld says of the nodes, without jobs and reservations.

        Raises:
            SlurmError: it does not answer as it should.
            TransportError: it is not reached.
        """
        return Snapshot({node.name: node for node in self._slurm.nodes()}, (), (), 0)

    def preview(self, leaving: Sequence[DrainRequest], operation: Operation = Operation.SCALE_DOWN) -> list[str]:
        """Return what would be done, in lines. It only reads.

        Raises:
            SlurmError: slurmctld does not answer as it should.
            TransportError: it is not reached.
            KubernetesError: the policies of other node sets cannot be looked at.
        """
        if not leaving:
            return []
        snapshot, now = self._slurm.snapshot(), self._now()
        others = self._policies() if shared(leaving, snapshot) else {}
        planned = plan(leaving, snapshot, self._marker(operation), elapsed_seconds=0, now=now, others=others)
        lines = plan_text.preview(planned, leaving, snapshot, now, cluster=self._cluster)
        return [*lines, *filter(None, [unheeded(self._cluster)])]

    def free(
        self, leaving: Sequence[DrainRequest], operation: Operation, *, first: Callable[[Snapshot], None] | None = None
    ) -> DrainResult:
        """Free the nodes, in one pass for all node sets: what stops one stops all.

        Returns when they are free, or drained where the policy does not wait.

        Args:
            leaving: The nodes, and the policy of each node set.
            operation: What they are freed for.
            first: Called with what slurmctld says at the first look, before anything is drained.

        Raises:
            DrainError: it was stopped. What carried a drain of ours is in service again, or the message names it.
        """
        if note := unheeded(self._cluster):
            self._say(note)
        run = DrainRun(
            self._slurm,
            leaving,
            self._marker(operation),
            cluster=self._cluster,
            say=self._say,
            clock=self._clock,
            now=self._now,
            standing=self._standing,
            policies=self._policies,
        )
        return run.free(first)

    def undrain(self, names: Iterable[str], operations: Collection[Operation]) -> frozenset[str]:
        """Put those nodes back into service that exactly a drain of ours for one of `operations` holds; return them.

        Raises:
            SlurmError: slurmctld does not answer as it should; what is left shows at the next look.
            TransportError: it is not reached.
        """
        snapshot = self.nodes()
        found = to_undrain(names, snapshot, self._owner, operations)
        resume(self._slurm, found, snapshot, self._owner)
        return found

    def resume(self, names: Iterable[str], snapshot: Snapshot) -> None:
        """Put back into service nodes that a drain of ours holds, as a snapshot of just now says.

        Raises:
            SlurmError: slurmctld refuses.
            TransportError: nothing is known about what was done.
        """
        resume(self._slurm, names, snapshot, self._owner)

    def mark(self, names: Iterable[str], snapshot: Snapshot, operation: Operation) -> None:
        """Have drains of ours be for another operation: somebody else resumes these nodes then.

        Raises:
            SlurmError: slurmctld refuses.
            TransportError: nothing is known about what was done.
        """
        marker = self._marker(operation)
        for before, some in by_reason_before(names, snapshot, self._owner).items():
            self._slurm.drain(some, str(replace(marker, before=before)))

    def hand_over_to_pods(self, names: Collection[str]) -> None:
        """Have drains of ours be undone by the nodes' own pods: see `undrain.hand_over_to_pods`."""
        hand_over_to_pods(self._slurm, names, self._owner)

    def _marker(self, operation: Operation) -> Marker:
        return Marker(self._owner, operation, secrets.token_hex(3))


def _policy(cluster: str, recorded: Mapping[str, Any]) -> DrainSpec:
    """Return the policy of a node set that loses no node; the default one when somebody has made its own unreadable."""
    try:
        return policy_of(cluster, recorded)
    except SpecError:
        return policy_of(cluster, None)


def slurm_of(kube: Kube, place: ClusterRef, clock: Clock) -> SlurmClient:
    """Return the slurmctld of the cluster at `place`."""
    return SlurmClient(kube.transport(place.namespace, CONTROLLER_POD, CONTROLLER_CONTAINER), pause=clock.sleep)
