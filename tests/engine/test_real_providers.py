"""The real pulumi-random and pulumi-kubernetes give the answers that the local engine's are compared with."""

import asyncio
import json
import os
import shutil
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio
import pytest
from pulumi.provider.experimental import provider as api
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from tests.conftest import Kubernetes
from tests.unit.tools.engine.local.providers import kubernetes_cases, random_cases
from tools.console import UserError
from tools.engine.kubernetes import objects
from tools.engine.local.providers.local_provider import LocalProvider
from tools.engine.values import from_struct, to_struct

pytestmark = pytest.mark.engine

RANDOM, KUBERNETES = "pulumi-resource-random", "pulumi-resource-kubernetes"
NO_ENGINE = "127.0.0.1:1"
"""Address of an engine for the plugin to log to: nothing listens there."""
_SECONDS = 60


class RealProvider(LocalProvider):
    """Asks the plugin, with every field that it answers."""

    def __init__(self, plugin: provider_pb2_grpc.ResourceProviderStub) -> None:
        self._plugin: Any = plugin

    async def check(self, request: api.CheckRequest) -> api.CheckResponse:
        answer = await self._ask(
            "Check",
            provider_pb2.CheckRequest(
                urn=request.urn, olds=to_struct(request.old_inputs), news=to_struct(request.new_inputs),
                randomSeed=request.random_seed,
            ),
        )  # fmt: skip
        failures = [api.CheckFailure(failure.property, failure.reason) for failure in answer.failures]
        return api.CheckResponse(from_struct(answer.inputs), failures)

    async def create(self, request: api.CreateRequest) -> api.CreateResponse:
        answer = await self._ask(
            "Create",
            provider_pb2.CreateRequest(
                urn=request.urn, properties=to_struct(request.properties), preview=request.preview
            ),
        )
        return api.CreateResponse(resource_id=answer.id, properties=from_struct(answer.properties))

    async def diff(self, request: api.DiffRequest) -> api.DiffResponse:
        kept = request.old_state.get(objects.INPUTS)
        before = kept.value if kept is not None and isinstance(kept.value, Mapping) else None
        answer = await self._ask(
            "Diff",
            provider_pb2.DiffRequest(
                id=request.resource_id, urn=request.urn, olds=to_struct(request.old_state),
                news=to_struct(request.new_inputs), old_inputs=None if before is None else to_struct(before),
            ),
        )  # fmt: skip
        return api.DiffResponse(
            changes=answer.changes == provider_pb2.DiffResponse.DIFF_SOME,
            replaces=list(answer.replaces),
            delete_before_replace=answer.deleteBeforeReplace,
            diffs=list(answer.diffs),
            detailed_diff={
                path: api.PropertyDiff(api.PropertyDiffKind(found.kind), found.inputDiff)
                for path, found in answer.detailedDiff.items()
            },
        )

    async def update(self, request: api.UpdateRequest) -> api.UpdateResponse:
        answer = await self._ask(
            "Update",
            provider_pb2.UpdateRequest(
                id=request.resource_id, urn=request.urn, olds=to_struct(request.olds), news=to_struct(request.news)
            ),
        )
        return api.UpdateResponse(properties=from_struct(answer.properties))

    async def _ask(self, method: str, message: object) -> Any:
        try:
            return await getattr(self._plugin, method)(message, timeout=_SECONDS)
        except grpc.aio.AioRpcError as error:
            raise UserError(error.details()) from None


@asynccontextmanager
async def running_plugin(name: str, variables: Mapping[str, str]) -> AsyncIterator[RealProvider]:
    process = await asyncio.create_subprocess_exec(name, NO_ENGINE, stdout=PIPE)
    try:
        assert process.stdout is not None
        port = int(await asyncio.wait_for(process.stdout.readline(), _SECONDS))
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            plugin = provider_pb2_grpc.ResourceProviderStub(channel)
            request = provider_pb2.ConfigureRequest(acceptSecrets=True, acceptResources=True, variables=variables)
            await plugin.Configure(request)
            yield RealProvider(plugin)
    finally:
        process.kill()
        await process.wait()


async def random_answers() -> dict[str, Any]:
    async with running_plugin(RANDOM, {}) as provider:
        return {name: await random_cases.answers(provider, case) for name, case in random_cases.CASES.items()}


async def kubernetes_answers(variables: Mapping[str, str]) -> dict[str, Any]:
    async with running_plugin(KUBERNETES, variables) as provider:
        return {name: await kubernetes_cases.answers(provider, case) for name, case in kubernetes_cases.CASES.items()}


@pytest.mark.skipif(not shutil.which(RANDOM), reason=f"{RANDOM} is not on PATH")
def test_the_real_provider_of_random_answers_as_recorded() -> None:
    found = asyncio.run(random_answers())
    if os.environ.get("RECORD"):
        random_cases.RECORDED.write_text(random_cases.written(found))
    assert found == json.loads(random_cases.RECORDED.read_text())


@pytest.mark.skipif(not shutil.which(KUBERNETES), reason=f"{KUBERNETES} is not on PATH")
def test_the_real_provider_of_kubernetes_answers_as_recorded(kubernetes: Kubernetes) -> None:
    variables = {"kubernetes:config:kubeconfig": kubernetes.kubeconfig.read_text()}
    found = asyncio.run(kubernetes_answers(variables))
    if os.environ.get("RECORD"):
        kubernetes_cases.RECORDED.write_text(kubernetes_cases.written(found))
    assert found == json.loads(kubernetes_cases.RECORDED.read_text())
