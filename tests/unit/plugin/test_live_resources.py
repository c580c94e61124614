"""Resources that act on a live cluster, as custom resources of the plugin: each call of the engine, over gRPC."""

import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.runtime.proto import provider_pb2
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderStub
from pulumi.runtime.rpc import UNKNOWN

from soperator_pulumi.lifecycle.connection import access
from soperator_pulumi.lifecycle.provider import LiveProvider
from soperator_pulumi.lifecycle.superseded import CREATED
from soperator_pulumi.operations import progress
from soperator_pulumi.operations.configuration.desired_files import DesiredFiles
from tests.fakes.jail import wanted
from tests.fakes.objects import CONFIG_MAPS, NAMESPACE, SELECTOR
from tests.fakes.small_world import SmallWorld
from tests.unit.lifecycle.recorded_world import CONFIG_FILES, NAMESPACE_PATH, PREREQUISITES
from tests.unit.plugin.driver import (
    FakeEngine,
    configuration,
    engine_server,
    plain,
    plugin_here,
    secret,
    struct,
)
from tests.waiting import wait_until

KUBECONFIG = "token: hunter2"
GIVEN = {key: value for key, value in CONFIG_FILES.items() if value is not None}
FILES = {**GIVEN, "kubeconfig": secret(KUBECONFIG)}
CHANGED = {"slurm.conf": "KillWait=60\n"}
PODS_READY = {"namespace": NAMESPACE, "namespace_uid": "recorded", "owner": "o", "selector": SELECTOR}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> SmallWorld:
    world = SmallWorld()
    labels = {PREREQUISITES["owner_label"]: PREREQUISITES["owner"]}
    world.objects[NAMESPACE_PATH] = {"metadata": {"uid": "recorded", "labels": labels}}
    world.connect(monkeypatch)
    return world


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[FakeEngine, ResourceProviderStub]]:
    with engine_server() as engine, plugin_here(engine) as plugin:
        yield engine, plugin


@pytest.fixture
def plugin(served: tuple[FakeEngine, ResourceProviderStub], world: SmallWorld) -> Iterator[ResourceProviderStub]:
    CREATED.clear()
    yield served[1]
    progress.CANCELLED.clear()


@pytest.fixture
def logged(served: tuple[FakeEngine, ResourceProviderStub]) -> list[tuple[str, str]]:
    """Lines that the engine was given to show, with the URN."""
    served[0].logged.clear()
    return served[0].logged


def urn(kind: str) -> str:
    return f"urn:pulumi:dev::infra::soperator-pulumi:index:SlurmCluster$soperator-pulumi:index:{kind}::hpc-it"


def created(plugin: ResourceProviderStub, inputs: dict[str, Any] | None = None) -> provider_pb2.CreateResponse:
    request = provider_pb2.CreateRequest(urn=urn("ConfigFiles"), properties=struct(inputs or FILES))
    response: provider_pb2.CreateResponse = plugin.Create(request)
    return response


def diff(plugin: ResourceProviderStub, made: provider_pb2.CreateResponse, **changes: Any) -> provider_pb2.DiffResponse:
    request = provider_pb2.DiffRequest(
        urn=urn("ConfigFiles"), id=made.id, olds=made.properties, news=struct({**FILES, **changes})
    )
    response: provider_pb2.DiffResponse = plugin.Diff(request)
    return response


def failure(call: Any, request: Any) -> str:
    with pytest.raises(grpc.RpcError) as raised:
        call(request)
    return str(raised.value.details())


def live_files(world: SmallWorld) -> dict[str, str]:
    return world.data("slurm-config")


# -- check --------------------------------------------------------------------------------------------------------


def checked(plugin: ResourceProviderStub, kind: str, news: dict[str, Any]) -> provider_pb2.CheckResponse:
    response: provider_pb2.CheckResponse = plugin.Check(
        provider_pb2.CheckRequest(urn=urn(kind), olds=struct({}), news=struct(news))
    )
    return response


