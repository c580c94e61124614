"""The resource after a node set's StatefulSet: it is up to date when the nodes have joined Slurm."""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, UpdateResult
from pydantic import BaseModel, ConfigDict

from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.lifecycle.connection import Connection
from soperator_pulumi.lifecycle.joining import Joining, named
from soperator_pulumi.lifecycle.progress import MachineClock, say
from soperator_pulumi.lifecycle.provider import LiveProvider, has_unknown


class NodeSetSize(BaseModel):
    """What is waited for. Numbers arrive as floats."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    namespace: str
    node_set: str
    replicas: int
    selector: dict[str, str]
    """Labels of the node set's pods."""
    timeout_seconds: int


class NodesReadyProvider(LiveProvider):
    """Wait on create and update. Deleting removes nothing: the StatefulSet's pods go with it."""

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Compare with who is there now."""
        if has_unknown(news):
            return DiffResult(changes=True)
        wanted, recorded = NodeSetSize.model_validate(news), NodeSetSize.model_validate(olds)
        if wanted != recorded:
            return DiffResult(changes=True)
        try:
            joining = self._joining(news, wanted)
            roll = joining.roll(wanted.replicas)
            outdated = joining.outdated()
        except KubernetesError as error:
            say(f"{wanted.node_set}: its nodes cannot be looked at: {error}")
            return DiffResult(changes=True)
        if roll.missing:
            say(f"{wanted.node_set}: {roll.joined} of {roll.size} nodes have joined")
            for line in roll.lines():
                say(f"  {line}")
        if outdated:
            say(
                f"{wanted.node_set}: {named(outdated)} still as before the last change of the pods' template. "
                "A pod takes the new one when it is deleted: drain its node first."
            )
        return DiffResult(changes=bool(roll.missing))

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Wait for the nodes."""
        wanted = self._wait(props)
        return CreateResult(f"{wanted.namespace}/{wanted.node_set}", {**props})

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Wait for the nodes."""
        self._wait(news)
        return UpdateResult({**news})

    def _wait(self, props: Mapping[str, Any]) -> NodeSetSize:
        wanted = NodeSetSize.model_validate(props)
        self._joining(props, wanted).wait(wanted.replicas, wanted.timeout_seconds)
        return wanted

    def _joining(self, props: Mapping[str, Any], wanted: NodeSetSize) -> Joining:
        return Joining(
            self.kube(props),
            namespace=wanted.namespace,
            node_set=wanted.node_set,
            selector=wanted.selector,
            say=say,
            clock=MachineClock(),
        )


class NodesReady(pulumi.dynamic.Resource, module="soperator", name="NodesReady"):
    """The nodes of one node set, joined to Slurm."""

    def __init__(
        self,
        resource_name: str,
        *,
        namespace: str,
        node_set: str,
        replicas: pulumi.Input[int],
        selector: Mapping[str, str],
        timeout_seconds: int,
        connection: Connection,
        namespace_uid: pulumi.Input[str] = "",
        owner: str = "",
        template: pulumi.Input[str] = "",
        policy: Mapping[str, Any] | None = None,
        rolling_update: Mapping[str, Any] | None = None,
        max_unready: int | str = 0,
        wait_until_ready: bool = True,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Describe what is waited for.

        Args:
            resource_name: Name of the resource.
            namespace: Where the node set is.
            namespace_uid: UID of that namespace, by which a cluster of the same names is told apart.
            owner: The cluster, as it stands in the reason of drains of ours.
            node_set: Name of the node set and of its StatefulSet.
            replicas: How many pods the StatefulSet has now.
            selector: Labels of the node set's pods.
            template: Digest of the pods' template: that it changes is seen in a preview.
            timeout_seconds: How long new nodes may take to join.
            max_unready: How many may be missing then: a number or a percentage.
            wait_until_ready: Whether nodes are waited for at all.
            policy: The node set's `drain`, as JSON.
            rolling_update: The node set's `rolling_update`, as JSON.
            connection: The cluster.
            opts: Options of the resource.
        """
        inputs = {
            "namespace": namespace,
            "namespace_uid": namespace_uid,
            "owner": owner,
            "node_set": node_set,
            "replicas": replicas,
            "selector": {**selector},
            "template": template,
            "timeout_seconds": timeout_seconds,
            "max_unready": max_unready,
            "wait_until_ready": wait_until_ready,
            "policy": {**(policy or {})},
            "rolling_update": {**(rolling_update or {})},
            **connection.inputs(),
        }
        super().__init__(NodesReadyProvider(), resource_name, inputs, opts)
