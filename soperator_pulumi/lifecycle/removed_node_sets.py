"""The resource before Slurm's files: node sets that are no longer wanted are free before their partitions go."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pulumi.dynamic import CheckFailure, CheckResult, CreateResult, DiffResult, UpdateResult

from soperator_pulumi.errors import ConfigRefusedError, KubernetesError, SlurmError, SpecError, TransportError
from soperator_pulumi.lifecycle.all_node_sets import AllNodeSets
from soperator_pulumi.lifecycle.pinned_provider import PinnedProvider
from soperator_pulumi.lifecycle.unknown import has_unknown
from soperator_pulumi.operations.configuration.files import LiveFiles
from soperator_pulumi.operations.configuration.slurmctld import SLURM_CONFIG_MAP, Slurmctld
from soperator_pulumi.operations.kube import Kube, config_map_path
from soperator_pulumi.operations.nodes.cluster_ref import cluster_of, controller_lost
from soperator_pulumi.operations.nodes.drain_all import NodeSetsInputs, drain_all
from soperator_pulumi.operations.nodes.drain_override import policy_of
from soperator_pulumi.operations.nodes.draining import Draining, slurm_of
from soperator_pulumi.operations.nodes.live_node_set import LiveNodeSet, find_node_sets
from soperator_pulumi.operations.nodes.node_cleanup import NodeCleanup
from soperator_pulumi.operations.progress import Clock, MachineClock, Say, say
from soperator_pulumi.slurm.drain.reason import Operation
from soperator_pulumi.slurm.hostlist import compress

_FORMER = "former"


class RemovedNodeSetsProvider(PinnedProvider):
    """Drain on update the live node sets that are not wanted. Create and delete do nothing."""

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        """Refuse what the environment says for this run, if it is bad: once, and before anything else."""
        try:
            cluster = cluster_of(news)
            for policy in [None, *news["policies"].values()]:
                policy_of(cluster, policy)
            controller_lost(cluster)
        except SpecError as error:
            return CheckResult(news, [CheckFailure("", str(error))])
        return super().check(olds, news)

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Compare with the live node sets, and print what will happen to those that are not wanted."""
        if has_unknown(news):
            return DiffResult(changes=True)
        wanted, recorded = NodeSetsInputs.of(news, olds), NodeSetsInputs.model_validate(olds)
        try:
            removed = self._removed(news, wanted, olds).preview()
        except KubernetesError as error:
            say(f"{wanted.cluster}: its node sets cannot be looked at: {error}")
            removed = True
        return DiffResult(changes=removed or wanted != recorded)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Free what is not wanted: the cluster may be older than this resource."""
        return CreateResult(f"{props['namespace']}/removed-node-sets", self._free(props, None))

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Free what is not wanted, and remove what is left of node sets that were removed before."""
        return UpdateResult(self._free(news, olds))

    def _free(self, news: Mapping[str, Any], olds: Mapping[str, Any] | None) -> dict[str, Any]:
        wanted = NodeSetsInputs.of(news, olds)
        removed = self._removed(news, wanted, olds)
        uid = wanted.uid(removed.kube)
        removed.free()
        return {**news, "namespace_uid": uid, _FORMER: removed.remaining()}

    def _removed(
        self, news: Mapping[str, Any], wanted: NodeSetsInputs, olds: Mapping[str, Any] | None
    ) -> "NodeSetRemoval":
        former = {} if olds is None else {**olds.get(_FORMER, {}), **olds["policies"]}
        gone = {name: policy for name, policy in former.items() if name not in wanted.policies}
        return NodeSetRemoval(self.kube(news), wanted, gone, say, MachineClock(), news.get("slurm_files"))