def test_a_check_completes_the_inputs_and_keeps_secrets(plugin: ResourceProviderStub) -> None:
    without_uid = {key: value for key, value in FILES.items() if key != "namespace_uid"}
    answer = checked(plugin, "ConfigFiles", without_uid)
    assert not answer.failures
    assert plain(answer.inputs) == {**GIVEN, "kubeconfig": KUBECONFIG}
    assert PropertyValue.unmarshal_map(answer.inputs)["kubeconfig"].is_secret


def test_none_is_left_out_at_every_depth_as_in_a_state_of_a_python_program(plugin: ResourceProviderStub) -> None:
    reader = {"component": "controller", "container": "slurmctld", "verified": True}
    answer = checked(plugin, "ConfigFiles", {**FILES, "readers": [{**reader, "sums": None}]})
    assert plain(answer.inputs)["readers"] == [reader]


def test_inputs_of_a_wrong_type_are_failures_with_their_paths(plugin: ResourceProviderStub) -> None:
    bad = {**FILES, "readers": [{"component": "controller"}], "after_sync": "never"}
    found = {
        check_failure.property: check_failure.reason for check_failure in checked(plugin, "ConfigFiles", bad).failures
    }
    assert found.keys() == {"readers[0].container", "after_sync"}
    assert found["after_sync"] == "Input should be 'nothing', 'slurm', 'sshd' or 'slurmdbd'."


def test_problems_of_the_prerequisites_are_one_failure(plugin: ResourceProviderStub, world: SmallWorld) -> None:
    world.objects[NAMESPACE_PATH] = {"metadata": {"labels": {}}}
    given = {key: value for key, value in PREREQUISITES.items() if value is not None}
    (found,) = checked(plugin, "Prerequisites", {**given, "selector": SELECTOR}).failures
    assert found.reason.startswith("soperator:cluster has 1 problem:\n  namespace: ")


def test_a_secret_that_a_preview_does_not_know_stays_unknown(plugin: ResourceProviderStub) -> None:
    """Without it, the check would look at the ambient cluster instead."""
    given = {key: value for key, value in PREREQUISITES.items() if value is not None}
    answer = checked(plugin, "Prerequisites", {**given, "selector": SELECTOR, "kubeconfig": secret(UNKNOWN)})
    assert PropertyValue.unmarshal_map(answer.inputs)["kubeconfig"].contains_secret()
    assert UNKNOWN in str(answer.inputs)


def test_what_a_preview_knows_is_checked_next_to_what_it_does_not(plugin: ResourceProviderStub) -> None:
    answer = checked(plugin, "NodeDrain", {"replicas": UNKNOWN, "node_set": "cpu", "identity": 1.0})
    found = {check_failure.property: check_failure.reason for check_failure in answer.failures}
    assert found.keys() == {"namespace", "owner", "selector", "policy", "identity"}
    assert found["namespace"] == "Field required."


def test_a_resource_that_there_is_not_is_refused_by_name(plugin: ResourceProviderStub) -> None:
    words = failure(plugin.Check, provider_pb2.CheckRequest(urn=urn("Other"), news=struct({})))
    assert words.startswith("there is no resource soperator-pulumi:index:Other. There are: ")


# -- diff, create, read, update, delete -------------------------------------------------------------------------------


def test_what_a_diff_finds_is_shown_next_to_the_resource(
    plugin: ResourceProviderStub, logged: list[tuple[str, str]]
) -> None:
    answer = diff(plugin, created(plugin), files=CHANGED)
    assert answer.changes == provider_pb2.DiffResponse.DIFF_SOME
    assert (urn("ConfigFiles"), "-KillWait=30") in logged
    assert (urn("ConfigFiles"), "+KillWait=60") in logged


