"""The resource before a node set's StatefulSet: the nodes that the set is to lose are free when it lets it go on."""

from collections.abc import Mapping
from typing import Any

import pulumi

from soperator_pulumi.lifecycle.connection import Connection
from soperator_pulumi.lifecycle.provider import LiveProvider


class NodeDrainProvider(LiveProvider):
    """Drain on create and update what the live node set has too many."""


class NodeDrain(pulumi.dynamic.Resource, module="soperator", name="NodeDrain"):
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
