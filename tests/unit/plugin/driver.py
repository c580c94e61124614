# ruff: noqa: N802, ARG002 - names and signatures are gRPC's
"""The engine's side of the plugin's protocol: what it calls, and the services that it has for a plugin."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from itertools import count
from typing import Any

import grpc
import grpc.aio
from google.protobuf import empty_pb2, struct_pb2
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.runtime.proto import (
    engine_pb2,
    engine_pb2_grpc,
    provider_pb2,
    provider_pb2_grpc,
    resource_pb2,
    resource_pb2_grpc,
)

from soperator_pulumi.plugin.plugin_server import PluginServicer
from soperator_pulumi.testing import PROJECT, STACK, random_bytes
from tests.rendered.cluster.clusters import provided
from tools.engine.local.aliases import make_urn
from tools.engine.values import SECRET, SIGNATURE, properties_of
from tools.paths import ROOT

STACK_URN = f"urn:pulumi:{STACK}::{PROJECT}::pulumi:pulumi:Stack::{PROJECT}-{STACK}"
PROVIDER = f"urn:pulumi:{STACK}::{PROJECT}::pulumi:providers:soperator-pulumi::default"
PROVIDER_ID = "0c1d"
CLUSTER = "soperator-pulumi:index:SlurmCluster"

_FEATURES = (
    resource_pb2.RESOURCE_MONITOR_FEATURE_SECRETS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_ALIAS_SPECS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_OUTPUT_VALUES,
)
_OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_HOSTS = (str(IPv4Address("127.0.1.0") + number) for number in count())
"""Addresses of this machine. A port may be given again, and a plugin knows programs by their engine's address."""
Context = grpc.ServicerContext


@dataclass
class FakeEngine(resource_pb2_grpc.ResourceMonitorServicer, engine_pb2_grpc.EngineServicer):
    """Registers whatever it is told, and keeps what it was told."""

    registered: list[resource_pb2.RegisterResourceRequest] = field(default_factory=list)
    outputs: dict[str, struct_pb2.Struct] = field(default_factory=dict)
    logged: list[tuple[str, str]] = field(default_factory=list)
    """URN and text of each line."""
    address: str = ""

    def GetDeploymentInfo(self, request: empty_pb2.Empty, context: Context) -> resource_pb2.DeploymentInfo:
        return resource_pb2.DeploymentInfo(supportedFeatures=_FEATURES)

    def SupportsFeature(
        self, request: resource_pb2.SupportsFeatureRequest, context: Context
    ) -> resource_pb2.SupportsFeatureResponse:
        return resource_pb2.SupportsFeatureResponse(hasSupport=request.id in {"secrets", "aliasSpecs", "outputValues"})

    def RegisterResource(
        self, request: resource_pb2.RegisterResourceRequest, context: Context
    ) -> resource_pb2.RegisterResourceResponse:
        self.registered.append(request)
        given = PropertyValue.unmarshal_map(request.object)
        plain = {key: value.value for key, value in given.items()}
        added = outputs_of(request.type, request.name, plain)
        parent = "" if request.parent == STACK_URN else request.parent
        return resource_pb2.RegisterResourceResponse(
            urn=make_urn(STACK, PROJECT, parent, request.type, request.name),
            id=f"{request.name}-id" if request.custom else "",
            object=PropertyValue.marshal_map({**given, **properties_of(added)}),
        )

    def RegisterResourceOutputs(
        self, request: resource_pb2.RegisterResourceOutputsRequest, context: Context
    ) -> empty_pb2.Empty:
        self.outputs[request.urn] = request.outputs
        return empty_pb2.Empty()

    def Log(self, request: engine_pb2.LogRequest, context: Context) -> empty_pb2.Empty:
        if request.severity != engine_pb2.DEBUG:
            self.logged.append((request.urn, request.message))
        return empty_pb2.Empty()

    # -- what was registered ------------------------------------------------------------------------------------

    def one(self, name: str, type_: str = "") -> resource_pb2.RegisterResourceRequest:
        """The only registration of a name, and of a type that ends so."""
        (found,) = [request for request in self.registered if request.name == name and request.type.endswith(type_)]
        return found

    def of(self, type_: str) -> list[resource_pb2.RegisterResourceRequest]:
        """The registrations of types that begin so."""
        return [request for request in self.registered if request.type.startswith(type_)]


