"""`Platform` for other languages: the plugin's process, driven as the engine does."""

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderStub

from soperator_pulumi.plugin.platform_types import PLATFORM
from tests.unit.plugin.driver import FakeEngine, a_cluster, engine_server, plain, plugin_process

INPUTS: dict[str, Any] = {
    "kubernetes": "eks",
    "storageClass": "shared",
    "cilium": {"exists": True},
    "gpuOperator": {
        "migStrategy": "mixed",
        "values": {"daemonsets": {"labels": {"cost_center": "4711"}}, "driver": {"rdma": {"useHostMofed": True}}},
    },
}


@pytest.fixture(scope="module")
def plugin() -> Iterator[ResourceProviderStub]:
    with engine_server() as engine, plugin_process(engine) as plugin:
        yield plugin


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    with engine_server() as engine:
        yield engine


def test_a_platform_is_registered_with_its_charts_and_its_offers_are_outputs(
    plugin: ResourceProviderStub, engine: FakeEngine
) -> None:
    made = plugin.Construct(a_cluster(engine, INPUTS, type=PLATFORM.token, name="base"))

    assert made.urn.endswith(f"::{PLATFORM.token}::base")
    values = plain(engine.one("base-gpu-operator", ":Release").object)["values"]
    assert values["mig"] == {"strategy": "mixed"}
    assert values["daemonsets"]["labels"] == {"cost_center": "4711"}
    assert values["driver"]["rdma"] == {"useHostMofed": True}
    requirements = plain(engine.one("base-installed").object)["requirements"]
    assert [requirement["part"] for requirement in requirements] == ["cilium", "storage_class"]
    outputs = plain(made.state)
    assert outputs["gpuResource"] == "nvidia.com/gpu"
    assert outputs["storageClass"] == "shared"


def test_an_unknown_key_of_a_chart_is_named_in_the_spelling_of_the_language(
    plugin: ResourceProviderStub, engine: FakeEngine
) -> None:
    wrong = {"gpuOperator": {"values": {"driver": {"enbled": True}}}}
    with pytest.raises(grpc.RpcError) as caught:
        plugin.Construct(a_cluster(engine, wrong, type=PLATFORM.token, name="base"))
    assert "gpuOperator.values.driver.enbled: the chart gpu-operator" in str(caught.value.details())
