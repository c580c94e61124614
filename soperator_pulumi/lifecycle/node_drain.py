"""The resource before a node set's StatefulSet: it drains the nodes that the set will lose before the set shrinks."""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.dynamic import CheckResult, CreateResult, DiffResult, ReadResult, UpdateResult

from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.lifecycle.connection import ClusterConnection
from soperator_pulumi.lifecycle.provider import PinnedProvider, has_unknown
from soperator_pulumi.lifecycle.resource import LiveResource
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.nodes.live_node_set import LiveNodeSet
from soperator_pulumi.operations.nodes.scale_down import NodeSetSize, ScaleDown
from soperator_pulumi.operations.progress import MachineClock, report


class NodeDrainInputs(ClusterRef):
    """The wanted state of a node set. Numbers arrive as floats."""

    node_set: str
    replicas: int
    identity: str
    """Text that changes when Pulumi would replace the StatefulSet."""
    policy: dict[str, Any]

    @property
    def size(self) -> NodeSetSize:
        """The node set's wanted size, with everything that decides how to reach it."""
        return NodeSetSize(self, self.node_set, self.replicas, self.identity, self.policy)


_BEFORE = "replicas_before"


def with_replicas_before(olds: Mapping[str, Any], news: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs with the recorded number of nodes as `replicas_before`; a new node set has no such input.

    Policies need it, as they see inputs but no state. It is not part of `NodeDrainInputs`, so a change of it alone
    causes no update.
    """
    before = olds.get("replicas")
    return {**news} if before is None else {**news, _BEFORE: before}


class NodeDrainProvider(PinnedProvider):
    """Drain surplus nodes on create and update. Delete removes the records of nodes whose pods are gone."""

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        """Add the previous number of nodes, for policies on scale-down."""
        return super().check(olds, with_replicas_before(olds, news))

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Compare with the live node set, and print what will happen to its nodes."""
        if has_unknown(news):
            return DiffResult(changes=True)
        inputs, recorded = NodeDrainInputs.of(news, olds), NodeDrainInputs.model_validate(olds)
        try:
            acts = ScaleDown(self.recent(news), inputs.size, recorded.size, report, MachineClock()).preview()
        except KubernetesError as error:
            report(f"{inputs.cluster}/{inputs.node_set}: cannot read its nodes: {error}")
            acts = True
        return DiffResult(changes=acts or inputs != recorded)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """Record the live size, so that the next diff can tell changes made outside Pulumi from Pulumi's own."""
        inputs = NodeDrainInputs.model_validate(props)
        try:
            kube = self.recent(props)
            inputs.uid(kube)
            live = LiveNodeSet.read(kube, inputs, inputs.node_set)
        except KubernetesError as error:
            report(f"{inputs.cluster}/{inputs.node_set}: cannot read its size: {error}")
            return ReadResult(id_, props)
        return ReadResult(id_, {**props, "replicas": live.replicas} if live.stateful_set else props)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Drain surplus nodes: the node set may be older than this resource."""
        return CreateResult(f"{props['namespace']}/{props['node_set']}", self._apply(props, None))

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Drain surplus nodes, and undrain those that are wanted again."""
        return UpdateResult(self._apply(news, olds))

    def delete(self, _id: str, props: dict[str, Any]) -> None:
        """Remove the records of the nodes: the StatefulSet has been deleted before."""
        size = NodeDrainInputs.model_validate(props).size
        ScaleDown(self.kube(props), size, size, report, MachineClock()).clean_up()

    def _apply(self, news: Mapping[str, Any], olds: Mapping[str, Any] | None) -> dict[str, Any]:
        size = NodeDrainInputs.of(news, olds).size
        recorded = None if olds is None else NodeDrainInputs.model_validate(olds).size
        uid, replicas = ScaleDown(self.kube(news), size, recorded, report, MachineClock()).free()
        kept = {key: value for key, value in news.items() if key != _BEFORE}  # only for this run
        return {**kept, "namespace_uid": uid, "replicas": replicas}


class NodeDrain(LiveResource, module="soperator", name="NodeDrain"):
    """The nodes that a node set will lose, drained and free of jobs."""

    replicas: pulumi.Output[int]
    """Number of nodes that the StatefulSet may have now: the wanted number, plus nodes that are not free yet if
    `drain.wait` is off."""

    namespace_uid: pulumi.Output[str]
    """UID of the namespace: no resource acts on another namespace of the same name."""

    def __init__(
        self,
        resource_name: str,
        *,
        cluster: ClusterConnection,
        node_set: str,
        replicas: pulumi.Input[int],
        identity: pulumi.Input[str],
        policy: Mapping[str, Any],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the resource.

        Args:
            resource_name: Name of the resource.
            cluster: The cluster, with the labels of the node set's pods.
            node_set: Name of the node set, and of its StatefulSet.
            replicas: Wanted number of nodes.
            identity: Text that changes when Pulumi would replace the StatefulSet, which carries it in the annotation
                `IDENTITY_ANNOTATION`.
            policy: `node_set.drain` as JSON.
            opts: Options of the resource.
        """
        inputs = {"node_set": node_set, "replicas": replicas, "identity": identity, "policy": {**policy}}
        super().__init__(NodeDrainProvider(), resource_name, cluster, inputs, opts)
