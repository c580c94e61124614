"""The nodes that a node set has too many: what happens to them before Kubernetes takes their pods away, and after."""

from functools import partial
from typing import Any

from soperator_pulumi.errors import DrainError, KubernetesError, SlurmError, TransportError
from soperator_pulumi.operations.kube import Kube
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.nodes.drain_all import LOOKS, drain_all
from soperator_pulumi.operations.nodes.drain_override import policy_of
from soperator_pulumi.operations.nodes.draining import Draining, DrainResult, slurm_of
from soperator_pulumi.operations.nodes.live_node_set import LiveNodeSet
from soperator_pulumi.operations.nodes.node_cleanup import NodeCleanup
from soperator_pulumi.operations.progress import Clock, Say, until
from soperator_pulumi.slurm.drain.plan import undrain
from soperator_pulumi.slurm.drain.reason import Operation
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.hostlist import compress, in_order
from soperator_pulumi.slurm.models import Snapshot

TAKEN_BACK = frozenset({Operation.SCALE_DOWN, Operation.REMOVAL, Operation.DESTROY})
"""Operations that are over when a node is wanted again."""

_GOING_SECONDS = 60
"""How much longer than its grace period a pod may take to go."""


class Wanted(ClusterRef):
    """What a node set is to be, as the resource before it has it in its inputs. Numbers arrive as floats."""

    node_set: str
    replicas: int
    identity: str
    """Another text when Pulumi would replace the StatefulSet."""
    policy: dict[str, Any]


