"""Objects whose created fields apply takes over while controllers change them."""

import asyncio
import secrets
from collections.abc import Mapping

import pytest
from pulumi.provider.experimental import provider as api

from tests import left_behind
from tests.conftest import Kubernetes
from tools.engine.kubernetes import objects, provider_settings
from tools.engine.kubernetes.api_client import JSON_PATCH, ApiConnection, Object
from tools.engine.kubernetes.provider_settings import settings_of
from tools.engine.local.providers.kubernetes_provider import KubernetesProvider
from tools.engine.values import properties_of

pytestmark = pytest.mark.engine

URN = "urn:pulumi:s::p::kubernetes:core/v1:Namespace::taken-over"


class ChangedByOthers(ApiConnection):
    """A connection to objects that change right before the first patches."""

    times_left = 2

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Object:
        if content_type == JSON_PATCH and self.times_left:
            self.times_left -= 1
            change = {"metadata": {"labels": {"changed": str(self.times_left)}}}
            await super().request("PATCH", path, change, content_type="application/merge-patch+json")
        return await super().request(method, path, body, content_type=content_type, query=query)


async def update_of_a_changing_object(kubernetes: Kubernetes, name: str) -> Object:
    """Create a namespace, change its label as others change it too, and return it as it is then."""
    environment = {"KUBECONFIG": str(kubernetes.kubeconfig)}
    settings = settings_of({"context": kubernetes.target.context} if kubernetes.target.context else {})
    provider = KubernetesProvider(settings, environment, "tests", lambda _urn, _line: None)
    provider._connection = ChangedByOthers(provider_settings.load(settings, environment))
    inputs = [
        properties_of({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"mine": value}}})
        for value in ("1", "2")
    ]
    try:
        made = await provider.create(api.CreateRequest(URN, inputs[0], 0, preview=False))
        request = api.UpdateRequest(URN, made.resource_id or "", made.properties, inputs[1], 0, [], preview=False)
        updated = await provider.update(request)
    finally:
        await provider.close()
    return objects.to_object(updated.properties)


def test_an_object_that_others_change_at_the_same_time_is_updated(kubernetes: Kubernetes) -> None:
    name = left_behind.record(f"engine-taken-over-{secrets.token_hex(3)}")
    try:
        found = asyncio.run(update_of_a_changing_object(kubernetes, name))
    finally:
        kubernetes.throw_away(name)

    assert found["metadata"]["labels"] | {"mine": "2", "changed": "0"} == found["metadata"]["labels"]
