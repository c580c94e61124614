"""Waiting until the nodes of a node set have joined Slurm, with the reasons for missing nodes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from soperator_pulumi.errors import NotReadyError, SlurmError, SoperatorError, TransportError
from soperator_pulumi.kube.pods import Pod, refusing
from soperator_pulumi.kube.verbs import Kube, pods_path
from soperator_pulumi.operations.configuration.slurmctld import CONTROLLER_POD, CONTROLLER_STATEFUL_SET
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.nodes.live_node_set import LiveNodeSet
from soperator_pulumi.operations.progress import Clock, Report, saying, until
from soperator_pulumi.slurm.client import SlurmClient
from soperator_pulumi.slurm.drain.reason import Marker, drain_of_ours
from soperator_pulumi.slurm.models import Node
from soperator_pulumi.wording import listed

_COUNTED_SECONDS = 60
_REPORT_SECONDS = 10
_NAMES_SHOWN = 5
_EXPLAINED = 50


@dataclass(frozen=True)
class NodeSetStatus:
    """State of a node set at one time, in Kubernetes and in Slurm."""

    size: int
    """Wanted number of nodes."""
    live: LiveNodeSet
    """The node set in Kubernetes."""
    nodes: Mapping[str, Node] = field(default_factory=dict)
    """Slurm's nodes of this node set, by name."""
    trouble: str = ""
    """Reason why slurmctld does not answer; empty if it does."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the wanted nodes."""
        return tuple(f"{self.live.name}-{ordinal}" for ordinal in range(self.size))

    def joined(self, name: str) -> bool:
        """Return True for a node whose pod is ready, and that is usable or drained in Slurm."""
        pod, node = self.live.pods.get(name), self.nodes.get(name)
        return pod is not None and pod.ready and not pod.going and node is not None and node.joined

    def missing_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the given nodes that have not joined."""
        return tuple(name for name in names if not self.joined(name))

    @property
    def outdated(self) -> tuple[str, ...]:
        """Nodes whose pods are of an older template: Kubernetes does not replace them, to keep their jobs."""
        newest = self.live.newest_revision
        pods = (self.live.pods.get(name) for name in self.names)
        return tuple(pod.name for pod in pods if pod and newest and not pod.going and pod.revision not in {"", newest})

    def drained_by(self, owner: str) -> dict[str, Marker]:
        """Return the nodes that this owner's drains hold, with their markers."""
        return {name: marker for name, node in self.nodes.items() if (marker := drain_of_ours(node, owner))}

    @property
    def surplus(self) -> tuple[str, ...]:
        """Nodes that Slurm knows beyond the size, in the order of their ordinals."""
        ordinals = {name: self.live.ordinal(name) or 0 for name in self.nodes}
        beyond = [name for name, ordinal in ordinals.items() if ordinal >= self.size]
        return tuple(sorted(beyond, key=lambda name: ordinals[name]))


