# ruff: noqa: N802, ARG002 - names and signatures are gRPC's
"""Server of the plugin, which the engine calls.

The SDK's `ProviderServicer` handles components. Resources that act on a live cluster are handled here, by the providers
that also serve them as dynamic resources. Every operation has a thread, as it may take hours.
"""

import argparse
import asyncio
import contextvars
import json
import os
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import grpc
import grpc.aio
from google.protobuf import empty_pb2
from pulumi.dynamic import Config, ConfigureRequest
from pulumi.errors import RunError
from pulumi.provider.server import ProviderServicer
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, provider_pb2, provider_pb2_grpc
from pydantic import ValidationError

from soperator_pulumi.errors import SoperatorError
from soperator_pulumi.lifecycle.connection import CONTEXT, KUBECONFIG, AccessArgs
from soperator_pulumi.lifecycle.provider import LiveProvider, has_unknown
from soperator_pulumi.operations.progress import CANCELLED, shown_by
from soperator_pulumi.plugin.live_kinds import KINDS, LiveKind
from soperator_pulumi.plugin.package_schema import schema
from soperator_pulumi.plugin.remote_component import CALLER, Caller, RemoteComponents, RemoteProgram
from soperator_pulumi.plugin.wire import read, write

R = TypeVar("R")
Context = grpc.aio.ServicerContext[Any, Any]

_MESSAGE_LIMIT_BYTES = 400 * 2**20
"""The SDK's own limit."""

_THREADS = 256
"""Most simultaneous operations. Every operation on the cluster, and every registered child, holds a thread."""

_PARENT_SECONDS = 1.0
"""Pause between two looks at the parent process."""

_CHANGES = {
    None: provider_pb2.DiffResponse.DIFF_UNKNOWN,
    False: provider_pb2.DiffResponse.DIFF_NONE,
    True: provider_pb2.DiffResponse.DIFF_SOME,
}


class PluginServicer(ProviderServicer):
    """Answers the engine."""

    def __init__(self, engine_address: str) -> None:
        self._components = RemoteComponents()
        super().__init__(self._components, [], engine_address)
        self._kinds = {kind.token: kind for kind in KINDS}
        self._providers = {kind.token: kind.provider() for kind in KINDS}
        self._engine = engine_pb2_grpc.EngineStub(grpc.insecure_channel(engine_address))
        self._threads = ThreadPoolExecutor(_THREADS)
        self._programs: dict[str, RemoteProgram] = {}
        self._reference = ""

    async def GetSchema(
        self, request: provider_pb2.GetSchemaRequest, context: Context
    ) -> provider_pb2.GetSchemaResponse:
        """Return the schema."""
        return provider_pb2.GetSchemaResponse(schema=json.dumps(schema()))

    async def Configure(
        self, request: provider_pb2.ConfigureRequest, context: Context
    ) -> provider_pb2.ConfigureResponse:
        """Store the access from the provider's configuration, and the engine's reference to this process."""
        given, _ = read(request.args)
        self._components.access = AccessArgs(
            **{key: given[key] for key in (KUBECONFIG, CONTEXT) if key in given}  # type: ignore[typeddict-item]
        )
        config = Config({f"soperator:{key}": str(value) for key, value in given.items()}, "soperator")
        for provider in self._providers.values():
            provider.configure(ConfigureRequest(config))
        self._reference = f"{request.urn}::{request.id}" if request.urn and request.id else ""
        return provider_pb2.ConfigureResponse(acceptSecrets=True, acceptResources=True, acceptOutputs=True)

    async def Construct(
        self, request: provider_pb2.ConstructRequest, context: Context
    ) -> provider_pb2.ConstructResponse:
        """Create a component of a program in another language."""
        program = self._programs.setdefault(request.monitorEndpoint, RemoteProgram())
        CALLER.set(Caller(program, self._reference))
        try:
            response: provider_pb2.ConstructResponse = await super().Construct(request, context)
        except RunError as error:
            await context.abort(grpc.StatusCode.UNKNOWN, str(error))
        return response

    async def Check(self, request: provider_pb2.CheckRequest, context: Context) -> provider_pb2.CheckResponse:
        """Check inputs, and fill in missing ones."""
        (olds, _), (news, secret) = read(request.olds), read(request.news)
        kind = await self._kind(request.urn, context)
        if failures := _bad_inputs(kind, news):
            return provider_pb2.CheckResponse(inputs=request.news, failures=failures)
        result = await self._act(request.urn, context, lambda provider: provider.check(olds, news))
        failures = [
            provider_pb2.CheckFailure(property=failure.property, reason=failure.reason) for failure in result.failures
        ]
        return provider_pb2.CheckResponse(inputs=write(result.inputs, secret), failures=failures)

    async def Diff(self, request: provider_pb2.DiffRequest, context: Context) -> provider_pb2.DiffResponse:
        """Compare with the live cluster."""
        (olds, _), (news, _) = read(request.olds), read(request.news)
        result = await self._act(request.urn, context, lambda provider: provider.diff(request.id, olds, news))
        return provider_pb2.DiffResponse(
            changes=_CHANGES[result.changes],
            replaces=result.replaces,
            deleteBeforeReplace=bool(result.delete_before_replace),
        )

    async def Create(self, request: provider_pb2.CreateRequest, context: Context) -> provider_pb2.CreateResponse:
        """Create the resource."""
        given, secret = read(request.properties)
        result = await self._act(request.urn, context, lambda provider: provider.create(given))
        return provider_pb2.CreateResponse(id=result.id, properties=write(result.outs or {}, secret))

    async def Read(self, request: provider_pb2.ReadRequest, context: Context) -> provider_pb2.ReadResponse:
        """Return the properties that a refresh records."""
        recorded, secret = read(request.properties)
        if not recorded:
            words = f"{_name(request.urn)} cannot be imported: SlurmCluster makes it, in `pulumi up`."
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, words)
        result = await self._act(request.urn, context, lambda provider: provider.read(request.id, recorded))
        return provider_pb2.ReadResponse(
            id=result.id or "", properties=write(result.outs or {}, secret), inputs=request.inputs
        )

    async def Update(self, request: provider_pb2.UpdateRequest, context: Context) -> provider_pb2.UpdateResponse:
        """Update the resource in place."""
        (olds, _), (news, secret) = read(request.olds), read(request.news)
        result = await self._act(request.urn, context, lambda provider: provider.update(request.id, olds, news))
        return provider_pb2.UpdateResponse(properties=write(result.outs or {}, secret))

    async def Delete(self, request: provider_pb2.DeleteRequest, context: Context) -> empty_pb2.Empty:
        """Delete the resource."""
        recorded, _ = read(request.properties)
        await self._act(request.urn, context, lambda provider: provider.delete(request.id, recorded))
        return empty_pb2.Empty()

    async def Cancel(self, request: empty_pb2.Empty, context: Context) -> empty_pb2.Empty:
        """End all operations before they wait or act again: they fail, and the next run continues them."""
        CANCELLED.set()
        return empty_pb2.Empty()

    async def _kind(self, urn: str, context: Context) -> LiveKind:
        token = urn.split("::")[2].rpartition("$")[2]
        if token not in self._kinds:
            allowed = ", ".join(sorted(self._kinds))
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, f"there is no resource {token}. There are: {allowed}.")
        return self._kinds[token]

    async def _act(self, urn: str, context: Context, operation: Callable[[LiveProvider], R]) -> R:
        """Run an operation of a resource's provider in a thread, and show its lines with the resource."""
        kind = await self._kind(urn, context)

        def run() -> R:
            with shown_by(partial(self._show, urn)):
                return operation(self._providers[kind.token])

        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, contextvars.copy_context().run, run)
        except SoperatorError as error:
            words = str(error)
        except ValidationError as error:
            words = _bad_state(urn, error)
        except Exception:  # noqa: BLE001 - an error in our code, for whoever reports it
            words = traceback.format_exc()
        await context.abort(grpc.StatusCode.UNKNOWN, words)
        raise AssertionError("abort raises")

    def _show(self, urn: str, text: str) -> None:
        """Show lines with a resource.

        Raises:
            BrokenPipeError: the engine has ended.
        """
        try:
            self._engine.Log(engine_pb2.LogRequest(severity=engine_pb2.INFO, message=text, urn=urn))
        except grpc.RpcError as error:
            raise BrokenPipeError("the engine has ended") from error


