"""Slurm's records of nodes whose pods are gone: they are removed if nothing depends on them any more."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from soperator_pulumi.errors import NodesNotDeletedError, SlurmError, TransportError
from soperator_pulumi.kube.verbs import Kube, pods_path
from soperator_pulumi.operations.nodes.undrain import hand_over_to_pods
from soperator_pulumi.slurm.client import SlurmClient
from soperator_pulumi.slurm.drain.reason import SET_BY_RUNS, drain_of_ours, drained_by_another
from soperator_pulumi.slurm.hostlist import compress, in_order
from soperator_pulumi.slurm.models import Node, Snapshot

_ATTEMPTS = 3
_POD_THERE = "its pod is there"


@dataclass(frozen=True)
class CleanupResult:
    """Records of nodes after a cleanup."""

    removed: frozenset[str] = frozenset()
    """Names of the nodes that Slurm knew before, and no longer knows."""
    kept: Mapping[str, str] = field(default_factory=dict)
    """Other nodes by name, with the reasons why their records stay."""

    def lines(self) -> list[str]:
        """Return the result in lines; nodes with the same reason share a line."""
        removed = [f"{compress(in_order(self.removed))}: removed from Slurm"] if self.removed else []
        return removed + kept_lines(self.kept)


def kept_lines(kept: Mapping[str, str]) -> list[str]:
    """Return why records stay, in lines; nodes with the same reason share a line."""
    by_reason: dict[str, list[str]] = {}
    for name in in_order(kept):
        by_reason.setdefault(kept[name], []).append(name)
    return [f"{compress(names)}: stays in Slurm: {reason}" for reason, names in by_reason.items()]


@dataclass(frozen=True)
class NodeCleanup:
    """Removes records from one cluster's slurmctld."""

    kube: Kube
    slurm: SlurmClient
    namespace: str
    owner: str
    """Stack and component that own the cluster, as written in the reasons of its drains."""

    def remove(self, names: Iterable[str], nodes: Mapping[str, Node] | None = None) -> CleanupResult:
        """Remove the records that have no pod any more, and that nothing depends on.

        slurmctld itself would delete nodes named by reservations and pending jobs, and nodes whose slurmd runs. It
        deletes a list partially if one node cannot be deleted: the next look shows the result by name.

        Args:
            names: Names of the nodes. Names that Slurm does not know are ignored.
            nodes: Slurm's current nodes, by name; read from slurmctld if left out.

        Raises:
            KubernetesError: cannot read which pods are gone.
            SlurmError: slurmctld gives an unexpected answer.
            TransportError: slurmctld cannot be reached.
        """
        wanted, gone, asked = frozenset(names), set[str](), frozenset[str]()
        kept: dict[str, str] = {}
        refused: dict[str, str] = {}
        for _ in range(_ATTEMPTS if wanted else 0):
            if nodes is None:
                found = self.slurm.snapshot()
            else:
                found = Snapshot(nodes, self.slurm.jobs(), self.slurm.reservations(), node_table_time=0)
            there, nodes = wanted & found.nodes.keys(), None
            gone |= asked - there
            kept = {name: refused[name] for name in there & refused.keys()} | self.kept(there, found)
            asked = there - kept.keys()
            self._leave_to_pods(kept, found)
            if not asked:
                break
            answer = self._delete(asked)
            if answer == {}:
                return CleanupResult(frozenset(gone | asked), kept)
            refused |= answer or {}
        return CleanupResult(frozenset(gone), kept | dict.fromkeys(asked, "unknown if it is removed"))

    def kept(self, names: Collection[str], found: Snapshot) -> dict[str, str]:
        """Return why records of these names may not be removed now; names whose record may be removed are left out.

        Raises:
            KubernetesError: cannot read which pods are gone.
        """
        # By name, not by labels: a pod that has lost its labels still has its slurmd.
        pods = {str(body["metadata"]["name"]) for body in self.kube.find(pods_path(self.namespace))}
        counted_on = _counted_on(frozenset(names), found)
        kept = {}
        for name in names:
            node = found.nodes[name]
            if name in pods:
                kept[name] = _POD_THERE
            elif drained_by_another(node, self.owner):
                reason = node.reason or "no reason given"
                kept[name] = f"someone else drained it ({reason}), and it must be drained when it is back"
            elif name in counted_on:
                kept[name] = counted_on[name]
        return kept

    def _leave_to_pods(self, kept: Mapping[str, str], found: Snapshot) -> None:
        """Let the pod of a record that stays undrain it when the pod is back: the drain has served its purpose."""
        markers = {
            name: drain_of_ours(found.nodes[name], self.owner) for name, why in kept.items() if why != _POD_THERE
        }
        ours = [name for name, marker in markers.items() if marker and marker.operation in SET_BY_RUNS]
        hand_over_to_pods(self.slurm, ours, self.owner)

    def _delete(self, names: frozenset[str]) -> dict[str, str] | None:
        """Delete the records, and return the refusals; None if the effect is unknown."""
        try:
            self.slurm.delete_nodes(names)
        except NodesNotDeletedError as error:
            return dict.fromkeys(names & error.left, str(error)) or None
        except TransportError:
            return None
        except SlurmError as error:
            return dict.fromkeys(names, str(error))
        return {}


def _counted_on(names: frozenset[str], found: Snapshot) -> dict[str, str]:
    """Return the jobs or reservations that depend on nodes, by name of the node."""
    words = {
        name: f"reservation {reservation.name} names it"
        for reservation in found.reservations
        for name in names & reservation.node_names
    }
    for job in found.jobs:
        if job.pending:
            words |= dict.fromkeys(names & job.required_nodes, f"job {job} asks for it by name")
    for job in found.jobs:
        if job.active:
            words |= dict.fromkeys(names & job.node_names, f"job {job} has not ended for Slurm")
    return words
