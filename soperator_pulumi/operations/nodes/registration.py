"""Waiting until the nodes of a node set have joined Slurm, and saying of each missing one what it lacks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from soperator_pulumi.errors import NotReadyError, SlurmError, SoperatorError, TransportError
from soperator_pulumi.operations.configuration.slurmctld import CONTROLLER_POD
from soperator_pulumi.operations.kube import Kube, pods_path
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.nodes.live_node_set import LiveNodeSet
from soperator_pulumi.operations.pods import Pod
from soperator_pulumi.operations.progress import Clock, Say, until
from soperator_pulumi.slurm.client import SlurmClient
from soperator_pulumi.slurm.drain.reason import Marker, drain_of_ours
from soperator_pulumi.slurm.models import Node

_COUNTED_SECONDS = 60
_TELL_SECONDS = 10
_NAMES_TOLD = 5
_EXPLAINED = 50


@dataclass(frozen=True)
class NodeSetStatus:
    """Who of a node set is there, at one moment."""

    size: int
    """How many nodes there are to be."""
    live: LiveNodeSet
    """What Kubernetes says."""
    nodes: Mapping[str, Node] = field(default_factory=dict)
    """What Slurm says of all nodes of this name, by name."""
    trouble: str = ""
    """Why slurmctld does not answer; empty when it does."""

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes that there are to be."""
        return tuple(f"{self.live.name}-{ordinal}" for ordinal in range(self.size))

    def joined(self, name: str) -> bool:
        """Whether its pod is ready and Slurm can use it or holds it drained."""
        pod, node = self.live.pods.get(name), self.nodes.get(name)
        return pod is not None and pod.ready and not pod.going and node is not None and node.joined

    def missing_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return those of these nodes that have not joined."""
        return tuple(name for name in names if not self.joined(name))

    @property
    def outdated(self) -> tuple[str, ...]:
        """Those whose pods are of an older template: Kubernetes does not replace them, for their jobs' sake."""
        newest = str((self.live.stateful_set or {}).get("status", {}).get("updateRevision", ""))
        pods = (self.live.pods.get(name) for name in self.names)
        return tuple(pod.name for pod in pods if pod and newest and not pod.going and pod.revision not in {"", newest})

    def drained_by(self, owner: str) -> dict[str, Marker]:
        """Return the nodes that a drain of ours holds, each with its marker."""
        return {name: marker for name, node in self.nodes.items() if (marker := drain_of_ours(node, owner))}

    @property
    def surplus(self) -> tuple[str, ...]:
        """Nodes that Slurm has beyond the size, in the order of their ordinals."""
        ordinals = {name: self.live.ordinal(name) or 0 for name in self.nodes}
        beyond = [name for name, ordinal in ordinals.items() if ordinal >= self.size]
        return tuple(sorted(beyond, key=lambda name: ordinals[name]))


