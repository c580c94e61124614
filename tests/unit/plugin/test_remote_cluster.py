"""`SlurmCluster` for other languages: the plugin's process, driven as the engine does."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.runtime.proto import provider_pb2, resource_pb2
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderStub
from pulumi.runtime.rpc import UNKNOWN

import soperator_pulumi
from soperator_pulumi import SlurmCluster
from soperator_pulumi.plugin.platform_types import PLATFORM
from soperator_pulumi.testing import deploy
from tests.unit.plugin.driver import (
    CLUSTER,
    PROVIDER,
    PROVIDER_ID,
    STACK_URN,
    FakeEngine,
    a_cluster,
    configuration,
    engine_server,
    outputs_of,
    plain,
    plugin_process,
    secret,
    unknown_output,
)

IMAGES: dict[str, Any] = dict.fromkeys(
    ("controller", "worker", "login", "accounting", "database", "munge", "jailTools", "jail"),
    "registry.example/image:1",
)
INPUTS: dict[str, Any] = {
    "images": IMAGES,
    "nodeSets": [
        {"name": "cpu", "replicas": 2, "cpus": 4, "memoryGib": 8, "rollingUpdate": {"maxUnavailable": "25%"}},
        {
            "name": "gpu",
            "cpus": 8,
            "memoryGib": 0.5,
            "maxUnready": 1,
            "nodeSelector": {"acme.example/gpu_kind": "h100"},
        },
    ],
    "users": [{"name": "alice", "uid": 2001}],
    "slurm": {"extra": {"KillWait": 45}},
    "labels": {"cost_center": "4711"},
    "login": {"podResources": {"requests": {"cpu": 2}}},
}


@pytest.fixture(scope="module")
def plugin() -> Iterator[ResourceProviderStub]:
    with engine_server() as engine, plugin_process(engine) as plugin:
        yield plugin


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    """The engine that runs a program."""
    with engine_server() as engine:
        yield engine


@dataclass(frozen=True)
class Made:
    """A cluster that was asked for, and what was registered for it."""

    response: provider_pb2.ConstructResponse
    engine: FakeEngine


@pytest.fixture(scope="module")
def made(plugin: ResourceProviderStub) -> Iterator[Made]:
    """The cluster of `INPUTS`."""
    with engine_server() as engine:
        yield Made(plugin.Construct(a_cluster(engine, INPUTS)), engine)


def test_the_plugin_has_the_version_of_the_package(plugin: ResourceProviderStub) -> None:
    assert plugin.GetPluginInfo(empty_pb2.Empty()).version == soperator_pulumi.__version__


def test_the_plugin_has_a_schema(plugin: ResourceProviderStub) -> None:
    schema = json.loads(plugin.GetSchema(provider_pb2.GetSchemaRequest()).schema)
    assert schema["resources"][CLUSTER]["isComponent"]


def test_a_cluster_is_registered_with_all_of_its_children_below_it(made: Made) -> None:
    assert made.response.urn.endswith(f"::{CLUSTER}::hpc")
    assert made.engine.one("hpc", ":SlurmCluster").parent == STACK_URN
    assert made.engine.one("hpc-drain-gate").parent == made.response.urn
    gpu = next(request for request in made.engine.of("soperator-pulumi:index:NodeSet") if request.name == "hpc-gpu")
    assert made.engine.one("hpc-gpu-drain").parent.endswith(f"{CLUSTER}${gpu.type}::hpc-gpu")


def test_the_spelling_of_other_languages_reaches_the_spec_and_keys_of_the_users_own_stay(made: Made) -> None:
    assert plain(made.engine.one("hpc-cpu-drain").object)["replicas"] == 2
    ready = plain(made.engine.one("hpc-cpu-ready").object)
    assert ready["rolling_update"]["max_unavailable"] == "25%"
    gpu = plain(made.engine.one("hpc-gpu", ":StatefulSet").object)
    assert gpu["spec"]["template"]["spec"]["nodeSelector"] == {"acme.example/gpu_kind": "h100"}
    assert gpu["metadata"]["labels"]["cost_center"] == "4711"
    assert "KillWait=45\n" in plain(made.engine.one("hpc-slurm-config").object)["files"]["slurm.conf"]


def test_what_acts_on_the_cluster_is_served_by_the_plugin_that_made_the_cluster(made: Made) -> None:
    acting = [request for request in made.engine.of("soperator-pulumi:index:") if request.custom]
    assert {request.provider for request in acting} == {f"{PROVIDER}::{PROVIDER_ID}"}
    assert len({request.type for request in acting}) == 14
    assert not made.engine.of("pulumi-python:dynamic")
    assert not any("__provider" in request.object.fields for request in made.engine.registered)


def test_each_continues_the_resource_of_a_python_program(made: Made) -> None:
    for request in made.engine.of("soperator-pulumi:index:"):
        if request.custom:
            (alias,) = request.aliases
            assert alias.spec.type == f"pulumi-python:dynamic/soperator:{request.type.rpartition(':')[2]}"


def test_the_resources_are_those_of_the_same_description_in_python(made: Made) -> None:
    """So a program may be written again in another language, and no pod is recreated."""
    description = {
        "images": {("jail_tools" if name == "jailTools" else name): image for name, image in IMAGES.items()},
        "node_sets": [
            {"name": "cpu", "replicas": 2, "cpus": 4, "memory_gib": 8, "rolling_update": {"max_unavailable": "25%"}},
            {
                "name": "gpu",
                "cpus": 8,
                "memory_gib": 0.5,
                "max_unready": 1,
                "node_selector": {"acme.example/gpu_kind": "h100"},
            },
        ],
        "users": [{"name": "alice", "uid": 2001}],
        "slurm": {"extra": {"KillWait": 45}},
        "labels": {"cost_center": "4711"},
        "login": {"pod_resources": {"requests": {"cpu": 2}}},
    }
    config = {"soperator:served_by": "plugin"}
    python = deploy(lambda: SlurmCluster("hpc", description), outputs=outputs_of, config=config)
    assert without_component(made.engine.registered) == without_component(
        resource.request for resource in python.recorded
    )


def without_component(
    registered: Iterable[resource_pb2.RegisterResourceRequest],
) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the inputs by type and name, but for the cluster's URN, in which mocks have the stack's type as well."""
    return {
        (request.type, request.name): {key: value for key, value in plain(request.object).items() if key != "component"}
        for request in registered
    }