def outputs_of(type_: str, name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the outputs that a provider adds to the inputs."""
    added = {**provided(type_, name, inputs), **random_bytes(type_, name, inputs)}
    if type_.endswith((":DrainGate", ":NodeDrain")):
        return {**added, "namespace_uid": "uid-0"}
    return added | ({"status": {}} if type_ == "kubernetes:core/v1:Service" else {})


@contextmanager
def engine_server() -> Iterator[FakeEngine]:
    """An engine that plugins can reach."""
    engine = FakeEngine()
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=64))
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(engine, server)
    engine_pb2_grpc.add_EngineServicer_to_server(engine, server)
    host = next(_HOSTS)
    engine.address = f"{host}:{server.add_insecure_port(f'{host}:0')}"
    server.start()
    yield engine
    server.stop(None).wait()


@contextmanager
def plugin_process(engine: FakeEngine) -> Iterator[provider_pb2_grpc.ResourceProviderStub]:
    """The plugin, started as Pulumi starts it, elsewhere than in its folder."""
    command = [sys.executable, str(ROOT / "components"), engine.address]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd="/") as process:
        assert process.stdout
        port = process.stdout.readline()
        try:
            assert port.strip().isdigit(), f"no port but {port!r}"
            with grpc.insecure_channel(f"127.0.0.1:{int(port)}") as channel:
                stub = provider_pb2_grpc.ResourceProviderStub(channel)
                stub.Configure(configuration())
                yield stub
        finally:
            process.kill()


@contextmanager
def plugin_here(engine: FakeEngine) -> Iterator[provider_pb2_grpc.ResourceProviderStub]:
    """The plugin's server in this process, in which the cluster can be a fake."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start() -> tuple[grpc.aio.Server, int]:
        server = grpc.aio.server()
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(PluginServicer(engine.address), server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        return server, port

    server, port = asyncio.run_coroutine_threadsafe(start(), loop).result(60)
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = provider_pb2_grpc.ResourceProviderStub(channel)
            stub.Configure(configuration())
            yield stub
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(None), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()


def configuration(**given: str) -> provider_pb2.ConfigureRequest:
    """The configuration of the provider, with the reference by which the engine knows it."""
    return provider_pb2.ConfigureRequest(urn=PROVIDER, id=PROVIDER_ID, args=struct(given), acceptSecrets=True)


def a_cluster(engine: FakeEngine, inputs: Mapping[str, object], **changes: Any) -> provider_pb2.ConstructRequest:
    """The engine's request for a cluster that a program declares."""
    values: dict[str, Any] = {
        "project": PROJECT,
        "stack": STACK,
        "organization": "organization",
        "monitorEndpoint": engine.address,
        "parallel": 16,
        "type": CLUSTER,
        "name": "hpc",
        "parent": STACK_URN,
        "inputs": struct(inputs),
        "accepts_output_values": True,
        **changes,
    }
    return provider_pb2.ConstructRequest(**values)


def struct(values: Mapping[str, Any]) -> struct_pb2.Struct:
    """Values on the wire."""
    message = struct_pb2.Struct()
    message.update(values)
    return message


def secret(value: object) -> dict[str, object]:
    """A secret on the wire."""
    return {SIGNATURE: SECRET, "value": value}


def unknown_output(*dependencies: str) -> dict[str, object]:
    """An Output on the wire that a preview does not know yet."""
    return {SIGNATURE: _OUTPUT, "dependencies": [*dependencies]}


def plain(given: struct_pb2.Struct) -> dict[str, Any]:
    """Values from the wire, without marks of secrets."""
    return {key: _plain(value) for key, value in PropertyValue.unmarshal_map(given).items()}


def _plain(value: PropertyValue) -> Any:
    if isinstance(value.value, Mapping):
        return {key: _plain(property_value) for key, property_value in value.value.items()}
    if isinstance(value.value, tuple):
        return [_plain(item) for item in value.value]
    return value.value