@dataclass(frozen=True)
class Registration:
    """The nodes of one node set, as Kubernetes and Slurm see them."""

    kube: Kube
    place: ClusterRef
    node_set: str
    size: int
    """How many nodes there are to be, which is how many pods the StatefulSet is to have."""
    slurm: SlurmClient
    say: Say
    clock: Clock

    def look(self, *, waits: bool = True) -> NodeSetStatus:
        """Return who is there.

        Args:
            waits: Whether to wait until Kubernetes counts what has just been applied.

        Raises:
            KubernetesError: the pods cannot be looked at.
        """
        try:
            nodes = self.slurm.nodes()
        except (SlurmError, TransportError) as error:
            return NodeSetStatus(self.size, self._live(waits=waits), trouble=self._why_no_answer(error))
        return self.look_with({node.name: node for node in nodes}, waits=waits)

    def look_with(self, nodes: Mapping[str, Node], *, waits: bool = True) -> NodeSetStatus:
        """Return who is there, by what Slurm has just said of all nodes.

        Raises:
            KubernetesError: the pods cannot be looked at.
        """
        live = self._live(waits=waits)
        return NodeSetStatus(
            self.size, live, {name: node for name, node in nodes.items() if live.ordinal(name) is not None}
        )

    def require_size(self, live: LiveNodeSet) -> None:
        """Refuse to wait for pods that Kubernetes will not make.

        Raises:
            NotReadyError: the StatefulSet has another number of replicas, or there is none.
        """
        if words := self.other_size(live):
            raise NotReadyError(words)

    def other_size(self, live: LiveNodeSet) -> str:
        """Return what is wrong with the StatefulSet's size, and what to do; empty when it is as it should be."""
        if live.stateful_set is None:
            return f"{self.node_set}: somebody deleted its StatefulSet. Run `pulumi up --refresh`, which makes it anew."
        if live.replicas != self.size:
            return (
                f"{self.node_set}: its StatefulSet has {live.replicas} replicas instead of {self.size}: somebody "
                f"changed them beside Pulumi (`kubectl scale`, an autoscaler), or a transformation in the program "
                f"does. Run `pulumi up --refresh`, which sets {self.size} again, or write what it is to be into the "
                "node set's replicas first: transformations must leave it as it is."
            )
        return ""

    def not_observed(self, status: NodeSetStatus) -> str:
        """Return what is wrong when Kubernetes has not looked at the newest template: what it says is about another."""
        if _observed(status.live):
            return ""
        return f"{self.node_set}: Kubernetes has not looked at its StatefulSet for {_COUNTED_SECONDS} s. Run again."

    def reasons(self, status: NodeSetStatus, names: Sequence[str]) -> list[str]:
        """Return what each of these nodes lacks, those with the same trouble in one line. Costs calls for each."""
        by_reason: dict[str, list[str]] = {}
        for position, name in enumerate(names):
            reason = self._reason(status, name) if position < _EXPLAINED else "not looked at"
            by_reason.setdefault(reason, []).append(name)
        return [f"{named(those)}: {reason}" for reason, those in by_reason.items()]

    def wait(
        self, names: Sequence[str], timeout_seconds: float, admit: Callable[[NodeSetStatus], object] = lambda _: None
    ) -> NodeSetStatus:
        """Wait until these nodes have joined, with a line whenever something changes, and return the last look.

        Args:
            names: The nodes.
            timeout_seconds: How long they may take.
            admit: Called with each look at which some are missing: puts those that have joined into service.

        Raises:
            NotReadyError: the StatefulSet has another size, at once.
            KubernetesError: the pods cannot be looked at.
        """
        began = self.clock.now()
        told_at, told_count = began, -1
        for left in until(began + timeout_seconds, self.clock):
            now = self.clock.now()
            status = self.look()
            self.require_size(status.live)
            missing = status.missing_of(names)
            joined = len(names) - len(missing)
            if not missing:
                break
            if joined != told_count or now - told_at >= _TELL_SECONDS:
                explained = now - began >= _TELL_SECONDS and now - told_at >= _TELL_SECONDS
                told_at, told_count = now, joined
                self.say(f"{self.node_set}: {joined} of {len(names)} nodes have joined, {left:.0f} s left")
                for line in self.reasons(status, missing) if explained else []:
                    self.say(f"  {line}")
            admit(status)
        if names and not missing:
            self.say(f"{self.node_set}: {joined} of {len(names)} nodes have joined")
        return status

    def not_joined(self, status: NodeSetStatus, names: Sequence[str], seconds: float) -> str:
        """Return which of these nodes have not joined, and why, in lines; empty when all have."""
        missing = status.missing_of(names)
        if not missing:
            return ""
        head = f"{self.node_set}: {len(missing)} of {len(names)} nodes have not joined Slurm after {seconds:.0f} s:"
        return "\n".join([head, *(f"  {line}" for line in self.reasons(status, missing))])

    def _live(self, *, waits: bool) -> LiveNodeSet:
        """Return the pods. What has just been applied the API server counts a moment later: that is awaited."""
        for _ in until(self.clock.now() + _COUNTED_SECONDS, self.clock):
            live = LiveNodeSet.read(self.kube, self.place, self.node_set)
            if _observed(live) or not waits:
                break
        return live

    def _why_no_answer(self, error: SoperatorError) -> str:
        """Return what keeps slurmctld from answering: its pod, or else what the attempt met."""
        body = self.kube.get(f"{pods_path(self.place.namespace)}/{CONTROLLER_POD}")
        pod = None if body is None else Pod.of(body)
        if pod is None or pod.ready:
            return f"slurmctld does not answer: {str(error).rstrip('.')}"
        return f"slurmctld does not answer: pod {pod.name} {pod.why_not_ready(self.kube)}"

    def _reason(self, status: NodeSetStatus, name: str) -> str:
        pod, node = status.live.pods.get(name), status.nodes.get(name)
        if pod is None:
            return "its pod does not exist yet"
        if not pod.ready or pod.going:
            return f"its pod {pod.why_not_ready(self.kube)}"
        if status.trouble:
            return status.trouble
        if node is None:
            return "slurmd runs, but has not registered with slurmctld"
        return f"Slurm says {node.condition}"


def _observed(live: LiveNodeSet) -> bool:
    """Whether what Kubernetes says of the newest template is about the newest one."""
    found = live.stateful_set or {}
    return bool(found.get("status", {}).get("observedGeneration", 0) >= found.get("metadata", {}).get("generation", 0))


def named(names: Iterable[str]) -> str:
    """Return names for a message: the first few, and how many more there are."""
    every = list(names)
    told = ", ".join(every[:_NAMES_TOLD])
    return f"{told} and {len(every) - _NAMES_TOLD} more" if len(every) > _NAMES_TOLD else told
