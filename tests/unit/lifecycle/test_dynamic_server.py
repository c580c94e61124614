"""Our providers in Pulumi's own server of dynamic resources: numbers as floats, the stack's configuration, words."""

from collections.abc import Iterator

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderStub
from pulumi.runtime.rpc import UNKNOWN

from soperator_pulumi.lifecycle.config_files import ConfigFilesProvider
from soperator_pulumi.lifecycle.drain_gate import DrainGateProvider
from soperator_pulumi.lifecycle.nodes_ready import NodesReadyProvider
from soperator_pulumi.lifecycle.prerequisites import PrerequisitesProvider
from soperator_pulumi.spec.drain import DrainSpec, RollingUpdateSpec
from tests.unit.lifecycle.dynamic_server import inputs, sdk_server, struct
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
    """The server, configured with a stack's `soperator:kubeconfig` of a cluster that no one answers for."""
    with sdk_server({"soperator:kubeconfig": NOWHERE}, printed) as stub:
        yield stub


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