def test_no_difference_is_none(plugin: ResourceProviderStub, logged: list[tuple[str, str]]) -> None:
    assert diff(plugin, created(plugin)).changes == provider_pb2.DiffResponse.DIFF_NONE
    assert logged == []


def test_another_name_is_a_replacement(plugin: ResourceProviderStub) -> None:
    answer = diff(plugin, created(plugin), name="other")
    assert [*answer.replaces] == ["namespace", "name"]
    assert answer.deleteBeforeReplace


def test_a_resource_is_created_read_updated_and_deleted(plugin: ResourceProviderStub, world: SmallWorld) -> None:
    made = created(plugin)
    assert live_files(world) == FILES["files"]
    assert PropertyValue.unmarshal_map(made.properties)["kubeconfig"].is_secret
    assert plain(made.properties) == {**GIVEN, "kubeconfig": KUBECONFIG, "known_good": FILES["files"]}

    updated = plugin.Update(
        provider_pb2.UpdateRequest(
            urn=urn("ConfigFiles"), id=made.id, olds=made.properties, news=struct({**FILES, "files": CHANGED})
        )
    )
    assert live_files(world) == CHANGED
    assert plain(updated.properties)["known_good"] == CHANGED

    world.objects[f"{CONFIG_MAPS}/slurm-config"]["data"] = {"slurm.conf": "by hand"}
    read = plugin.Read(
        provider_pb2.ReadRequest(
            urn=urn("ConfigFiles"), id=made.id, properties=updated.properties, inputs=struct(FILES)
        )
    )
    assert plain(read.properties)["files"] == {"slurm.conf": "by hand"}
    assert PropertyValue.unmarshal_map(read.properties)["kubeconfig"].is_secret
    assert plain(read.inputs)["files"] == FILES["files"]

    CREATED.clear()  # as in the next run
    plugin.Delete(provider_pb2.DeleteRequest(urn=urn("ConfigFiles"), id=made.id, properties=updated.properties))
    assert f"{CONFIG_MAPS}/slurm-config" not in world.objects


def test_a_resource_that_has_gone_has_no_id(plugin: ResourceProviderStub, world: SmallWorld) -> None:
    made = created(plugin)
    del world.objects[f"{CONFIG_MAPS}/slurm-config"]
    read = plugin.Read(provider_pb2.ReadRequest(urn=urn("ConfigFiles"), id=made.id, properties=made.properties))
    assert read.id == ""


def test_a_failure_is_its_message_alone(plugin: ResourceProviderStub, world: SmallWorld) -> None:
    world.unreachable = True
    request = provider_pb2.CreateRequest(urn=urn("ConfigFiles"), properties=struct(FILES))
    assert failure(plugin.Create, request) == "The Kubernetes API at https://x is not reached."


def test_a_state_that_lacks_a_property_is_named_with_the_next_step_and_without_values(
    plugin: ResourceProviderStub,
) -> None:
    policy = {"timeout": "hunter2"}
    inputs = {**PODS_READY, "node_set": "cpu", "replicas": 1, "identity": "a", "policy": policy}
    olds = {key: value for key, value in inputs.items() if key not in {"namespace", "identity"}}
    request = provider_pb2.DiffRequest(urn=urn("NodeDrain"), id="it", olds=struct(olds), news=struct(inputs))
    words = failure(plugin.Diff, request)
    assert words.startswith("hpc-it: the state has properties that this version of the plugin does not accept:\n")
    assert "\n  namespace: Field required.\n  identity: Field required.\n" in words
    assert "pulumi stack export" in words
    assert not [text for text in ("Traceback", "hunter2") if text in words]


def test_the_state_of_a_tree_that_lacks_its_cluster_is_named_likewise(plugin: ResourceProviderStub) -> None:
    news = {key: value for key, value in wanted().items() if value is not None}
    olds = {key: value for key, value in news.items() if key != "namespace"}
    request = provider_pb2.DiffRequest(urn=urn("ActiveTree"), id="it", olds=struct(olds), news=struct(news))
    assert "\n  namespace: Field required.\n" in failure(plugin.Diff, request)