def _bad_inputs(kind: LiveKind, inputs: dict[str, Any]) -> list[provider_pb2.CheckFailure]:
    """Return missing inputs and inputs of a wrong type, with their paths. Inputs unknown to a preview are skipped."""
    try:
        kind.inputs.model_validate(inputs)
    except ValidationError as error:
        return [
            provider_pb2.CheckFailure(property=_path(item["loc"]), reason=f"{item['msg']}.")
            for item in error.errors(include_url=False)
            if item["type"] == "missing" or not has_unknown(item["input"])
        ]
    return []


def _bad_state(urn: str, error: ValidationError) -> str:
    """Return a message about recorded properties that this version cannot read, without their values."""
    problems = [f"\n  {_path(item['loc'])}: {item['msg']}." for item in error.errors(include_url=False)]
    return (
        f"{_name(urn)}: the state has properties that this version of the plugin does not accept:{''.join(problems)}\n"
        "Run with the version that has written the state, or correct it: pulumi stack export, pulumi stack import."
    )


def _name(urn: str) -> str:
    return urn.rpartition("::")[2]


def _path(location: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


async def _serve(engine_address: str, parent: int) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS))
    options = [("grpc.max_receive_message_length", _MESSAGE_LIMIT_BYTES), ("grpc.max_send_message_length", -1)]
    server = grpc.aio.server(options=options)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(PluginServicer(engine_address), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    sys.stdout.write(f"{port}\n")  # as the engine expects it from every plugin
    sys.stdout.flush()
    await asyncio.gather(server.wait_for_termination(), _stop_when_orphaned(server, parent))


async def _stop_when_orphaned(server: grpc.aio.Server, parent: int) -> None:
    """End all operations and stop once the parent process has ended, as answers would reach no one."""
    while os.getppid() == parent:  # noqa: ASYNC110 - no event tells of it
        await asyncio.sleep(_PARENT_SECONDS)
    CANCELLED.set()
    await server.stop(None)


def main() -> None:
    """Serve until the engine ends the process."""
    parser = argparse.ArgumentParser(description="Plugin of Pulumi. The engine starts it: see docs/languages.md.")
    parser.add_argument("engine", help="address of the engine")
    given, _ = parser.parse_known_args()
    try:
        asyncio.run(_serve(given.engine, os.getppid()))
    except KeyboardInterrupt:
        CANCELLED.set()