@dataclass(frozen=True)
class NodeSetRemoval:
    """The node sets that a cluster is no longer to have."""

    kube: Kube
    wanted: NodeSetsInputs
    former: Mapping[str, Mapping[str, Any]]
    """The policies of those that it had, by name: those of which nothing is left are not known any more."""
    say: Say
    clock: Clock
    slurm_files: Mapping[str, str] | None = None
    """Slurm's files as they are to be afterwards; None when that is not known."""

    def preview(self) -> bool:
        """Print what will happen, and return whether anything will. It only reads.

        Raises:
            KubernetesError: Kubernetes is not reached, or it is another namespace.
            SpecError: SOPERATOR_DRAIN has problems.
        """
        self.wanted.uid(self.kube)
        found = self._found()
        leaving = [
            each.leaving(policy_of(self.wanted.cluster, self.former.get(name)), 0)
            for name, each in found.items()
            if each.names()
        ]
        try:
            lines = Draining.at(self.kube, self.wanted, self.say, self.clock).preview(leaving, Operation.REMOVAL)
        except (SlurmError, TransportError) as error:
            names = ", ".join(each.node_set for each in leaving)
            lines = [f"{self.wanted.cluster}: removed: {names}. What runs there is not known: {error}"]
        if leaving and (words := self._against([name for each in leaving for name in each.names])):
            lines = [*lines, f"{self.wanted.cluster}: would be refused now, before any node is drained. {words}"]
        left = self._left_over(found)
        if left:
            lines = [*lines, f"{self.wanted.cluster}: in Slurm without a pod, is removed: {compress(left)}"]
        for line in lines:
            self.say(line)
        return bool(lines)

    def free(self) -> None:
        """Free them, and remove what is left of others.

        Raises:
            ConfigRefusedError: Slurm's files could not follow, so nothing is drained.
            DrainError: they are not free.
            KubernetesError: Kubernetes is not reached.
            SpecError: SOPERATOR_DRAIN has problems.
        """
        if names := [name for each in self._found().values() for name in each.names()]:
            self.wanted.uid(self.kube)
            if words := self._against(names):
                raise ConfigRefusedError(f"{self.wanted.cluster}: no node of {compress(names)} is drained. {words}")
        staying = self.wanted.policies
        drain_all(
            self.kube, self.wanted, self.former, Operation.REMOVAL, say=self.say, clock=self.clock, staying=staying
        )
        if not (left := self._left_over(self._found())):
            return
        try:
            for line in self._records().remove(left).lines():
                self.say(f"{self.wanted.cluster}: {line}")
        except (SlurmError, TransportError) as error:
            self.say(f"{self.wanted.cluster}: {compress(left)}: the next run removes it from Slurm: {error}")

    def remaining(self) -> dict[str, Any]:
        """Return the policies of those of which something is left, or may be while slurmctld does not answer."""
        found = self._found()
        try:
            nodes = self._nodes() if self.former.keys() - found.keys() else []
        except (SlurmError, TransportError):
            return {name: {**policy} for name, policy in self.former.items()}
        left = {name: policy for name, policy in self.former.items() if name in found or self._of(name, nodes)}
        return {name: {**policy} for name, policy in left.items()}

    def _against(self, names: Collection[str]) -> str:
        """Return why Slurm's files could not follow once these nodes are free; empty when they can, as far as is known.

        Hours of draining for a change that is refused then would be lost. What is not known now is decided then.
        """
        if self.slurm_files is None:
            return ""
        live = self.kube.get(config_map_path(self.wanted.namespace, SLURM_CONFIG_MAP))
        if live is None:
            return ""
        slurmctld = Slurmctld(self.kube, self.wanted.namespace, self.wanted.selector, self.say, self.clock)
        try:
            return slurmctld.refusal(LiveFiles(live).files, self.slurm_files, names)
        except (SlurmError, TransportError):
            return ""

    def _found(self) -> dict[str, LiveNodeSet]:
        live = find_node_sets(self.kube, self.wanted)
        return {name: each for name, each in live.items() if name not in self.wanted.policies}

    def _left_over(self, found: Mapping[str, LiveNodeSet]) -> list[str]:
        """Return the records, of node sets that are gone, that can be removed; none while slurmctld does not answer."""
        gone = [name for name in self.former if name not in found]
        cleanup = self._records()
        try:
            nodes = self._nodes() if gone else []
            if not (left := [node for name in gone for node in self._of(name, nodes)]):
                return []
            snapshot = cleanup.slurm.snapshot()
        except (SlurmError, TransportError):
            return []
        left = [name for name in left if name in snapshot.nodes]  # somebody may have removed one meanwhile
        kept = cleanup.kept(left, snapshot)
        return [name for name in left if name not in kept]

    def _nodes(self) -> list[str]:
        return [node.name for node in self._records().slurm.nodes()]

    def _of(self, node_set: str, nodes: Iterable[str]) -> list[str]:
        return [name for name in nodes if LiveNodeSet(node_set).ordinal(name) is not None]

    def _records(self) -> NodeCleanup:
        slurm = slurm_of(self.kube, self.wanted, self.clock)
        return NodeCleanup(self.kube, slurm, namespace=self.wanted.namespace, owner=self.wanted.owner)


class RemovedNodeSets(AllNodeSets, module="soperator", name="RemovedNodeSets"):
    """The node sets that were taken out of the spec, drained and free of jobs."""

    acts = RemovedNodeSetsProvider
