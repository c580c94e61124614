"""Slurm's records of nodes whose pods are gone: removed where nothing counts on them any more."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from soperator_pulumi.errors import NodesNotDeletedError, SlurmError, TransportError
from soperator_pulumi.operations.kube import Kube, pods_path
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
    """Names of those that Slurm had before, and has no longer."""
    kept: Mapping[str, str] = field(default_factory=dict)
    """The others by name, each with the reason that keeps it."""

    def lines(self) -> list[str]:
        """Return the result in lines, records that stay for one reason together."""
        removed = [f"{compress(in_order(self.removed))}: removed from Slurm"] if self.removed else []
        return removed + kept_lines(self.kept)


def kept_lines(kept: Mapping[str, str]) -> list[str]:
    """Return why records stay, in lines, those of one reason together."""
    by_reason: dict[str, list[str]] = {}
    for name in in_order(kept):
        by_reason.setdefault(kept[name], []).append(name)
    return [f"{compress(names)}: stays in Slurm: {reason}" for reason, names in by_reason.items()]


@dataclass(frozen=True)
class NodeCleanup:
    """The node table of one cluster's slurmctld."""

    kube: Kube
    slurm: SlurmClient
    namespace: str
    owner: str
    """Stack and component of the cluster, as in the reasons of our drains."""

    def remove(self, names: Iterable[str], nodes: Mapping[str, Node] | None = None) -> CleanupResult:
        """Remove the records that have no pod any more, and that nobody counts on.

        slurmctld itself would delete nodes that reservations and pending jobs name, and nodes whose slurmd runs. A
        list is deleted in part when one of it cannot be: the next look shows the result for each name.

        Args:
            names: Of the nodes. Names that Slurm does not have are ignored.
            nodes: Slurm's nodes of just now, by name; asked for when left out.

        Raises:
            KubernetesError: whether their pods are gone cannot be asked.
            SlurmError: slurmctld does not answer as it should.
            TransportError: slurmctld is not reached.
        """
        wanted, gone, asked = frozenset(names), set[str](), frozenset[str]()
        kept: dict[str, str] = {}
        refused: dict[str, str] = {}
        for _ in range(_ATTEMPTS if wanted else 0):
            found = self._snapshot(nodes)
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
        return CleanupResult(frozenset(gone), kept | dict.fromkeys(asked, "whether it is removed is not known"))

    def kept(self, names: Collection[str], found: Snapshot) -> dict[str, str]:
        """Return why records of these names may not be removed now; those that may are not in it.

        Raises:
            KubernetesError: whether their pods are gone cannot be asked.
        """
        # Not by labels: a pod that has lost them has its slurmd even so.
        pods = {str(body["metadata"]["name"]) for body in self.kube.find(pods_path(self.namespace))}
        counted_on = _counted_on(frozenset(names), found)
        kept = {}
        for name in names:
            node = found.nodes[name]
            if name in pods:
                kept[name] = _POD_THERE
            elif drained_by_another(node, self.owner):
                reason = node.reason or "no reason given"
                kept[name] = f"somebody drained it ({reason}), and it is to be drained when it is back"
            elif name in counted_on:
                kept[name] = counted_on[name]
        return kept

    def _leave_to_pods(self, kept: Mapping[str, str], found: Snapshot) -> None:
        """Have a record that stays undrained by its pod when that is there again: the drain's purpose is over."""
        markers = {
            name: drain_of_ours(found.nodes[name], self.owner) for name, why in kept.items() if why != _POD_THERE
        }
        ours = [name for name, each in markers.items() if each and each.operation in SET_BY_RUNS]
        hand_over_to_pods(self.slurm, ours, self.owner)

    def _snapshot(self, nodes: Mapping[str, Node] | None) -> Snapshot:
        if nodes is None:
            return self.slurm.snapshot()
        return Snapshot(nodes, self.slurm.jobs(), self.slurm.reservations(), node_table_time=0)

    def _delete(self, names: frozenset[str]) -> dict[str, str] | None:
        """Delete, and return the refusals; None where it is not known what was done."""
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
    """Return the claims on nodes, by name: a job that is on them or waits for them, or else a reservation."""
    words = {
        name: f"reservation {each.name} names it" for each in found.reservations for name in names & each.node_names
    }
    for job in found.jobs:
        if job.pending:
            words |= dict.fromkeys(names & job.required_nodes, f"job {job} asks for it by name")
    for job in found.jobs:
        if job.active:
            words |= dict.fromkeys(names & job.node_names, f"job {job} has not ended for Slurm")
    return words
