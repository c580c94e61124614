"""The resource after a StatefulSet whose pods Kubernetes replaces: up to date when all pods are new and ready.

Pulumi could wait for the StatefulSet, but would report less, and all dependent resources would wait as well.
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


class PodsReadyInputs(ClusterRef):
    """The StatefulSet to wait for; the selector has the labels of its pods."""

    stateful_set: str
    timeout_seconds: float = 600
    """Time for the pods to become ready, in seconds. Older states have no value."""


class PodsReadyProvider(LiveProvider):
    """Wait on create and update. Delete removes nothing."""

    def diff(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Compare with the pods as they are now, after all earlier changes of this run."""
        if has_unknown(news):
            return DiffResult(changes=True)
        try:
            lines = self._rollout(news).missing()
        except KubernetesError as error:
            lines = [f"{news['stateful_set']}: cannot read its pods: {error}"]
        for line in lines:
            report(line)
        return DiffResult(changes=bool(lines))

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Wait for the pods."""
        self._wait(props)
        return CreateResult(f"{props['namespace']}/{props['stateful_set']}", {**props})

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Wait for the pods."""
        self._wait(news)
        return UpdateResult({**news})

    def _wait(self, props: Mapping[str, Any]) -> None:
        self._rollout(props).wait(PodsReadyInputs.model_validate(props).timeout_seconds)

    def _rollout(self, props: Mapping[str, Any]) -> Rollout:
        inputs, kube = PodsReadyInputs.model_validate(props), self.kube(props)
        return Rollout(kube, inputs.namespace, inputs.stateful_set, inputs.selector, report, MachineClock())


class PodsReady(LiveResource, module="soperator", name="PodsReady"):
    """The pods of one StatefulSet, all ready and from its newest template."""

    def __init__(
        self,
        resource_name: str,
        *,
        cluster: ClusterConnection,
        stateful_set: str,
        timeout_seconds: int,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the resource.

        Args:
            resource_name: Name of the resource.
            cluster: The cluster, with the labels of the StatefulSet's pods.
            stateful_set: Name of the StatefulSet.
            timeout_seconds: Time for its pods to become ready.
            opts: Options of the resource.
        """
        inputs = {"stateful_set": stateful_set, "timeout_seconds": timeout_seconds}
        super().__init__(PodsReadyProvider(), resource_name, cluster, inputs, opts)