class ScaleDown:
    """One node set, compared with the live one."""

    def __init__(self, kube: Kube, wanted: Wanted, recorded: Wanted | None, say: Say, clock: Clock) -> None:
        """Prepare.

        Args:
            kube: The Kubernetes that it is in.
            wanted: What it is to be.
            recorded: What it was when this resource was last up to date; None when it is new.
            say: Shows a line.
            clock: Waits, and bounds waits.
        """
        self._kube = kube
        self._wanted = wanted
        self._recorded = recorded
        self._say = say
        self._clock = clock
        self._draining = Draining.at(kube, wanted, say, clock)
        self._what = f"{wanted.cluster}/{wanted.node_set}"

    def preview(self) -> bool:
        """Print what `free` would do, and return whether it would do anything. It only reads.

        Raises:
            KubernetesError: Kubernetes is not reached, or it is another namespace.
            SpecError: SOPERATOR_DRAIN has problems.
        """
        policy_of(self._wanted.cluster, self._wanted.policy)
        self._wanted.uid(self._kube)
        live = self._live()
        leaving, operation = self._leaving(live)
        try:
            if leaving.names:
                if self._recorded and self._recorded.replicas == self._wanted.replicas < live.replicas:
                    self._say(
                        f"{self._what}: somebody has scaled it to {live.replicas} nodes beside Pulumi. A plain "
                        "`pulumi up` drains what is too much, but takes no pod away: use `pulumi up --refresh`."
                    )
                for line in self._draining.preview([leaving], operation):
                    self._say(line)
                return True
            if not live.names():
                return False
            back = self._taken_back(self._draining.nodes())
        except (SlurmError, TransportError) as error:
            if leaving.names:
                self._say(
                    f"{self._what}: {leaving.before} -> {leaving.after} nodes. Leaving: {compress(leaving.names)}. "
                    f"What runs there is not known, as slurmctld does not answer: {error}"
                )
            return bool(leaving.names)
        if back:
            self._say(f"{self._what}: {compress(in_order(back))} drained for what is over: back into service")
        return bool(back)

    def free(self) -> tuple[str, int]:
        """Free what is to go and put back what is wanted again; return the namespace's UID and the size that may be.

        That is the wanted one, or a larger one while some are not free and the policy does not wait.

        Raises:
            DrainError: they are not free; all is put back, or the message names what is not.
            KubernetesError: Kubernetes is not reached, or it is another namespace.
            SpecError: SOPERATOR_DRAIN has problems.
        """
        self._free_former()
        uid = self._wanted.uid(self._kube)
        live = self._live()
        leaving, operation = self._leaving(live)
        if not leaving.names:
            self._take_back_now(live)
            return uid, self._wanted.replicas
        for _ in range(LOOKS):
            freed = self._draining.free([leaving], operation, first=partial(self._take_back, live))
            live, before = self._live(), leaving
            leaving, operation = self._leaving(live)
            if leaving == before:  # nobody has scaled the set up meanwhile, and no slurmd has started
                return uid, self._size(freed, operation)
        raise DrainError(f"{self._what}: its nodes change as fast as they are drained. Run again when that is over.")

    def clean_up(self) -> None:
        """Remove the records of the node set's nodes once its pods are gone. What cannot be done is said."""
        wanted = self._wanted
        try:
            wanted.uid(self._kube)
            if self._live().replicas:
                self._say(f"{self._what}: its StatefulSet is still there, so its nodes stay in Slurm")
                return
            self._await_pods(policy_of(wanted.cluster, wanted.policy).grace.total_seconds() + _GOING_SECONDS)
            slurm = slurm_of(self._kube, wanted, self._clock)
            own = [node.name for node in slurm.nodes() if LiveNodeSet(wanted.node_set).ordinal(node.name) is not None]
            removal = NodeCleanup(self._kube, slurm, namespace=wanted.namespace, owner=wanted.owner).remove(own)
        except (KubernetesError, SlurmError, TransportError) as error:
            self._say(f"{self._what}: its nodes may stay in Slurm: {error}")
            return
        for line in removal.lines():
            self._say(f"{self._what}: {line}")

    def _live(self) -> LiveNodeSet:
        return LiveNodeSet.read(self._kube, self._wanted, self._wanted.node_set)

    def _leaving(self, live: LiveNodeSet) -> tuple[DrainRequest, Operation]:
        """Return which nodes leave and why: the surplus, or all of them when the StatefulSet is to be replaced."""
        policy = policy_of(self._wanted.cluster, self._wanted.policy)
        if self._is_replaced(live):
            return live.renewed(policy), Operation.REPLACEMENT
        return live.leaving(policy, self._wanted.replicas), Operation.SCALE_DOWN

    def _is_replaced(self, live: LiveNodeSet) -> bool:
        if live.stateful_set is None:
            return False
        # What the StatefulSet itself says holds also after a run that was killed before it was replaced.
        identity = live.identity or (self._recorded.identity if self._recorded else "")
        return bool(identity) and identity != self._wanted.identity

    def _free_former(self) -> None:
        """Free the nodes in the namespace that the node set leaves for another one."""
        former, wanted = self._recorded, self._wanted
        if former is None or former.namespace == wanted.namespace:
            return
        drain_all(
            self._kube,
            former,
            {former.node_set: wanted.policy},
            Operation.REPLACEMENT,
            say=self._say,
            clock=self._clock,
        )

    def _size(self, freed: DrainResult, operation: Operation) -> int:
        """Return how many nodes the StatefulSet may have: more than are wanted while some are not free."""
        if not freed.busy:
            return self._wanted.replicas
        if operation is Operation.REPLACEMENT:
            raise DrainError(
                f"{self._what}: drained, but not free yet: {freed.busy_words()}.\n"
                "  The StatefulSet is not replaced, as drain.wait is false. Run again when their jobs have ended."
            )
        ordinals = [LiveNodeSet(self._wanted.node_set).ordinal(name) for name in freed.busy]
        size = 1 + max(ordinal for ordinal in ordinals if ordinal is not None)
        self._say(
            f"{self._what}: {size} nodes for now, as drain.wait is false. Not free yet: {freed.busy_words()}. "
            "Run again when their jobs have ended."
        )
        return size

    def _taken_back(self, found: Snapshot) -> frozenset[str]:
        """Return the nodes that are wanted and hold a drain of ours for something that is over."""
        names = [f"{self._wanted.node_set}-{ordinal}" for ordinal in range(self._wanted.replicas)]
        return undrain(names, found, self._wanted.owner, TAKEN_BACK)

    def _take_back(self, live: LiveNodeSet, found: Snapshot) -> None:
        """Put back into service what is wanted again.

        A node whose pod is not ready is marked anew instead: it is put back when its pod is there and it has joined.
        """
        back = self._taken_back(found)
        there = frozenset(name for name in back if (pod := live.pods.get(name)) and pod.ready and not pod.going)
        try:
            self._draining.resume(there, found)
            self._draining.mark(back - there, found, Operation.REPLACEMENT)
        except (SlurmError, TransportError) as error:
            self._say(f"{self._what}: {compress(in_order(back))} may stay drained until the next run: {error}")
            return
        if there:
            self._say(f"{self._what}: back in service: {compress(in_order(there))}")

    def _take_back_now(self, live: LiveNodeSet) -> None:
        if not live.names():
            return
        try:
            self._take_back(live, self._draining.nodes())
        except (SlurmError, TransportError) as error:
            self._say(f"{self._what}: goes on while slurmctld does not answer, as no node leaves: {error}")

    def _await_pods(self, seconds: float) -> None:
        for left in until(self._clock.now() + seconds, self._clock, longest=5.0):
            pods = self._live().pods
            if not pods:
                return
            if not left:
                self._say(f"{self._what}: still there after {seconds:.0f} s: {compress(in_order(pods))}")
