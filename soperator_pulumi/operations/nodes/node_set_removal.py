"""Removal of node sets that left the spec: their nodes are drained, and their records removed from Slurm."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from soperator_pulumi.errors import ConfigRefusedError, SlurmError, TransportError
from soperator_pulumi.kube.verbs import Kube, config_map_path
from soperator_pulumi.operations.configuration.desired_files import LiveFiles
from soperator_pulumi.operations.configuration.slurmctld import SLURM_CONFIG_MAP, Slurmctld
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.nodes.context import DrainContext
from soperator_pulumi.operations.nodes.drain_all import drain_all, previewed, requests_for_all
from soperator_pulumi.operations.nodes.live_node_set import LiveNodeSet, find_node_sets
from soperator_pulumi.operations.nodes.node_cleanup import NodeCleanup
from soperator_pulumi.slurm.drain.reason import Operation
from soperator_pulumi.slurm.hostlist import compress


@dataclass(frozen=True)
class NodeSetRemoval:
    """The node sets that a cluster no longer wants."""

    kube: Kube
    ref: ClusterRef
    context: DrainContext
    wanted: Collection[str]
    """Names of the node sets that stay."""
    former: Mapping[str, Mapping[str, Any]]
    """Policies of former node sets, by name. They are forgotten once nothing is left of the node set."""
    slurm_files: Mapping[str, str] | None = None
    """Slurm's files after the removal; None if they are not known."""

    def preview(self) -> bool:
        """Report what `free` would do, and return True if it would do anything. It only reads.

        Raises:
            KubernetesError: Kubernetes cannot be reached, or the namespace is not the recorded one.
            SpecError: SOPERATOR_DRAIN has problems.
        """
        self.ref.uid(self.kube)
        found = self._found()
        leaving = requests_for_all(found, self.former, self.ref.cluster)
        lines = previewed(self.context, leaving, Operation.REMOVAL)
        if leaving and (words := self._against([name for node_set in leaving for name in node_set.names])):
            lines = [*lines, f"{self.ref.cluster}: this would be refused now, before any node is drained. {words}"]
        left = self._left_over(found)
        if left:
            lines = [*lines, f"{self.ref.cluster}: in Slurm without a pod, is removed: {compress(left)}"]
        for line in lines:
            self.context.show(line)
        return bool(lines)

    def free(self) -> None:
        """Drain the nodes of removed node sets, and remove the records of nodes whose pods are gone.

        Raises:
            ConfigRefusedError: Slurm's files could not be changed afterwards, so nothing is drained.
            DrainError: the nodes are not free.
            KubernetesError: Kubernetes cannot be reached.
            SpecError: SOPERATOR_DRAIN has problems.
        """
        if names := [name for node_set in self._found().values() for name in node_set.names()]:
            self.ref.uid(self.kube)
            if words := self._against(names):
                raise ConfigRefusedError(f"{self.ref.cluster}: no node of {compress(names)} is drained. {words}")
        show, clock = self.context.show, self.context.clock
        drain_all(self.kube, self.ref, self.former, Operation.REMOVAL, report=show, clock=clock, staying=self.wanted)
        if not (left := self._left_over(self._found())):
            return
        try:
            for line in self._cleanup().remove(left).lines():
                self.context.report(line)
        except (SlurmError, TransportError) as error:
            self.context.report(f"{compress(left)}: the next run removes it from Slurm: {error}")

    def remaining(self) -> dict[str, Any]:
        """Return the policies of node sets that still exist in part, or may while slurmctld does not answer."""
        found = self._found()
        try:
            nodes = self._nodes() if self.former.keys() - found.keys() else []
        except (SlurmError, TransportError):
            return {name: {**policy} for name, policy in self.former.items()}
        left = {name: policy for name, policy in self.former.items() if name in found or _of(name, nodes)}
        return {name: {**policy} for name, policy in left.items()}

    def _against(self, names: Collection[str]) -> str:
        """Return why Slurm's files could not be changed once these nodes are free; empty if they can, as far as known.

        Hours of draining would be wasted if the change were refused at the end. Unknown facts are judged then.
        """
        if self.slurm_files is None:
            return ""
        live = self.kube.get(config_map_path(self.ref.namespace, SLURM_CONFIG_MAP))
        if live is None:
            return ""
        context = self.context
        slurmctld = Slurmctld(self.kube, self.ref.namespace, self.ref.selector, context.show, context.clock)
        try:
            return slurmctld.refusal(LiveFiles(live).files, self.slurm_files, names)
        except (SlurmError, TransportError):
            return ""

    def _found(self) -> dict[str, LiveNodeSet]:
        live = find_node_sets(self.kube, self.ref)
        return {name: node_set for name, node_set in live.items() if name not in self.wanted}

    def _left_over(self, found: Mapping[str, LiveNodeSet]) -> list[str]:
        """Return the records of removed node sets that can be deleted; none while slurmctld does not answer."""
        gone = [name for name in self.former if name not in found]
        try:
            nodes = self._nodes() if gone else []
            if not (left := [node for name in gone for node in _of(name, nodes)]):
                return []
            snapshot = self.context.slurm.snapshot()
        except (SlurmError, TransportError):
            return []
        left = [name for name in left if name in snapshot.nodes]  # one may have been removed meanwhile
        kept = self._cleanup().kept(left, snapshot)
        return [name for name in left if name not in kept]

    def _nodes(self) -> list[str]:
        return [node.name for node in self.context.slurm.nodes()]

    def _cleanup(self) -> NodeCleanup:
        return NodeCleanup(self.kube, self.context.slurm, namespace=self.ref.namespace, owner=self.ref.owner)


def _of(node_set: str, nodes: Iterable[str]) -> list[str]:
    return [name for name in nodes if LiveNodeSet(node_set).ordinal(name) is not None]
