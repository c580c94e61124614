"""The resource before a node set's StatefulSet: the nodes that the set is to lose are free when it lets it go on."""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, UpdateResult

from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.lifecycle.connection import Connection
from soperator_pulumi.lifecycle.pinned_provider import PinnedProvider
from soperator_pulumi.lifecycle.resource import LiveResource
from soperator_pulumi.lifecycle.unknown import has_unknown
from soperator_pulumi.operations.nodes.scale_down import ScaleDown, Wanted
from soperator_pulumi.operations.progress import MachineClock, say


class NodeDrainProvider(PinnedProvider):
    """Drain on create and update what the live node set has too many. Delete records of nodes whose pods are gone."""

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Compare with the live node set, and print what will happen to its nodes."""
        if has_unknown(news):
            return DiffResult(changes=True)
        wanted, recorded = Wanted.of(news, olds), Wanted.model_validate(olds)
        try:
            acts = ScaleDown(self.recent(news), wanted, recorded, say, MachineClock()).preview()
        except KubernetesError as error:
            say(f"{wanted.cluster}/{wanted.node_set}: its nodes cannot be looked at: {error}")
            acts = True
        return DiffResult(changes=acts or wanted != recorded)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Drain what there is too many: the node set may be older than this resource."""
        return CreateResult(f"{props['namespace']}/{props['node_set']}", self._apply(props, None))

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Drain what there is too many, and put back what is wanted again."""
        return UpdateResult(self._apply(news, olds))

    def delete(self, _id: str, props: dict[str, Any]) -> None:
        """Remove the records of the nodes: the StatefulSet has been deleted before."""
        wanted = Wanted.model_validate(props)
        ScaleDown(self.kube(props), wanted, wanted, say, MachineClock()).clean_up()

    def _apply(self, news: Mapping[str, Any], olds: Mapping[str, Any] | None) -> dict[str, Any]:
        wanted = Wanted.of(news, olds)
        recorded = None if olds is None else Wanted.model_validate(olds)
        uid, replicas = ScaleDown(self.kube(news), wanted, recorded, say, MachineClock()).free()
        return {**news, "namespace_uid": uid, "replicas": replicas}


class NodeDrain(LiveResource, module="soperator", name="NodeDrain"):
    """The nodes that a node set is to lose, drained and free of jobs."""

    replicas: pulumi.Output[int]
    """How many nodes the StatefulSet may have now: those that are wanted, and more while some are not free and
    `drain.wait` is off."""

    namespace_uid: pulumi.Output[str]
    """UID of the namespace: another namespace of the same name is not acted on."""

    def __init__(
        self,
        resource_name: str,
        *,
        namespace: str,
        namespace_uid: pulumi.Input[str] | None,
        owner: str,
        node_set: str,
        replicas: pulumi.Input[int],
        selector: Mapping[str, str],
        identity: pulumi.Input[str],
        policy: Mapping[str, Any],
        connection: Connection,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register it.

        Args:
            resource_name: its name.
            namespace: where the node set is.
            namespace_uid: the namespace's UID; None to record the one that is found.
            owner: stack and component that the cluster belongs to, as on its objects.
            node_set: its name, and the StatefulSet's.
            replicas: how many nodes are wanted.
            selector: labels of the node set's pods.
            identity: what is another text when Pulumi would replace the StatefulSet; also on it, as the annotation
                `IDENTITY_ANNOTATION`.
            policy: `node_set.drain` as JSON.
            connection: which Kubernetes it is.
            opts: its options.
        """
        inputs = {
            "namespace": namespace,
            "namespace_uid": namespace_uid,
            "owner": owner,
            "node_set": node_set,
            "replicas": replicas,
            "selector": {**selector},
            "identity": identity,
            "policy": {**policy},
            **connection.inputs(),
        }
        super().__init__(NodeDrainProvider(), resource_name, inputs, opts)
