"""The resource that is deleted before nodes are: its deletion drains the nodes, so that no later deletion hits a job.

Every node set's StatefulSet has one, and the whole cluster has one. Creating it waits for nothing, so that it is
recorded even if nodes never join and the deployment fails.

Whenever Pulumi replaces a StatefulSet (for a transformation in the program, `--target-replace`, or a field that cannot
be changed in place), it first deletes every resource that cannot exist without the old one. The gate is such a
resource: it is deleted first, and created again afterwards.
"""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, UpdateResult

from soperator_pulumi.errors import KubernetesError, SpecError
from soperator_pulumi.lifecycle.connection import ClusterConnection
from soperator_pulumi.lifecycle.provider import PinnedProvider, has_unknown
from soperator_pulumi.lifecycle.resource import LiveResource
from soperator_pulumi.lifecycle.shown_lines import show_once
from soperator_pulumi.operations.holder import hold, release, require_held
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.nodes.drain_all import drain_all, preview_drain_all
from soperator_pulumi.operations.nodes.live_node_set import OWNER_LABEL
from soperator_pulumi.operations.progress import MachineClock, report
from soperator_pulumi.slurm.drain.reason import Operation

_GUARDS = "guards"


class DrainGateInputs(ClusterRef):
    """The nodes behind a gate."""

    node_set: str = ""
    """The only node set behind the gate; empty for the whole cluster."""
    policies: dict[str, dict[str, Any]]
    """`drain` of the node sets behind the gate, by their names."""
    guards: str | None = None
    """Id of the object whose deletion removes the pods. Not known while Pulumi replaces that object."""


class DrainGateProvider(PinnedProvider):
    """Record the gate on create and update. Delete drains all nodes behind it, or undrains all and fails."""

    def diff(self, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Compare with the recorded inputs. If the gate is replaced, which deletes it, print what that will drain."""
        if has_unknown(news.get(_GUARDS)) and olds.get(_GUARDS):
            show_once(id_, self.preview_delete(olds, Operation.REPLACEMENT))
            return DiffResult(changes=True, replaces=[_GUARDS], delete_before_replace=True)
        return DiffResult(
            changes=has_unknown(news) or DrainGateInputs.of(news, olds) != DrainGateInputs.model_validate(olds)
        )

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Record the namespace. The gate of a whole cluster also records its component as the holder."""
        return CreateResult(f"{props['namespace']}/{props.get('node_set') or 'drain-gate'}", self._record(props, None))

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Record the namespace. The gate of a whole cluster also records its component as the holder."""
        return UpdateResult(self._record(news, olds))

    def delete(self, _id: str, props: dict[str, Any]) -> None:
        """Drain all nodes behind the gate at once, and wait until they hold no job.

        Raises:
            DrainError: the nodes are not free, or another component holds the cluster: nothing of it must be deleted.
        """
        inputs, kube = DrainGateInputs.model_validate(props), self.kube(props)
        operation = Operation.REMOVAL if inputs.node_set else Operation.DESTROY
        require_held(kube, inputs.namespace, inputs.component, inputs.cluster)
        drain_all(kube, inputs, inputs.policies, operation, report=report, clock=MachineClock())
        if not inputs.node_set:
            release(kube, inputs.namespace, inputs.component)

    def preview_delete(self, props: dict[str, Any], operation: Operation = Operation.DESTROY) -> list[str]:
        """Return what deleting a recorded gate would drain, in lines: nodes, their jobs, and when these end.

        Pulumi calls a resource's provider for a deletion only when it deletes it, so previews call this method. It only
        reads.
        """
        inputs = DrainGateInputs.model_validate(props)
        try:
            kube = self.kube(self.newest(props))
            return preview_drain_all(kube, inputs, inputs.policies, operation, report=report, clock=MachineClock())
        except (KubernetesError, SpecError) as error:
            return [f"{inputs.cluster}: cannot read its nodes and jobs: {error}"]

    def _record(self, news: Mapping[str, Any], olds: Mapping[str, Any] | None) -> dict[str, Any]:
        inputs, kube = DrainGateInputs.of(news, olds), self.kube(news)
        uid = inputs.uid(kube)
        if inputs.component and not inputs.node_set:
            hold(kube, inputs.namespace, inputs.component, {**inputs.selector, OWNER_LABEL: inputs.owner})
        return {**news, "namespace_uid": uid}


class DrainGate(LiveResource, module="soperator", name="DrainGate"):
    """Nodes of one node set or of the whole cluster, drained before anything that they need is deleted."""

    namespace_uid: pulumi.Output[str]
    """UID of the namespace: no resource acts on another namespace of the same name."""

    def __init__(
        self,
        resource_name: str,
        *,
        cluster: ClusterConnection,
        policies: Mapping[str, Mapping[str, Any]],
        guards: pulumi.Input[str] | None,
        node_set: str = "",
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the resource.

        Args:
            resource_name: Name of the resource.
            cluster: The cluster, with the labels of the worker pods behind the gate.
            policies: `drain` of the node sets behind the gate, as JSON, by their names.
            guards: Id of the object whose deletion removes the pods; None if this program has no such object.
            node_set: The only node set behind the gate; empty for the whole cluster.
            opts: Options of the resource.
        """
        inputs = {
            "node_set": node_set,
            "policies": {name: {**policy} for name, policy in policies.items()},
            _GUARDS: guards,
        }
        super().__init__(DrainGateProvider(), resource_name, cluster, inputs, opts)
