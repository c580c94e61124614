"""The resource after a node set's StatefulSet that is there as soon as pods can be: none goes while a job is on it.

It waits for nothing when it is created, so that it is recorded also when nodes never join and the deployment fails.

Whatever makes Pulumi replace the StatefulSet (a transform of the program's, `--target-replace`, a field that cannot be
changed in place), Pulumi asks before it deletes the old one what cannot stay without it. The guard cannot: it is
deleted first, and made anew afterwards.
"""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, UpdateResult

from soperator_pulumi.lifecycle.connection import Connection
from soperator_pulumi.lifecycle.provider import LiveProvider
from soperator_pulumi.lifecycle.resource import LiveResource
from soperator_pulumi.lifecycle.unknown import has_unknown
from soperator_pulumi.operations.holder import require_held
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.nodes.drain_all import drain_all
from soperator_pulumi.operations.progress import MachineClock, say
from soperator_pulumi.slurm.drain.reason import Operation

_STATEFUL_SET = "stateful_set"
"""Input that is not known where the StatefulSet is replaced."""

_COMPARED = (_STATEFUL_SET, "namespace", "namespace_uid", "owner", "component", "node_set", "selector", "policy")


class NodeSetGuardProvider(LiveProvider):
    """Record on create and update. Deleting drains all nodes of the set, and fails when they are not free."""

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Compare with what is recorded: only a delete looks at the cluster."""
        if has_unknown(news.get(_STATEFUL_SET)) and olds.get(_STATEFUL_SET):
            return DiffResult(changes=True, replaces=[_STATEFUL_SET], delete_before_replace=True)
        return DiffResult(changes=has_unknown(news) or any(olds.get(key) != news.get(key) for key in _COMPARED))

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Record."""
        place = ClusterRef.model_validate(props)
        return CreateResult(f"{place.namespace}/{props['node_set']}", {**props})

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Record."""
        return UpdateResult({**news})

    def delete(self, _id: str, props: dict[str, Any]) -> None:
        """Drain all nodes of the set.

        Raises:
            DrainError: they are not free, or another component holds the cluster: its StatefulSet must not be deleted.
        """
        policies = {str(props["node_set"]): props.get("policy") or {}}
        place, kube = ClusterRef.model_validate(props), self.kube(props)
        require_held(kube, place.namespace, place.component, place.cluster)
        drain_all(kube, place, policies, Operation.REMOVAL, say=say, clock=MachineClock())


class NodeSetGuard(LiveResource, module="soperator", name="NodeSetGuard"):
    """The nodes of one node set, drained and free of jobs before its StatefulSet is deleted."""

    def __init__(
        self,
        resource_name: str,
        *,
        namespace: str,
        namespace_uid: pulumi.Input[str],
        owner: str,
        component: pulumi.Input[str],
        node_set: str,
        stateful_set: pulumi.Input[str],
        selector: Mapping[str, str],
        policy: Mapping[str, Any],
        connection: Connection,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register it.

        Args:
            resource_name: its name.
            namespace: where the node set is.
            namespace_uid: the namespace's UID: another namespace of the same name is not acted on.
            owner: stack and component that the cluster belongs to, as on its objects.
            component: URN of the component that the cluster is.
            node_set: its name, and the StatefulSet's.
            stateful_set: id of the StatefulSet.
            selector: labels of the node set's pods.
            policy: `node_set.drain` as JSON.
            connection: which Kubernetes it is.
            opts: its options.
        """
        inputs = {
            "namespace": namespace,
            "namespace_uid": namespace_uid,
            "owner": owner,
            "component": component,
            "node_set": node_set,
            _STATEFUL_SET: stateful_set,
            "selector": {**selector},
            "policy": {**policy},
            **connection.inputs(),
        }
        super().__init__(NodeSetGuardProvider(), resource_name, inputs, opts)
