"""Our providers in Pulumi's own server of dynamic resources: numbers as floats, the stack's configuration, words."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf import struct_pb2
from pulumi.dynamic import ResourceProvider
from pulumi.dynamic.dynamic import serialize_provider
from pulumi.runtime.proto import provider_pb2
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderStub
from pulumi.runtime.rpc import UNKNOWN

from soperator_pulumi.lifecycle.config_files import ConfigFilesProvider
from soperator_pulumi.lifecycle.drain_gate import DrainGateProvider
from soperator_pulumi.lifecycle.nodes_ready import NodesReadyProvider
from soperator_pulumi.lifecycle.prerequisites import PrerequisitesProvider
from soperator_pulumi.spec.drain import DrainSpec, RollingUpdateSpec
from tests.unit.lifecycle.recorded_world import CONFIG_FILES, PREREQUISITES

NODES = {
    "namespace": "hpc",
    "namespace_uid": "1",
    "owner": "hpc",
    "node_set": "cpu",
    "selector": {"app.kubernetes.io/instance": "hpc"},
    "timeout_seconds": 600,
    "template": "a",
    "max_unready": 1,
    "wait_until_ready": True,
    "policy": DrainSpec().model_dump(mode="json"),
    "rolling_update": RollingUpdateSpec().model_dump(mode="json"),
}
NOWHERE = """\
current-context: main
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: x}}]
contexts: [{name: main, context: {cluster: c, user: u}}]
"""


@pytest.fixture(scope="module")
def printed() -> list[str]:
    return []


@pytest.fixture(scope="module")
def server(printed: list[str]) -> Iterator[ResourceProviderStub]:
    """The server, configured with a stack's `soperator:kubeconfig` of a cluster that nobody answers for."""
    command = [sys.executable, "-u", "-m", "pulumi.dynamic"]
    environment = {**os.environ, "PULUMI_PROJECT": "project"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout
        port = int(process.stdout.readline())
        reader = threading.Thread(target=printed.extend, args=(process.stdout,))
        reader.start()
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = ResourceProviderStub(channel)
            stub.Configure(provider_pb2.ConfigureRequest(args=struct({"soperator:kubeconfig": NOWHERE})))
            yield stub
        process.terminate()
        reader.join(timeout=10)


def struct(values: dict[str, Any]) -> struct_pb2.Struct:
    message = struct_pb2.Struct()
    message.update(values)
    return message


def inputs(provider: ResourceProvider, values: dict[str, Any]) -> struct_pb2.Struct:
    return struct({**values, "__provider": serialize_provider(provider)})


def test_a_cluster_that_does_not_answer_fails_the_first_check_in_words(server: ResourceProviderStub) -> None:
    news = inputs(PrerequisitesProvider(), PREREQUISITES)
    answer = server.Check(provider_pb2.CheckRequest(olds=struct({}), news=news))
    (failure,) = answer.failures
    assert failure.reason.startswith("The Kubernetes API at http://127.0.0.1:1 is not reached: ")
    assert "Traceback" not in failure.reason


def test_files_that_cannot_be_compared_count_as_changed(server: ResourceProviderStub) -> None:
    news = inputs(ConfigFilesProvider(), CONFIG_FILES)
    answer = server.Diff(provider_pb2.DiffRequest(id="x", olds=news, news=news))
    assert answer.changes == provider_pb2.DiffResponse.DIFF_SOME


def test_numbers_that_arrive_as_floats_are_numbers_of_nodes(server: ResourceProviderStub) -> None:
    olds, news = (inputs(NodesReadyProvider(), {**NODES, "replicas": replicas}) for replicas in (1, 2))
    answer = server.Diff(provider_pb2.DiffRequest(id="x", olds=olds, news=news))
    assert answer.changes == provider_pb2.DiffResponse.DIFF_SOME


def test_values_that_a_preview_does_not_know_are_no_error(server: ResourceProviderStub) -> None:
    olds = inputs(ConfigFilesProvider(), CONFIG_FILES)
    news = inputs(ConfigFilesProvider(), {**CONFIG_FILES, "files": {"slurm.conf": UNKNOWN}})
    answer = server.Diff(provider_pb2.DiffRequest(id="x", olds=olds, news=news))
    assert answer.changes == provider_pb2.DiffResponse.DIFF_SOME


def test_an_update_that_fails_answers_in_our_own_words_alone(server: ResourceProviderStub) -> None:
    props = inputs(ConfigFilesProvider(), {**CONFIG_FILES, "known_good": CONFIG_FILES["files"]})
    with pytest.raises(grpc.RpcError) as raised:
        server.Update(provider_pb2.UpdateRequest(id="x", olds=props, news=props))
    assert str(raised.value.details()).startswith("The Kubernetes API at http://127.0.0.1:1 is not reached")
    assert "Traceback" not in str(raised.value.details())


def test_an_error_that_is_not_ours_answers_with_its_traceback(server: ResourceProviderStub) -> None:
    props = inputs(ConfigFilesProvider(), {**CONFIG_FILES, "readers": "none", "known_good": {}})
    with pytest.raises(grpc.RpcError) as raised:
        server.Update(provider_pb2.UpdateRequest(id="x", olds=props, news=props))
    assert "Traceback" in str(raised.value.details())
    assert "config_files.py" in str(raised.value.details())


def test_a_gate_whose_cluster_is_not_reached_stays_shut_and_says_so(server: ResourceProviderStub) -> None:
    gate = inputs(DrainGateProvider(), {"namespace": "hpc", "owner": "dev-hpc", "selector": {}, "policies": {}})
    with pytest.raises(grpc.RpcError) as raised:
        server.Delete(provider_pb2.DeleteRequest(id="x", properties=gate))
    assert str(raised.value.details()).startswith("The Kubernetes API at http://127.0.0.1:1 is not reached")
