"""The SDK's server of dynamic resources as a process, as the engine starts and calls it."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from google.protobuf import struct_pb2
from pulumi.dynamic import ResourceProvider
from pulumi.dynamic.dynamic import serialize_provider
from pulumi.runtime.proto import provider_pb2
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderStub


@contextmanager
def sdk_server(config: dict[str, str], printed: list[str]) -> Iterator[ResourceProviderStub]:
    """A server with the configuration of a stack. Its lines are added to `printed`."""
    command = [sys.executable, "-u", "-m", "pulumi.dynamic"]
    environment = {**os.environ, "PULUMI_PROJECT": "project"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout
        port = int(process.stdout.readline())
        reader = threading.Thread(target=printed.extend, args=(process.stdout,))
        reader.start()
        try:
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                stub = ResourceProviderStub(channel)
                stub.Configure(provider_pb2.ConfigureRequest(args=struct(config)))
                yield stub
        finally:
            process.kill()
            reader.join(timeout=10)


def struct(values: dict[str, Any]) -> struct_pb2.Struct:
    """Properties on the wire."""
    message = struct_pb2.Struct()
    message.update(values)
    return message


def inputs(provider: ResourceProvider, values: dict[str, Any]) -> struct_pb2.Struct:
    """Properties of a resource that this provider serves."""
    return struct({**values, "__provider": serialize_provider(provider)})