def test_the_program_is_given_what_it_needs_of_the_cluster(engine: FakeEngine, plugin: ResourceProviderStub) -> None:
    made = plugin.Construct(a_cluster(engine, {**INPUTS, "namespace": "slurm"}))
    state = plain(made.state)
    schema = json.loads(plugin.GetSchema(provider_pb2.GetSchemaRequest()).schema)
    assert state.keys() == schema["resources"][CLUSTER]["properties"].keys()
    assert state["namespaceName"] == "slurm"
    assert state["loginHostPublicKey"].startswith("ssh-ed25519 ")
    assert plain(engine.outputs[made.urn]) == state


def test_a_secret_kubeconfig_stays_secret(engine: FakeEngine, plugin: ResourceProviderStub) -> None:
    plugin.Construct(a_cluster(engine, {**INPUTS, "kubeconfig": secret("token: hunter2")}))
    holders = [request for request in engine.registered if "hunter2" in str(request)]
    assert {holder.type for holder in holders} >= {"pulumi:providers:kubernetes", "soperator-pulumi:index:NodeDrain"}
    for holder in holders:
        assert PropertyValue.unmarshal_map(holder.object)["kubeconfig"].is_secret
    for request in engine.of("soperator-pulumi:index:"):
        assert not request.custom or "kubeconfig" in request.additionalSecretOutputs


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, {"kubeconfig": "token: provider"}), ({"context": "own"}, {"context": "own"})],
    ids=["where the cluster is given none", "unless the cluster is given one"],
)
def test_the_providers_configuration_chooses_the_cluster(
    engine: FakeEngine, plugin: ResourceProviderStub, given: dict[str, str], expected: dict[str, str]
) -> None:
    plugin.Configure(configuration(kubeconfig="token: provider"))
    plugin.Construct(a_cluster(engine, {**INPUTS, **given}))
    plugin.Configure(configuration())
    access = [row for row in plain(engine.one("hpc-cpu-drain").object).items() if row[0] in {"kubeconfig", "context"}]
    assert dict(access) == expected
    (provider,) = engine.of("pulumi:providers:kubernetes")
    assert expected.items() <= plain(provider.object).items()


