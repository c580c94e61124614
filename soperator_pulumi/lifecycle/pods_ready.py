"""The resource after a StatefulSet whose pods Kubernetes replaces: up to date when all are new and ready.

Pulumi could wait for such a StatefulSet itself, but all that depends on it would wait with it, and it would say less.
"""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, UpdateResult

from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.lifecycle.connection import ClusterConnection
from soperator_pulumi.lifecycle.provider import LiveProvider, has_unknown
from soperator_pulumi.lifecycle.resource import LiveResource
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.progress import MachineClock, report
from soperator_pulumi.operations.rollout import Rollout

TIMEOUT_SECONDS = 600
"""As Pulumi waits for a StatefulSet by default; pulls a large image and brings up a machine of most clouds."""


class PodsReadyInputs(ClusterRef):
    """The StatefulSet that is waited for; the selector has the labels of its pods."""

    stateful_set: str


class PodsReadyProvider(LiveProvider):
    """Wait on create and update. Deleting removes nothing."""

    def diff(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Look at the pods as they are now, after whatever this run has changed before."""
        if has_unknown(news):
            return DiffResult(changes=True)
        try:
            lacks = self._rollout(news).lacks()
        except KubernetesError as error:
            lacks = [f"{news['stateful_set']}: its pods cannot be looked at: {error}"]
        for line in lacks:
            report(line)
        return DiffResult(changes=bool(lacks))

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Wait for the pods."""
        self._rollout(props).wait(TIMEOUT_SECONDS)
        return CreateResult(f"{props['namespace']}/{props['stateful_set']}", {**props})

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Wait for the pods."""
        self._rollout(news).wait(TIMEOUT_SECONDS)
        return UpdateResult({**news})

    def _rollout(self, props: Mapping[str, Any]) -> Rollout:
        inputs, kube = PodsReadyInputs.model_validate(props), self.kube(props)
        return Rollout(kube, inputs.namespace, inputs.stateful_set, inputs.selector, report, MachineClock())


class PodsReady(LiveResource, module="soperator", name="PodsReady"):
    """The pods of one StatefulSet, all of its newest template and ready."""

    def __init__(
        self,
        resource_name: str,
        *,
        cluster: ClusterConnection,
        stateful_set: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the resource.

        Args:
            resource_name: Name of the resource.
            cluster: The cluster, with the labels of the StatefulSet's pods.
            stateful_set: Name of the StatefulSet.
            opts: Options of the resource.
        """
        super().__init__(PodsReadyProvider(), resource_name, cluster, {"stateful_set": stateful_set}, opts)
