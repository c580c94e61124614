"""The resource that is deleted first: no node of the cluster holds a job when anything else is deleted."""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, UpdateResult

from soperator_pulumi.lifecycle.connection import Connection
from soperator_pulumi.lifecycle.nodes.emptying import Emptied, empty
from soperator_pulumi.lifecycle.placed_provider import PlacedProvider
from soperator_pulumi.lifecycle.progress import MachineClock, say
from soperator_pulumi.lifecycle.unknown import has_unknown
from soperator_pulumi.slurm.marker import Operation


class DrainGateProvider(PlacedProvider):
    """Record on create and update. Deleting drains all node sets, or puts all back and fails."""

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Compare what is recorded: nothing is looked at, as nothing is done."""
        return DiffResult(changes=has_unknown(news) or Emptied.of(news, olds) != Emptied.model_validate(olds))

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Record the namespace."""
        return CreateResult(f"{props['namespace']}/drain-gate", self._record(props, None))

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Record the namespace."""
        return UpdateResult(self._record(news, olds))

    def delete(self, _id: str, props: dict[str, Any]) -> None:
        """Free all nodes of the cluster, in one pass."""
        place = Emptied.model_validate(props)
        kube = self.kube(props, deleting=True)
        empty(kube, place, place.policies, Operation.DESTROY, say=say, clock=MachineClock())

    def _record(self, news: Mapping[str, Any], olds: Mapping[str, Any] | None) -> dict[str, Any]:
        return {**news, "namespace_uid": Emptied.of(news, olds).uid(self.kube(news))}


class DrainGate(pulumi.dynamic.Resource, module="soperator", name="DrainGate"):
    """All nodes of the cluster, drained in one pass before anything of it is deleted. It depends on all else."""

    def __init__(
        self,
        resource_name: str,
        *,
        namespace: str,
        namespace_uid: pulumi.Input[str] | None,
        owner: str,
        selector: Mapping[str, str],
        policies: Mapping[str, Mapping[str, Any]],
        connection: Connection,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register it.

        Args:
            resource_name: its name.
            namespace: where the cluster is.
            namespace_uid: the namespace's UID; None to record the one that is found.
            owner: stack and component that the cluster belongs to, as on its objects.
            selector: labels of the worker pods of all node sets.
            policies: each node set's `drain` as JSON, by the node set's name.
            connection: which Kubernetes it is.
            opts: its options.
        """
        inputs = {
            "namespace": namespace,
            "namespace_uid": namespace_uid,
            "owner": owner,
            "selector": {**selector},
            "policies": {name: {**policy} for name, policy in policies.items()},
            **connection.inputs(),
        }
        super().__init__(DrainGateProvider(), resource_name, inputs, opts)
