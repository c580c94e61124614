"""The resource after a StatefulSet whose pods Kubernetes replaces: up to date when all are new and ready.

Pulumi could wait for such a StatefulSet itself, but all that depends on it would wait with it, and it would say less.
"""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, UpdateResult
from pydantic import BaseModel, ConfigDict

from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.lifecycle.connection import Connection
from soperator_pulumi.lifecycle.provider import LiveProvider
from soperator_pulumi.lifecycle.resource import LiveResource
from soperator_pulumi.lifecycle.unknown import has_unknown
from soperator_pulumi.operations.progress import MachineClock, say
from soperator_pulumi.operations.rollout import Rollout

TIMEOUT_SECONDS = 600
"""As Pulumi waits for a StatefulSet by default; pulls a large image and brings up a machine of most clouds."""


class Watched(BaseModel):
    """What is waited for."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    namespace: str
    stateful_set: str
    selector: dict[str, str]
    """Labels of its pods."""


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
            say(line)
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
        watched = Watched.model_validate(props)
        return Rollout(self.kube(props), watched.namespace, watched.stateful_set, watched.selector, say, MachineClock())


class PodsReady(LiveResource, module="soperator", name="PodsReady"):
    """The pods of one StatefulSet, all of its newest template and ready."""

    def __init__(
        self,
        resource_name: str,
        *,
        namespace: str,
        stateful_set: str,
        selector: Mapping[str, str],
        connection: Connection,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {
            "namespace": namespace,
            "stateful_set": stateful_set,
            "selector": {**selector},
            **connection.inputs(),
        }
        super().__init__(PodsReadyProvider(), resource_name, inputs, opts)
