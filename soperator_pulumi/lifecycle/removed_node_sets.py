"""The resource before Slurm's files: it drains removed node sets before slurm.conf loses their partitions."""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.dynamic import CheckFailure, CheckResult, CreateResult, DiffResult, UpdateResult

from soperator_pulumi.errors import KubernetesError, SpecError
from soperator_pulumi.lifecycle.connection import ClusterConnection
from soperator_pulumi.lifecycle.provider import PinnedProvider, has_unknown
from soperator_pulumi.lifecycle.resource import LiveResource
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef, cluster_of, controller_lost
from soperator_pulumi.operations.nodes.context import DrainContext
from soperator_pulumi.operations.nodes.drain_override import policy_of
from soperator_pulumi.operations.nodes.node_set_removal import NodeSetRemoval
from soperator_pulumi.operations.progress import MachineClock, report

_FORMER = "former"
"""Output with the policies of node sets that left the spec, as long as a part of them exists."""


class RemovedNodeSetsInputs(ClusterRef):
    """The node sets that stay."""

    policies: dict[str, dict[str, Any]]
    """`drain` of the node sets, by their names."""


def with_removed(olds: Mapping[str, Any], news: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs with the recorded numbers of nodes of node sets that left the spec, as `removed`.

    Policies need it, as they see inputs but no state. It is not part of `RemovedNodeSetsInputs`.
    """
    gone = {name: count for name, count in (olds.get("replicas") or {}).items() if name not in news["policies"]}
    return {**news, "removed": gone} if gone else {**news}


class RemovedNodeSetsProvider(PinnedProvider):
    """Drain live node sets that are not wanted, on create and update. Delete does nothing."""

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        """Refuse an invalid environment of this run, once and before anything else."""
        try:
            cluster = cluster_of(news)
            for policy in [None, *news["policies"].values()]:
                policy_of(cluster, policy)
            controller_lost(cluster)
        except SpecError as error:
            return CheckResult(news, [CheckFailure("", str(error))])
        return super().check(olds, with_removed(olds, news))

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Compare with the live node sets, and print what will happen to unwanted ones."""
        if has_unknown(news):
            return DiffResult(changes=True)
        inputs, recorded = RemovedNodeSetsInputs.of(news, olds), RemovedNodeSetsInputs.model_validate(olds)
        try:
            removed = self._removal(news, inputs, olds).preview()
        except KubernetesError as error:
            report(f"{inputs.cluster}: cannot read its node sets: {error}")
            removed = True
        return DiffResult(changes=removed or inputs != recorded)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Drain surplus node sets: the cluster may be older than this resource."""
        return CreateResult(f"{props['namespace']}/removed-node-sets", self._free(props, None))

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Drain unwanted node sets, and remove the records of those removed before."""
        return UpdateResult(self._free(news, olds))

    def _free(self, news: Mapping[str, Any], olds: Mapping[str, Any] | None) -> dict[str, Any]:
        inputs = RemovedNodeSetsInputs.of(news, olds)
        removal = self._removal(news, inputs, olds)
        uid = inputs.uid(removal.kube)
        removal.free()
        return {**news, "namespace_uid": uid, _FORMER: removal.remaining()}

    def _removal(
        self, news: Mapping[str, Any], inputs: RemovedNodeSetsInputs, olds: Mapping[str, Any] | None
    ) -> NodeSetRemoval:
        former = {} if olds is None else {**olds.get(_FORMER, {}), **olds["policies"]}
        gone = {name: policy for name, policy in former.items() if name not in inputs.policies}
        kube = self.kube(news)
        context = DrainContext.at(kube, inputs, report, MachineClock())
        return NodeSetRemoval(kube, inputs, context, inputs.policies.keys(), gone, news.get("slurm_files"))


class RemovedNodeSets(LiveResource, module="soperator", name="RemovedNodeSets"):
    """The node sets that left the spec, drained and free of jobs."""

    def __init__(
        self,
        resource_name: str,
        *,
        cluster: ClusterConnection,
        policies: Mapping[str, Mapping[str, Any]],
        replicas: Mapping[str, int],
        slurm_files: Mapping[str, str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the resource.

        Args:
            resource_name: Name of the resource.
            cluster: The cluster, with the labels of its worker pods.
            policies: `drain` of the spec's node sets, as JSON, by their names.
            replicas: Numbers of their nodes, by which policies judge the later removal of a node set.
            slurm_files: Slurm's files as wanted: no node is drained for a change of files that would be refused.
            opts: Options of the resource.
        """
        inputs = {
            "policies": {name: {**policy} for name, policy in policies.items()},
            "replicas": {**replicas},
            "slurm_files": {**slurm_files},
        }
        super().__init__(RemovedNodeSetsProvider(), resource_name, cluster, inputs, opts)
