"""Scale-down of a node set: surplus nodes are drained before Kubernetes removes their pods."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from soperator_pulumi.errors import DrainError, KubernetesError, SlurmError, TransportError
from soperator_pulumi.kube.verbs import Kube
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.nodes.context import DrainContext
from soperator_pulumi.operations.nodes.drain_all import LOOKS, drain_all
from soperator_pulumi.operations.nodes.drain_override import policy_of
from soperator_pulumi.operations.nodes.drained_nodes import DrainResult
from soperator_pulumi.operations.nodes.draining import Draining
from soperator_pulumi.operations.nodes.live_node_set import LiveNodeSet
from soperator_pulumi.operations.nodes.node_cleanup import NodeCleanup
from soperator_pulumi.operations.progress import Clock, Report, saying, until
from soperator_pulumi.slurm.drain.plan import drained_for
from soperator_pulumi.slurm.drain.reason import OVER_WHEN_WANTED, Operation
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.hostlist import compress, in_order
from soperator_pulumi.slurm.models import Snapshot
from soperator_pulumi.wording import counted

_GOING_SECONDS = 60
"""Time for a pod to disappear, beyond its grace period, in seconds."""


@dataclass(frozen=True)
class NodeSetSize:
    """A node set's wanted size, with everything that decides how it gets there."""

    ref: ClusterRef
    """The cluster, with the labels of the node set's pods."""
    node_set: str
    replicas: int
    identity: str
    """Text that changes if Pulumi would replace the StatefulSet."""
    policy: dict[str, Any]
    """`drain` of the node set, as JSON."""


