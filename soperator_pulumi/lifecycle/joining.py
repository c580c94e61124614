"""Waiting until the nodes of a node set have joined Slurm, and saying of each missing one what it lacks."""

from collections.abc import Mapping
from dataclasses import dataclass

from soperator_pulumi.errors import NotReadyError, SlurmError, SoperatorError, TransportError
from soperator_pulumi.lifecycle.kube import Kube, pods_path
from soperator_pulumi.lifecycle.pods import Pod, find_pods
from soperator_pulumi.lifecycle.progress import Clock, Say, until
from soperator_pulumi.lifecycle.slurmctld import CONTROLLER_CONTAINER, CONTROLLER_POD
from soperator_pulumi.slurm import Node, SlurmClient

_COUNTED_SECONDS = 5
_TELL_SECONDS = 10
_NAMES_TOLD = 5
_EXPLAINED = 50


@dataclass(frozen=True)
class Roll:
    """Who of a node set is there, at one moment."""

    size: int
    missing: Mapping[str, str]
    """What each node that has not joined lacks, by name; empty where nobody has looked."""

    @property
    def joined(self) -> int:
        """Number of nodes that have joined."""
        return self.size - len(self.missing)

    def lines(self) -> list[str]:
        """Return the missing nodes, those with the same trouble in one line."""
        by_reason: dict[str, list[str]] = {}
        for name, reason in self.missing.items():
            by_reason.setdefault(reason, []).append(name)
        return [f"{named(names)}: {reason}" for reason, names in by_reason.items() if reason]


class Joining:
    """The nodes of one node set, as Kubernetes and Slurm see them."""

    def __init__(
        self, kube: Kube, *, namespace: str, node_set: str, selector: Mapping[str, str], say: Say, clock: Clock
    ) -> None:
        self._kube = kube
        self._namespace = namespace
        self._node_set = node_set
        self._selector = {**selector}
        self._say = say
        self._clock = clock

    def roll(self, replicas: int, *, explained: bool = True) -> Roll:
        """Return who is there. A node has joined when its pod is ready and Slurm can use it or holds it drained.

        Looking for the reasons costs calls for each missing node, so it is done only when they are told.
        """
        names = [f"{self._node_set}-{ordinal}" for ordinal in range(replicas)]
        if not names:
            return Roll(0, {})
        pods = {pod.name: pod for pod in find_pods(self._kube, self._namespace, self._selector)}
        trouble = ""
        nodes: dict[str, Node] = {}
        try:
            nodes = {node.name: node for node in self._slurm().nodes()}
        except (SlurmError, TransportError) as error:
            trouble = self._why_no_answer(error)
        missing = [name for name in names if trouble or not _joined(pods.get(name), nodes.get(name))]
        reasons = {
            name: self._reason(pods.get(name), nodes.get(name), trouble) if position < _EXPLAINED else "not looked at"
            for position, name in enumerate(missing if explained else [])
        }
        return Roll(replicas, reasons or dict.fromkeys(missing, ""))

    def outdated(self) -> list[str]:
        """Return the nodes whose pods are of an older template: Kubernetes does not replace them, for their jobs' sake.

        The API server counts a template that has just been applied a moment later: that is waited for.
        """
        newest = ""
        for _ in until(self._clock.now() + _COUNTED_SECONDS, self._clock):
            found = self._kube.get(f"/apis/apps/v1/namespaces/{self._namespace}/statefulsets/{self._node_set}") or {}
            status = found.get("status", {})
            newest = str(status.get("updateRevision", ""))
            if status.get("observedGeneration", 0) >= found.get("metadata", {}).get("generation", 0):
                break
        pods = find_pods(self._kube, self._namespace, self._selector) if newest else []
        return [pod.name for pod in pods if not pod.going and pod.revision not in {"", newest}]

    def wait(self, replicas: int, timeout_seconds: float) -> None:
        """Wait until all nodes have joined, with a line whenever something changes.

        Raises:
            NotReadyError: they have not after `timeout_seconds`; what each lacks.
        """
        began = self._clock.now()
        told_at, told_count = began, -1
        for left in until(began + timeout_seconds, self._clock):
            now = self._clock.now()
            long = now - began >= _TELL_SECONDS
            roll = self.roll(replicas, explained=left <= 0 or (long and now - told_at >= _TELL_SECONDS))
            if not roll.missing:
                self._say(f"{self._node_set}: {replicas} of {replicas} nodes have joined")
                return
            if roll.joined != told_count or now - told_at >= _TELL_SECONDS:
                told_at, told_count = now, roll.joined
                self._say(f"{self._node_set}: {roll.joined} of {replicas} nodes have joined, {left:.0f} s left")
                for line in roll.lines():
                    self._say(f"  {line}")
        raise NotReadyError(
            f"{self._node_set}: {len(roll.missing)} of {replicas} nodes have not joined Slurm "
            f"after {timeout_seconds:.0f} s:\n"
            + "".join(f"  {line}\n" for line in roll.lines())
            + "Mend what is named and run again, lower the node set's replicas, or raise its ready_timeout_seconds."
        )

    def _why_no_answer(self, error: SoperatorError) -> str:
        """Return what keeps slurmctld from answering: its pod, or else what the attempt met."""
        body = self._kube.get(f"{pods_path(self._namespace)}/{CONTROLLER_POD}")
        pod = None if body is None else Pod.of(body)
        if pod is None or pod.ready:
            return f"slurmctld does not answer: {str(error).rstrip('.')}"
        return f"slurmctld does not answer: pod {pod.name} {pod.why_not_ready(self._kube)}"

    def _slurm(self) -> SlurmClient:
        return SlurmClient(self._kube.transport(self._namespace, CONTROLLER_POD, CONTROLLER_CONTAINER))

    def _reason(self, pod: Pod | None, node: Node | None, trouble: str) -> str:
        if pod is None:
            return "its pod does not exist yet"
        if not pod.ready:
            return f"its pod {pod.why_not_ready(self._kube)}"
        if trouble:
            return trouble
        if node is None:
            return "slurmd runs, but has not registered with slurmctld"
        return f"Slurm says {node.condition}"


def _joined(pod: Pod | None, node: Node | None) -> bool:
    return pod is not None and pod.ready and node is not None and node.joined


def named(names: list[str]) -> str:
    """Return names for a message: the first few, and how many more there are."""
    told = ", ".join(names[:_NAMES_TOLD])
    return f"{told} and {len(names) - _NAMES_TOLD} more" if len(names) > _NAMES_TOLD else told
