"""Base of providers that a child process serves, called as the engine calls it."""

import asyncio
from abc import abstractmethod
from asyncio.subprocess import Process
from collections.abc import Iterable, Mapping
from typing import Any

import grpc
import grpc.aio
from google.protobuf import struct_pb2
from google.protobuf.message import Message
from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from tools.console import UserError
from tools.engine.display import last_words
from tools.engine.local import child_process
from tools.engine.local.monitor import MESSAGE_LIMIT_BYTES
from tools.engine.local.providers.local_provider import LocalProvider, Progress
from tools.engine.project import Project
from tools.engine.protocol import Target
from tools.engine.values import from_struct, mark_secrets, to_struct

START_TIMEOUT_SECONDS = 60.0
_LAST_LINES_SECONDS = 0.01  # for the last output to arrive, so that it is printed under its resource


class ServedProvider(LocalProvider):
    """Starts the server on first use.

    Attributes:
        takes_secrets: False if values are sent without marks of secrets, and answers get the marks back.
    """

    takes_secrets = False

    def __init__(self, project: Project, target: Target, progress: Progress) -> None:
        self._project = project
        self._target = target
        self._progress = progress
        self._server: asyncio.Task[provider_pb2_grpc.ResourceProviderStub] | None = None
        self._process: Process | None = None
        self._channel: grpc.aio.Channel | None = None
        self._pumps: list[asyncio.Task[None]] = []
        self._busy: list[str] = []

    def start(self, known: Iterable[str] = ()) -> None:
        """Begin to start the server ahead of its first use.

        Args:
            known: Lines for its standard input.
        """
        if self._server is None:
            self._server = asyncio.create_task(self._start(known))

    @abstractmethod
    async def launch(self, known: Iterable[str]) -> Process:
        """Start the process."""

    @abstractmethod
    def configuration(self) -> provider_pb2.ConfigureRequest:
        """Return the first request."""

    async def _start(self, known: Iterable[str]) -> provider_pb2_grpc.ResourceProviderStub:
        process = self._process = await self.launch(known)
        self._pumps.append(asyncio.create_task(child_process.pump(process.stderr, self._show)))
        assert process.stdout is not None  # noqa: S101 - a pipe was requested
        try:
            port = await asyncio.wait_for(process.stdout.readline(), START_TIMEOUT_SECONDS)
        except TimeoutError:
            port = b""
        if not port.strip().isdigit():
            raise UserError(f"the server of {type(self).__name__} did not start; its output is above")
        self._pumps.append(asyncio.create_task(child_process.pump(process.stdout, self._show)))
        options = [("grpc.max_receive_message_length", MESSAGE_LIMIT_BYTES)]
        self._channel = grpc.aio.insecure_channel(f"127.0.0.1:{int(port)}", options=options)
        stub = provider_pb2_grpc.ResourceProviderStub(self._channel)
        await stub.Configure(self.configuration())
        return stub

    def _show(self, line: str) -> None:
        """Print a line of the server below its resource, or below none if several are active."""
        busy = set(self._busy)
        self._progress(busy.pop() if len(busy) == 1 else "", line)

    def _struct(self, properties: Mapping[str, PropertyValue]) -> struct_pb2.Struct:
        return to_struct(properties, secrets=self.takes_secrets)

    async def ask(self, urn: str, method: str, message: Message) -> Any:  # noqa: ANN401 - as the method has it
        """Call a method of the server for a resource."""
        self.start()
        assert self._server is not None  # noqa: S101 - start made it
        stub = await asyncio.shield(self._server)
        self._busy.append(urn)
        try:
            return await getattr(stub, method)(message)
        except grpc.aio.AioRpcError as error:
            raise UserError(last_words(error.details() or str(error.code()))) from None
        finally:
            await asyncio.sleep(_LAST_LINES_SECONDS)
            self._busy.remove(urn)

    async def check(self, request: api.CheckRequest) -> api.CheckResponse:
        """Let the provider check the inputs."""
        message = provider_pb2.CheckRequest(
            urn=request.urn, olds=self._struct(request.old_inputs), news=self._struct(request.new_inputs),
            randomSeed=request.random_seed,
        )  # fmt: skip
        answer = await self.ask(request.urn, "Check", message)
        failures = [api.CheckFailure(failure.property, failure.reason) for failure in answer.failures]
        return api.CheckResponse(mark_secrets(from_struct(answer.inputs), request.new_inputs), failures)

    async def diff(self, request: api.DiffRequest) -> api.DiffResponse:
        """Let the provider compare. `changes` is None if the engine should decide."""
        message = provider_pb2.DiffRequest(
            id=request.resource_id, urn=request.urn, olds=self._struct(request.old_state),
            news=self._struct(request.new_inputs), ignoreChanges=request.ignore_changes,
        )  # fmt: skip
        answer = await self.ask(request.urn, "Diff", message)
        changes = {
            provider_pb2.DiffResponse.DIFF_NONE: False,
            provider_pb2.DiffResponse.DIFF_SOME: True,
        }.get(answer.changes)
        return api.DiffResponse(
            changes=changes,
            replaces=list(answer.replaces),
            delete_before_replace=answer.deleteBeforeReplace,
            diffs=list(answer.diffs),
        )

    async def create(self, request: api.CreateRequest) -> api.CreateResponse:
        """Let the provider create."""
        message = provider_pb2.CreateRequest(
            urn=request.urn, properties=self._struct(request.properties), timeout=request.timeout
        )
        answer = await self.ask(request.urn, "Create", message)
        outputs = mark_secrets(from_struct(answer.properties), request.properties)
        return api.CreateResponse(resource_id=answer.id, properties=outputs)

    async def read(self, request: api.ReadRequest) -> api.ReadResponse:
        """Let the provider read."""
        message = provider_pb2.ReadRequest(
            id=request.resource_id, urn=request.urn, properties=self._struct(request.properties),
            inputs=self._struct(request.inputs),
        )  # fmt: skip
        answer = await self.ask(request.urn, "Read", message)
        inputs = mark_secrets(from_struct(answer.inputs), request.inputs)
        return api.ReadResponse(
            resource_id=answer.id,
            properties=mark_secrets(from_struct(answer.properties), {**request.inputs, **request.properties}),
            inputs=inputs or request.inputs,
        )

    async def update(self, request: api.UpdateRequest) -> api.UpdateResponse:
        """Let the provider update."""
        message = provider_pb2.UpdateRequest(
            id=request.resource_id, urn=request.urn, olds=self._struct(request.olds), news=self._struct(request.news),
            timeout=request.timeout, ignoreChanges=request.ignore_changes,
        )  # fmt: skip
        answer = await self.ask(request.urn, "Update", message)
        return api.UpdateResponse(properties=mark_secrets(from_struct(answer.properties), request.news))

    async def delete(self, request: api.DeleteRequest) -> None:
        """Let the provider delete."""
        message = provider_pb2.DeleteRequest(
            id=request.resource_id,
            urn=request.urn,
            properties=self._struct(request.properties),
            timeout=request.timeout,
        )
        await self.ask(request.urn, "Delete", message)

    async def close(self) -> None:
        """End the server."""
        if self._server is not None and not self._server.done():
            self._server.cancel()
        if self._server is not None:
            await asyncio.gather(self._server, return_exceptions=True)
        if self._channel is not None:
            await self._channel.close(None)
        if self._process is not None:
            await child_process.stop(self._process)
        await asyncio.gather(*self._pumps)
