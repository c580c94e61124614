# ruff: noqa: N802, ARG002 - names and signatures are gRPC's
"""Plugins of a project: its components, and the resources that it serves itself."""

from asyncio.subprocess import Process
from collections.abc import Iterable
from pathlib import Path

import grpc.aio
from google.protobuf import empty_pb2
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, provider_pb2

from tools.engine.local import child_process
from tools.engine.local.monitor import Context
from tools.engine.local.providers.local_provider import Progress
from tools.engine.local.providers.served_provider import ServedProvider
from tools.engine.project import Project
from tools.engine.protocol import Target
from tools.engine.values import to_struct


class _Lines(engine_pb2_grpc.EngineServicer):
    """Prints what the plugin logs."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    async def Log(self, request: engine_pb2.LogRequest, context: Context) -> empty_pb2.Empty:
        """Print every line below its resource."""
        if request.severity != engine_pb2.DEBUG:
            for line in request.message.splitlines():
                self._progress(request.urn, line)
        return empty_pb2.Empty()


class PluginProvider(ServedProvider):
    """Starts the plugin in a folder that the project names."""

    takes_secrets = True

    def __init__(self, package: str, folder: Path, project: Project, target: Target, progress: Progress) -> None:
        super().__init__(project, target, progress)
        self._package = package
        self._folder = folder
        self._log: grpc.aio.Server | None = None

    async def launch(self, known: Iterable[str]) -> Process:
        """Start the plugin, and the service through which it shows lines."""
        self._log = grpc.aio.server()
        engine_pb2_grpc.add_EngineServicer_to_server(_Lines(self._progress), self._log)
        address = f"127.0.0.1:{self._log.add_insecure_port('127.0.0.1:0')}"
        await self._log.start()
        settings = {"plugin": str(self._folder), "address": address}
        return await child_process.start("plugin", self._project, self._target, settings=settings)

    def configuration(self) -> provider_pb2.ConfigureRequest:
        """Return the package's part of the stack's configuration."""
        prefix = f"{self._package}:"
        config = {
            key.removeprefix(prefix): PropertyValue(value)
            for key, value in self._project.config.items()
            if key.startswith(prefix)
        }
        return provider_pb2.ConfigureRequest(args=to_struct(config), acceptSecrets=True, acceptResources=True)

    async def make_component(self, urn: str, request: provider_pb2.ConstructRequest) -> provider_pb2.ConstructResponse:
        """Create a component."""
        answer: provider_pb2.ConstructResponse = await self.ask(urn, "Construct", request)
        return answer

    async def close(self) -> None:
        """End the plugin, then its service."""
        await super().close()
        if self._log is not None:
            await self._log.stop(None)