def test_an_import_is_refused_by_name(plugin: ResourceProviderStub) -> None:
    words = failure(plugin.Read, provider_pb2.ReadRequest(urn=urn("NodeDrain"), id="hpc/cpu"))
    assert words == "hpc-it cannot be imported: SlurmCluster makes it, in `pulumi up`."


def test_an_error_in_our_code_comes_with_its_traceback_and_without_secrets(
    plugin: ResourceProviderStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DesiredFiles, "model_validate", lambda props: props["no such input"])
    words = failure(plugin.Create, provider_pb2.CreateRequest(urn=urn("ConfigFiles"), properties=struct(FILES)))
    assert "config_files.py" in words
    assert "KeyError: 'no such input'" in words
    assert "hunter2" not in words


# -- the provider ---------------------------------------------------------------------------------------------------


def test_the_providers_configuration_is_newer_access_to_recorded_clusters(
    plugin: ResourceProviderStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str | None] = []

    def newest(provider: LiveProvider, recorded: dict[str, Any]) -> dict[str, Any]:
        seen.append(access({}, provider._config).kubeconfig)
        return recorded

    made = created(plugin)
    monkeypatch.setattr(LiveProvider, "newest", newest)
    CREATED.clear()
    plugin.Configure(configuration(kubeconfig="token: renewed"))
    plugin.Delete(provider_pb2.DeleteRequest(urn=urn("ConfigFiles"), id=made.id, properties=made.properties))
    plugin.Configure(configuration())
    assert seen == ["token: renewed"]


def test_another_configuration_never_replaces_what_the_provider_serves(plugin: ResourceProviderStub) -> None:
    """The engine asks a new provider whether it may serve what another one has served: a move would replace it all."""
    request = provider_pb2.DiffRequest(olds=struct({}), news=struct({"kubeconfig": "token: renewed"}))
    with pytest.raises(grpc.RpcError) as raised:
        plugin.DiffConfig(request)
    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED, "which the engine takes for no replacement"


def test_a_cancelled_run_changes_nothing_more(plugin: ResourceProviderStub, world: SmallWorld) -> None:
    made, name = created(plugin), urn("ConfigFiles")
    CREATED.clear()
    plugin.Cancel(empty_pb2.Empty())
    changed = struct({**FILES, "files": CHANGED})
    assert {
        failure(plugin.Create, provider_pb2.CreateRequest(urn=name, properties=changed)),
        failure(plugin.Update, provider_pb2.UpdateRequest(urn=name, id=made.id, olds=made.properties, news=changed)),
        failure(plugin.Delete, provider_pb2.DeleteRequest(urn=name, id=made.id, properties=made.properties)),
    } == {"cancelled: unfinished work stays as it is. Run again to continue."}
    assert live_files(world) == FILES["files"]


def test_a_cancelled_run_ends_its_waits_and_names_the_next_step(
    plugin: ResourceProviderStub, world: SmallWorld, logged: list[tuple[str, str]]
) -> None:
    world.objects[f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets/login"] = {
        "metadata": {"generation": 1},
        "spec": {"replicas": 1},
        "status": {"observedGeneration": 1, "updateRevision": "r"},
    }
    inputs = {**PODS_READY, "stateful_set": "login"}
    words: list[str] = []

    def create() -> None:
        request = provider_pb2.CreateRequest(urn=urn("PodsReady"), properties=struct(inputs))
        words.append(failure(plugin.Create, request))

    waiting = threading.Thread(target=create)
    waiting.start()
    wait_until(lambda: bool(logged), "the wait shows progress")
    plugin.Cancel(empty_pb2.Empty())
    waiting.join(60)
    assert words == ["cancelled: unfinished work stays as it is. Run again to continue."]