def test_the_stacks_configuration_chooses_the_cluster_of_all_resources(
    engine: FakeEngine, plugin: ResourceProviderStub
) -> None:
    """Nothing of it reaches a plugin but in the request for a component."""
    config = {"kubernetes:context": "west", "kubernetes:kubeconfig": "token: hunter2"}
    plugin.Construct(a_cluster(engine, INPUTS, config=config, configSecretKeys=["kubernetes:kubeconfig"]))
    acting = [request for request in engine.of("soperator-pulumi:index:") if request.custom]
    assert {plain(request.object)["context"] for request in acting} == {"west"}
    assert all(PropertyValue.unmarshal_map(request.object)["kubeconfig"].is_secret for request in acting)


def test_values_that_are_not_known_yet_reach_their_resources(engine: FakeEngine, plugin: ResourceProviderStub) -> None:
    image = unknown_output(f"{STACK_URN}$random:index/randomPet:RandomPet::tag")
    plugin.Construct(a_cluster(engine, {**INPUTS, "images": {**IMAGES, "worker": image}}, dryRun=True))
    pod = plain(engine.one("hpc-cpu", ":StatefulSet").object)["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == UNKNOWN
    assert "randomPet" in str(engine.one("hpc-cpu", ":StatefulSet").dependencies)
    assert UNKNOWN not in str(engine.one("hpc-cpu-drain").object)


def refused(plugin: ResourceProviderStub, request: provider_pb2.ConstructRequest) -> str:
    with pytest.raises(grpc.RpcError) as raised:
        plugin.Construct(request)
    return str(raised.value.details())


def test_all_problems_of_a_description_are_one_message_in_the_programs_own_spelling(
    engine: FakeEngine, plugin: ResourceProviderStub
) -> None:
    bad = {"name": "login", "replicas": 9000, "cpus": 0, "memoryGib": "2G", "waitUntilReady": "yes", "memoryGb": 2}
    words = refused(plugin, a_cluster(engine, {**INPUTS, "nodeSets": [bad]}))
    assert words.startswith("The description has 6 problems:\n")
    assert "  nodeSets[0].memoryGib: got " in words
    assert "slurm.maxNodes is 4096" in words
    assert "_" not in words
    assert "Traceback" not in words
    assert engine.registered == []


def test_a_key_in_both_spellings_is_refused(engine: FakeEngine, plugin: ResourceProviderStub) -> None:
    words = refused(plugin, a_cluster(engine, {**INPUTS, "node_sets": []}))
    assert words == 'The description has 1 problem:\n  "node_sets": unknown key. Did you mean "nodeSets"?'


def test_the_users_own_names_stay_in_messages(engine: FakeEngine, plugin: ResourceProviderStub) -> None:
    words = refused(plugin, a_cluster(engine, {**INPUTS, "partitions": [{"name": "ssh_keys"}]}))
    assert 'partitions[0].name: got "ssh_keys", but no node set names it.' in words


def test_a_value_that_decides_which_resources_exist_cannot_be_an_output(
    engine: FakeEngine, plugin: ResourceProviderStub
) -> None:
    unknown = {"name": "cpu", "replicas": unknown_output(), "cpus": 1, "memoryGib": 1}
    assert "nodeSets[0].replicas: " in refused(plugin, a_cluster(engine, {**INPUTS, "nodeSets": [unknown]}))


def test_two_clusters_of_a_program_need_distinct_names(engine: FakeEngine, plugin: ResourceProviderStub) -> None:
    plugin.Construct(a_cluster(engine, {**INPUTS, "name": "one"}, name="a"))
    words = refused(plugin, a_cluster(engine, {**INPUTS, "name": "one"}, name="b"))
    assert "also the name of SlurmCluster 'a'" in words


def test_a_component_that_there_is_not_is_refused_by_name(engine: FakeEngine, plugin: ResourceProviderStub) -> None:
    words = refused(plugin, a_cluster(engine, INPUTS, type="soperator-pulumi:index:Other"))
    assert words == f"there is no component soperator-pulumi:index:Other. There are: {CLUSTER}, {PLATFORM.token}."


def test_options_of_the_component_reach_its_children(engine: FakeEngine, plugin: ResourceProviderStub) -> None:
    pool = f"{STACK_URN}$random:index/randomPet:RandomPet::pool"
    request = a_cluster(engine, INPUTS, dependencies=[pool], protect=True)
    request.aliases.add().spec.name = "blue"
    plugin.Construct(request)
    children = [request for request in engine.registered if request.custom]
    assert all(pool in child.dependencies for child in children)
    component = engine.one("hpc", ":SlurmCluster")
    assert component.protect
    assert [alias.spec.name for alias in component.aliases] == ["blue"]