class ScaleDown:
    """Scales one node set, comparing the wanted size with the live node set."""

    def __init__(
        self, kube: Kube, wanted: NodeSetSize, recorded: NodeSetSize | None, report: Report, clock: Clock
    ) -> None:
        """Create an operation; it reads and changes nothing yet.

        Args:
            kube: Kubernetes of the node set.
            wanted: Wanted size.
            recorded: Size of the last run; None for a new node set.
            report: Reports a line.
            clock: Waits, and bounds waits.
        """
        self._kube = kube
        self._wanted = wanted
        self._ref = wanted.ref
        self._recorded = recorded
        self._show = report
        self._clock = clock
        self._context = DrainContext.at(kube, wanted.ref, report, clock)
        self._draining = Draining(self._context)
        self._what = f"{wanted.ref.cluster}/{wanted.node_set}"

    def preview(self) -> bool:
        """Report what `free` would do, and return True if it would do anything. It only reads.

        Raises:
            KubernetesError: Kubernetes cannot be reached, or the namespace is not the recorded one.
            SpecError: SOPERATOR_DRAIN has problems.
        """
        policy_of(self._ref.cluster, self._wanted.policy)
        self._ref.uid(self._kube)
        live = self._live()
        leaving, operation = self._leaving(live)
        try:
            if leaving.names:
                if self._recorded and self._recorded.replicas == self._wanted.replicas < live.replicas:
                    self._report(
                        f"it was scaled to {counted(live.replicas, 'node')} outside Pulumi. A plain `pulumi up` drains "
                        "the surplus, but removes no pod: use `pulumi up --refresh`."
                    )
                for line in self._draining.preview([leaving], operation):
                    self._show(line)
                return True
            if not live.names():
                return False
            back = self._wanted_again(self._draining.nodes())
        except (SlurmError, TransportError) as error:
            if leaving.names:
                self._report(
                    f"{leaving.before} -> {counted(leaving.after, 'node')}. Leaving: {compress(leaving.names)}. "
                    f"Their jobs are unknown, as slurmctld does not answer: {error}"
                )
            return bool(leaving.names)
        if back:
            self._report(f"{compress(in_order(back))} drained for an operation that is over: undrained")
        return bool(back)

    def free(self) -> tuple[str, int]:
        """Drain surplus nodes and undrain wanted ones; return the namespace's UID and the size that is safe now.

        That is the wanted size, or a larger one while some nodes are not free and the policy does not wait. A node set
        that only grows does not wait for other planners.

        Raises:
            DrainError: the nodes are not free; all are undrained, or the message names those that are not.
            KubernetesError: Kubernetes cannot be reached, or the namespace is not the recorded one.
            SpecError: SOPERATOR_DRAIN has problems.
        """
        self._free_former()
        uid = self._ref.uid(self._kube)
        if not self._has_work():
            return uid, self._wanted.replicas
        with self._context.alone():
            return uid, self._free()

    def clean_up(self) -> None:
        """Remove the records of the node set's nodes once its pods are gone, and report records that stay."""
        ref, node_set = self._ref, self._wanted.node_set
        try:
            ref.uid(self._kube)
            if self._live().replicas:
                self._report("its StatefulSet is still there, so its nodes stay in Slurm")
                return
            self._await_pods(policy_of(ref.cluster, self._wanted.policy).grace.total_seconds() + _GOING_SECONDS)
            slurm = self._context.slurm
            own = [node.name for node in slurm.nodes() if LiveNodeSet(node_set).ordinal(node.name) is not None]
            result = NodeCleanup(self._kube, slurm, namespace=ref.namespace, owner=ref.owner).remove(own)
        except (KubernetesError, SlurmError, TransportError) as error:
            self._report(f"its nodes may stay in Slurm: {error}")
            return
        for line in result.lines():
            self._report(line)

    def _has_work(self) -> bool:
        """Return True if nodes leave, or if a wanted node is held by a drain that is over."""
        live = self._live()
        if self._leaving(live)[0].names:
            return True
        try:
            return bool(live.names()) and bool(self._wanted_again(self._draining.nodes()))
        except (SlurmError, TransportError) as error:
            self._report(f"continues while slurmctld does not answer, as no node leaves: {error}")
            return False

    def _free(self) -> int:
        live = self._live()
        leaving, operation = self._leaving(live)
        if not leaving.names:
            self._undrain_now(live)
            return self._wanted.replicas
        for _ in range(LOOKS):
            freed = self._draining.free([leaving], operation, first=partial(self._undrain, live))
            live, before = self._live(), leaving
            leaving, operation = self._leaving(live)
            if leaving.as_free_as(before):  # since then the set was not scaled up and no slurmd has started
                return self._size(freed, operation)
        raise DrainError(
            f"{self._what}: its nodes change as fast as they are drained. Run again when they no longer change."
        )

    def _report(self, text: str) -> None:
        self._show(f"{self._what}: {text}")

    def _live(self) -> LiveNodeSet:
        return LiveNodeSet.read(self._kube, self._ref, self._wanted.node_set)

    def _leaving(self, live: LiveNodeSet) -> tuple[DrainRequest, Operation]:
        """Return the nodes that leave and the operation: the surplus, or all nodes if the StatefulSet is replaced."""
        policy = policy_of(self._ref.cluster, self._wanted.policy)
        if self._is_replaced(live):
            return live.recreated(policy), Operation.REPLACEMENT
        return live.leaving(policy, self._wanted.replicas), Operation.SCALE_DOWN

    def _is_replaced(self, live: LiveNodeSet) -> bool:
        if live.stateful_set is None:
            return False
        # The StatefulSet's own text also counts, as a run may have been killed before the replacement.
        identity = live.identity or (self._recorded.identity if self._recorded else "")
        return bool(identity) and identity != self._wanted.identity

    def _free_former(self) -> None:
        """Drain the nodes in the namespace that the node set is leaving for another one."""
        former, wanted = self._recorded, self._wanted
        if former is None or former.ref.namespace == wanted.ref.namespace:
            return
        policies = {former.node_set: wanted.policy}
        drain_all(self._kube, former.ref, policies, Operation.REPLACEMENT, report=self._show, clock=self._clock)

    def _size(self, freed: DrainResult, operation: Operation) -> int:
        """Return the size that the StatefulSet may have: larger than wanted while some nodes are not free."""
        if not freed.busy:
            return self._wanted.replicas
        if operation is Operation.REPLACEMENT:
            raise DrainError(
                f"{self._what}: drained, but not free yet: {freed.busy_words()}.\n"
                "  The StatefulSet is not replaced, as drain.wait is false. Run again when their jobs have ended."
            )
        ordinals = [LiveNodeSet(self._wanted.node_set).ordinal(name) for name in freed.busy]
        size = 1 + max(ordinal for ordinal in ordinals if ordinal is not None)
        self._report(
            f"{counted(size, 'node')} for now, as drain.wait is false. Not free yet: {freed.busy_words()}. "
            "Run again when their jobs have ended."
        )
        return size

    def _wanted_again(self, found: Snapshot) -> frozenset[str]:
        """Return the wanted nodes that are held by a drain of this stack for an operation that is over."""
        names = [f"{self._wanted.node_set}-{ordinal}" for ordinal in range(self._wanted.replicas)]
        return drained_for(OVER_WHEN_WANTED, names, found, self._ref.owner)

    def _undrain(self, live: LiveNodeSet, found: Snapshot) -> None:
        """Undrain the nodes that are wanted again.

        A node whose pod is not ready is marked instead, and undrained when its pod is back and has joined.
        """
        back = self._wanted_again(found)
        there = frozenset(name for name in back if (pod := live.pods.get(name)) and pod.ready and not pod.going)
        try:
            self._draining.undrain_seen(there, found)
            self._draining.mark(back - there, found, Operation.REPLACEMENT)
        except (SlurmError, TransportError) as error:
            self._report(f"{compress(in_order(back))} may stay drained until the next run: {error}")
            return
        if there:
            self._report(f"undrained: {compress(in_order(there))}")

    def _undrain_now(self, live: LiveNodeSet) -> None:
        if not live.names():
            return
        try:
            self._undrain(live, self._draining.nodes())
        except (SlurmError, TransportError) as error:
            self._report(f"continues while slurmctld does not answer, as no node leaves: {error}")

    def _await_pods(self, seconds: float) -> None:
        say = saying(self._report, "waits until its pods have ended")
        for left in until(self._clock.now() + seconds, self._clock, longest=5.0, say=say):
            pods = self._live().pods
            if not pods:
                return
            if not left:
                self._report(f"still there after {seconds:.0f} s: {compress(in_order(pods))}")