@dataclass(frozen=True)
class Registration:
    """The nodes of one node set, as Kubernetes and Slurm see them."""

    kube: Kube
    ref: ClusterRef
    node_set: str
    size: int
    """Wanted number of nodes, and of the StatefulSet's pods."""
    slurm: SlurmClient
    show: Report
    clock: Clock
    keep_alone: Callable[[], None] = lambda: None
    """Called in waits for Kubernetes and between calls: renews the cluster's Lease if it is held. Default: there is
    none."""

    def report(self, text: str) -> None:
        """Report a line about the node set."""
        self.show(f"{self.node_set}: {text}")

    def look(self, *, waits: bool = True) -> NodeSetStatus:
        """Return the node set as it is now.

        Args:
            waits: True to wait until Kubernetes has observed a change that was just applied.

        Raises:
            KubernetesError: the pods cannot be read.
        """
        try:
            nodes = self.slurm.nodes()
        except (SlurmError, TransportError) as error:
            return NodeSetStatus(self.size, self._live(waits=waits), trouble=self._why_no_answer(error))
        return self.look_with({node.name: node for node in nodes}, waits=waits)

    def look_with(self, nodes: Mapping[str, Node], *, waits: bool = True) -> NodeSetStatus:
        """Return the node set as it is now, with the given nodes of Slurm.

        Raises:
            KubernetesError: the pods cannot be read.
        """
        live = self._live(waits=waits)
        return NodeSetStatus(
            self.size, live, {name: node for name, node in nodes.items() if live.ordinal(name) is not None}
        )

    def require_size(self, live: LiveNodeSet) -> None:
        """Refuse to wait for pods that Kubernetes will not create.

        Raises:
            NotReadyError: the StatefulSet has another number of replicas, or there is none.
        """
        if words := self.other_size(live):
            raise NotReadyError(words)

    def other_size(self, live: LiveNodeSet, *, refreshes: bool = False) -> str:
        """Return the problem with the StatefulSet's size, with a cure; empty if there is none.

        Args:
            live: The node set as it is now.
            refreshes: True if the calling run records the live size.
        """
        if live.stateful_set is None:
            cure = "pulumi up recreates it." if refreshes else "Run `pulumi up --refresh`, which recreates it."
            return f"{self.node_set}: its StatefulSet was deleted. {cure}"
        if live.replicas != self.size and refreshes:
            return (
                f"{self.node_set}: its StatefulSet has {live.replicas} replicas, but {self.size} were recorded, before "
                "an interrupted run or a change outside Pulumi (`kubectl scale`, an autoscaler). This refresh records "
                f"{live.replicas}; pulumi up sets the program's number."
            )
        if live.replicas != self.size:
            return (
                f"{self.node_set}: its StatefulSet has {live.replicas} replicas instead of {self.size}: they were "
                f"changed outside Pulumi (`kubectl scale`, an autoscaler), or by a transformation in the "
                f"program. Run `pulumi up --refresh`, which restores {self.size}, or write the wanted number into the "
                "node set's replicas first: transformations must leave it unchanged."
            )
        return ""

    def not_observed(self, status: NodeSetStatus) -> str:
        """Return an error if the StatefulSet's status is still about an older template; empty otherwise."""
        if _observed(status.live):
            return ""
        return (
            f"{self.node_set}: Kubernetes has not observed its StatefulSet's change for {_COUNTED_SECONDS} s. "
            "Run again."
        )

    def reasons(self, status: NodeSetStatus, names: Sequence[str]) -> list[str]:
        """Return why these nodes are missing; nodes with the same reason share a line. Makes calls for every node."""
        by_reason: dict[str, list[str]] = {}
        for position, name in enumerate(names):
            self.keep_alone()  # fifty answers of a slow API take longer than the Lease lasts
            reason = self._reason(status, name) if position < _EXPLAINED else "reason not read"
            by_reason.setdefault(reason, []).append(name)
        return [f"{named(those)}: {reason}" for reason, those in by_reason.items()]

    def wait(
        self, names: Sequence[str], timeout_seconds: float, admit: Callable[[NodeSetStatus], object] = lambda _: None
    ) -> NodeSetStatus:
        """Wait until these nodes have joined, report changes meanwhile, and return the last state.

        Args:
            names: The nodes.
            timeout_seconds: Time that they may take.
            admit: Called whenever some are missing, to undrain those that have joined.

        Raises:
            NotReadyError: the StatefulSet has another size, or slurmctld refuses a lost state; raised at once.
            KubernetesError: the pods cannot be read.
        """
        began = self.clock.now()
        reported_at, reported_count = began, -1
        for left in until(began + timeout_seconds, self.clock):
            now = self.clock.now()
            status = self.look()
            self.require_size(status.live)
            missing = status.missing_of(names)
            joined = len(names) - len(missing)
            if not missing:
                break
            if status.trouble and self._state_is_lost():
                raise NotReadyError(f"{self.node_set}: {status.trouble}\nFix the problem above and run again.")
            if joined != reported_count or now - reported_at >= _REPORT_SECONDS:
                explained = now - began >= _REPORT_SECONDS and now - reported_at >= _REPORT_SECONDS
                reported_at, reported_count = now, joined
                self.report(f"{joined} of {len(names)} nodes have joined, {left:.0f} s left")
                for line in self.reasons(status, missing) if explained else []:
                    self.show(f"  {line}")
            admit(status)
        if names and not missing:
            self.report(f"{joined} of {len(names)} nodes have joined")
        return status

    def not_joined(self, status: NodeSetStatus, names: Sequence[str], seconds: float) -> str:
        """Return lines that name the nodes that have not joined, with reasons; empty if all have joined."""
        missing = status.missing_of(names)
        if not missing:
            return ""
        head = f"{self.node_set}: {len(missing)} of {len(names)} nodes have not joined Slurm after {seconds:.0f} s:"
        return "\n".join([head, *(f"  {line}" for line in self.reasons(status, missing))])

    def _live(self, *, waits: bool) -> LiveNodeSet:
        """Return the pods. The API server counts a change a moment after it was applied: wait for that."""
        deadline = self.clock.now() + _COUNTED_SECONDS
        say = saying(self.report, "waits until Kubernetes observes the change of its StatefulSet")
        for _ in until(deadline, self.clock, say=say):
            live = LiveNodeSet.read(self.kube, self.ref, self.node_set)
            if _observed(live) or not waits:
                break
            self.keep_alone()
        return live

    def _state_is_lost(self) -> bool:
        """Return True if slurmctld's pod refuses a lost state, and would refuse it again."""
        body = self.kube.get(f"{pods_path(self.ref.namespace)}/{CONTROLLER_POD}")
        pods = [] if body is None else [Pod.of(body)]
        return bool(refusing(self.kube, self.ref.namespace, CONTROLLER_STATEFUL_SET, pods)[0])

    def _why_no_answer(self, error: SoperatorError) -> str:
        """Return why slurmctld does not answer, from its pod or else from the error of the attempt."""
        body = self.kube.get(f"{pods_path(self.ref.namespace)}/{CONTROLLER_POD}")
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
        return f"Slurm reports {node.condition}"


def _observed(live: LiveNodeSet) -> bool:
    """Return True if the StatefulSet's status is about its newest template."""
    found = live.stateful_set or {}
    return bool(found.get("status", {}).get("observedGeneration", 0) >= found.get("metadata", {}).get("generation", 0))


def named(names: Iterable[str]) -> str:
    """Return names for a message: the first few, and the number of the others."""
    return listed(names, _NAMES_SHOWN)
