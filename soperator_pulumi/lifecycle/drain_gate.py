"""The resource that is deleted first: no node of the cluster holds a job when anything else is deleted."""

from collections.abc import Mapping
from typing import Any

from pulumi.dynamic import CreateResult, DiffResult, UpdateResult

from soperator_pulumi.lifecycle.all_node_sets import AllNodeSets
from soperator_pulumi.lifecycle.pinned_provider import PinnedProvider
from soperator_pulumi.lifecycle.unknown import has_unknown
from soperator_pulumi.operations.holder import hold, release, require_held
from soperator_pulumi.operations.nodes.drain_all import NodeSetsInputs, drain_all
from soperator_pulumi.operations.nodes.live_node_set import OWNER_LABEL
from soperator_pulumi.operations.progress import MachineClock, say
from soperator_pulumi.slurm.drain.reason import Operation


class DrainGateProvider(PinnedProvider):
    """Record on create and update. Deleting drains all node sets, or puts all back and fails."""

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Compare what is recorded: nothing is looked at, as nothing is done.

        A namespace that Pulumi replaces takes all pods with it: the gate is deleted before.
        """
        if has_unknown(news.get("namespace_uid")) and olds.get("namespace_uid"):
            return DiffResult(changes=True, replaces=["namespace_uid"], delete_before_replace=True)
        return DiffResult(
            changes=has_unknown(news) or NodeSetsInputs.of(news, olds) != NodeSetsInputs.model_validate(olds)
        )

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Record the namespace, and hold the cluster."""
        return CreateResult(f"{props['namespace']}/drain-gate", self._record(props, None))

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Record the namespace, and hold the cluster."""
        return UpdateResult(self._record(news, olds))

    def delete(self, _id: str, props: dict[str, Any]) -> None:
        """Free all nodes of the cluster, in one pass.

        Raises:
            DrainError: they are not free, or another component holds the cluster: nothing of it must be deleted.
        """
        place = NodeSetsInputs.model_validate(props)
        kube = self.kube(props)
        require_held(kube, place.namespace, place.component, place.cluster)
        drain_all(kube, place, place.policies, Operation.DESTROY, say=say, clock=MachineClock())
        release(kube, place.namespace, place.component)

    def _record(self, news: Mapping[str, Any], olds: Mapping[str, Any] | None) -> dict[str, Any]:
        place, kube = NodeSetsInputs.of(news, olds), self.kube(news)
        uid = place.uid(kube)
        if place.component:
            hold(kube, place.namespace, place.component, {**place.selector, OWNER_LABEL: place.owner})
        return {**news, "namespace_uid": uid}


class DrainGate(AllNodeSets, module="soperator", name="DrainGate"):
    """All nodes of the cluster, drained in one pass before anything of it is deleted. It depends on all else."""

    acts = DrainGateProvider
