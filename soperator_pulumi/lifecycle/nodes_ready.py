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
        replicas: int,
        selector: Mapping[str, str],
        timeout_seconds: int,
        connection: Connection,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {
            "namespace": namespace,
            "node_set": node_set,
            "replicas": replicas,
            "selector": {**selector},
            "timeout_seconds": timeout_seconds,
            **connection.inputs(),
        }
        super().__init__(NodesReadyProvider(), resource_name, inputs, opts)
