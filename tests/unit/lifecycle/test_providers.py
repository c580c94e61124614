"""The adapters between Pulumi and the classes that do the work."""

import base64
import copy
import itertools
import json
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pulumi.dynamic import Config, ConfigureRequest, ResourceProvider
from pulumi.dynamic.dynamic import serialize_provider
from pulumi.output import Unknown
from pulumi.runtime.rpc import UNKNOWN

from soperator_pulumi.cluster.secrets import host_key
from soperator_pulumi.errors import ConfigRefusedError, KubernetesError
from soperator_pulumi.lifecycle.active_tree import ActiveTreeProvider
from soperator_pulumi.lifecycle.config_files import ConfigFilesProvider
from soperator_pulumi.lifecycle.connection import ClusterConnection, KubernetesAccess, access, with_newest_access
from soperator_pulumi.lifecycle.drain_gate import DrainGateProvider
from soperator_pulumi.lifecycle.node_drain import NodeDrainProvider
from soperator_pulumi.lifecycle.nodes_ready import NodesReadyProvider
from soperator_pulumi.lifecycle.pods_ready import PodsReadyProvider
from soperator_pulumi.lifecycle.prerequisites import PrerequisitesProvider
from soperator_pulumi.lifecycle.provider import LiveProvider
from soperator_pulumi.lifecycle.removed_node_sets import RemovedNodeSetsProvider
from soperator_pulumi.lifecycle.superseded import CREATED
from soperator_pulumi.lifecycle.tree_populated import TreePopulatedProvider
from soperator_pulumi.operations.access import Access
from soperator_pulumi.operations.nodes.cluster_ref import CONTROLLER_LOST
from tests.fakes.objects import NAMESPACE, SELECTOR
from tests.fakes.slurmctld import Job
from tests.fakes.small_world import API_SLICE, SmallWorld
from tests.unit.operations.test_rollout import LOGIN, PATH, a_stateful_set

PROVIDERS: list[type[LiveProvider]] = [
    ActiveTreeProvider,
    ConfigFilesProvider,
    DrainGateProvider,
    NodeDrainProvider,
    NodesReadyProvider,
    PodsReadyProvider,
    PrerequisitesProvider,
    RemovedNodeSetsProvider,
    TreePopulatedProvider,
]
CONFIG_FILES = {
    "namespace": NAMESPACE,
    "namespace_uid": "recorded",
    "owner": "project.dev.hpc",
    "name": "slurm-config",
    "labels": {"team": "hpc"},
    "annotations": {},
    "files": {"slurm.conf": "KillWait=30\n"},
    "selector": SELECTOR,
    "readers": [{"component": "controller", "container": "slurmctld", "verified": True}],
    "after_sync": "nothing",
    "kubeconfig": None,
    "context": None,
}
NAMESPACE_PATH = f"/api/v1/namespaces/{NAMESPACE}"
ID = f"{NAMESPACE}/slurm-config/0"
CONFIG_MAP = f"/api/v1/namespaces/{NAMESPACE}/configmaps/slurm-config"
PREREQUISITES = {
    "where": "soperator:cluster",
    "namespace": NAMESPACE,
    "create_namespace": True,
    "owner": "project.dev.hpc",
    "owner_label": "soperator-pulumi/owner",
    "part_of": {"app.kubernetes.io/part-of": "soperator-pulumi"},
    "references": [],
    "kubeconfig": None,
    "context": None,
}


@pytest.fixture
def world() -> SmallWorld:
    """A world with the namespace that is recorded."""
    world = SmallWorld()
    labels = {PREREQUISITES["owner_label"]: PREREQUISITES["owner"]}
    world.objects[NAMESPACE_PATH] = {"metadata": {"uid": "recorded", "labels": labels}}
    return world


@pytest.fixture(autouse=True)
def reached(monkeypatch: pytest.MonkeyPatch, world: SmallWorld) -> None:
    world.connect(monkeypatch)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_provider_is_stored_as_a_reference_to_its_class_and_captures_nothing(
    provider: type[ResourceProvider],
) -> None:
    stored = serialize_provider(provider())
    assert len(stored) < 300
    assert type(pickle.loads(base64.b64decode(stored))) is provider  # noqa: S301 what we have just stored
    assert provider.serialize_as_secret_always is False


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_resource_that_is_not_known_yet_counts_as_changed(provider: type[LiveProvider]) -> None:
    assert provider().diff("", {}, {"namespace": UNKNOWN, "references": []}).changes is True


# -- ConfigFiles ------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def known_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ConfigFiles of a test is `ID`, later ones are others."""
    numbers = itertools.count()
    monkeypatch.setattr("secrets.token_hex", lambda _bytes: str(next(numbers)))


def created(world: SmallWorld) -> dict[str, Any]:
    made = ConfigFilesProvider().create(dict(CONFIG_FILES))
    assert world.objects[CONFIG_MAP]["data"] == CONFIG_FILES["files"]
    assert made.id == ID
    assert made.outs is not None
    end_run()
    return made.outs


def end_run() -> None:
    """Have the next operation be another process's."""
    CREATED.clear()


def test_files_that_are_in_force_are_no_change(world: SmallWorld) -> None:
    outputs = created(world)
    assert ConfigFilesProvider().diff(ID, outputs, dict(CONFIG_FILES)).changes is False


def test_a_changed_connection_is_recorded_and_nothing_else_is_done(world: SmallWorld) -> None:
    outputs = created(world)
    news = {**CONFIG_FILES, "kubeconfig": "other", "context": "renewed"}
    assert ConfigFilesProvider().diff(ID, outputs, news).changes
    before = copy.deepcopy(world.objects)
    world.commands.clear()
    updated = ConfigFilesProvider().update(ID, outputs, news).outs
    assert updated == {**outputs, "kubeconfig": "other", "context": "renewed"}
    assert (world.objects, world.commands) == (before, [])
    assert not ConfigFilesProvider().diff(ID, updated, news).changes


def test_an_access_that_is_no_longer_given_is_a_change_and_forgotten(world: SmallWorld) -> None:
    """The SDK leaves out of the inputs what is None."""
    outputs = {**created(world), "kubeconfig": "given", "context": "given"}
    silent = {key: value for key, value in CONFIG_FILES.items() if key not in {"kubeconfig", "context"}}
    for news in (silent, {**silent, "context": "given"}):
        assert ConfigFilesProvider().diff(ID, outputs, news).changes
        updated = ConfigFilesProvider().update(ID, outputs, news).outs or {}
        assert not updated.get("kubeconfig")
        assert updated.get("context") == news.get("context")
        assert not ConfigFilesProvider().diff(ID, updated, news).changes


def test_a_refresh_looks_with_the_newest_access_and_records_none(
    world: SmallWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = {**created(world), "kubeconfig": OLD}
    asked: list[Any] = []

    def kube(_self: LiveProvider, props: Mapping[str, Any]) -> SmallWorld:
        asked.append(props["kubeconfig"])
        return world

    monkeypatch.setattr(LiveProvider, "kube", kube)
    provider = ConfigFilesProvider()
    provider.configure(ConfigureRequest(a_config(soperator__kubeconfig=NEW)))
    found = provider.read(ID, outputs)
    assert (found.outs or {})["kubeconfig"] == OLD
    provider.delete(ID, outputs)
    assert {*asked} == {NEW}


def test_files_in_another_namespace_of_the_same_name_are_not_deleted(world: SmallWorld) -> None:
    outputs = created(world)
    world.objects[NAMESPACE_PATH] = {"metadata": {"uid": "another"}}
    with pytest.raises(KubernetesError, match="not the one that this stack has recorded"):
        ConfigFilesProvider().delete(ID, outputs)
    assert CONFIG_MAP in world.objects
    world.objects[NAMESPACE_PATH]["metadata"]["uid"] = "recorded"
    ConfigFilesProvider().delete(ID, outputs)
    assert CONFIG_MAP not in world.objects


@pytest.mark.parametrize("namespace", [None, {"metadata": {"uid": "another"}}], ids=["none", "another"])
def test_files_are_neither_looked_for_nor_made_in_another_kubernetes(
    world: SmallWorld, capsys: pytest.CaptureFixture[str], namespace: dict[str, Any] | None
) -> None:
    outputs = created(world)
    news = {**CONFIG_FILES, "files": {"slurm.conf": "KillWait=60\n"}}
    world.objects = {} if namespace is None else {NAMESPACE_PATH: namespace}
    before = copy.deepcopy(world.objects)
    operations: list[Callable[[], object]] = [
        lambda: ConfigFilesProvider().read(ID, outputs),
        lambda: ConfigFilesProvider().create(dict(news)),
        lambda: ConfigFilesProvider().update(ID, outputs, dict(news)),
    ]
    for operation in operations:
        with pytest.raises(
            KubernetesError,
            match=r"at https://world.*right cluster.*--run-program.*Only if.*SOPERATOR_CONTROLLER_LOST=hpc",
        ):
            operation()
    assert ConfigFilesProvider().diff(ID, outputs, dict(news)).changes
    assert "cannot be compared with the live files: The" in capsys.readouterr().out
    assert world.objects == before


def test_a_refresh_forgets_files_whose_namespace_is_gone_for_good_where_the_user_says_so(
    world: SmallWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = created(world)
    monkeypatch.setenv(CONTROLLER_LOST, SELECTOR["app.kubernetes.io/instance"])
    assert ConfigFilesProvider().read(ID, outputs).id == ID
    world.objects = {}
    assert ConfigFilesProvider().read(ID, outputs).id == ""


def test_a_preview_says_that_slurm_could_not_take_a_change(
    world: SmallWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    both = {"slurm.conf": "PartitionName=own\nPartitionName=main\n"}
    olds = {**CONFIG_FILES, "after_sync": "slurm", "files": both}
    outputs = ConfigFilesProvider().create(olds).outs or {}
    world.add_pod("controller-0", "controller")
    world.slurm.jobs[7] = Job(7, partition="own")
    for files, words in (
        ("PartitionName=main\n", "7 (alice, waiting)"),
        ("ClusterName=x\nPartitionName=own\n", "A running cluster cannot take this change"),
    ):
        news = {**olds, "files": {"slurm.conf": files}}
        assert ConfigFilesProvider().diff(ID, outputs, news).changes
        assert words in capsys.readouterr().out.partition("slurm-config: would be refused now. ")[2]
    news = {**olds, "files": {"slurm.conf": f"{both['slurm.conf']}KillWait=5\n"}}
    assert ConfigFilesProvider().diff(ID, outputs, news).changes
    assert "refused" not in capsys.readouterr().out


def test_a_changed_file_is_a_change_and_its_difference_is_printed(
    world: SmallWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = created(world)
    news = {**CONFIG_FILES, "files": {"slurm.conf": "KillWait=60\n"}}
    assert ConfigFilesProvider().diff(ID, outputs, news).changes is True
    printed = capsys.readouterr().out.splitlines()
    assert printed[-2:] == ["-KillWait=30", "+KillWait=60"]


def test_a_file_that_somebody_else_changed_is_a_change(world: SmallWorld, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = created(world)
    world.objects[CONFIG_MAP]["data"] = {"slurm.conf": "KillWait=1\n"}
    assert ConfigFilesProvider().diff(ID, outputs, dict(CONFIG_FILES)).changes is True
    assert "-KillWait=1" in capsys.readouterr().out


def test_a_config_map_that_is_gone_is_a_change(world: SmallWorld) -> None:
    outputs = created(world)
    del world.objects[CONFIG_MAP]
    assert ConfigFilesProvider().diff(ID, outputs, dict(CONFIG_FILES)).changes is True


def test_an_interrupted_change_is_a_change_and_told(world: SmallWorld, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = created(world)
    world.objects[CONFIG_MAP]["metadata"]["annotations"] = {}
    assert ConfigFilesProvider().diff(ID, outputs, dict(CONFIG_FILES)).changes is True
    assert "an interrupted change is completed" in capsys.readouterr().out


def test_a_cluster_that_cannot_be_reached_counts_as_changed_and_is_told(
    world: SmallWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = created(world)
    world.unreachable = True
    assert ConfigFilesProvider().diff(ID, outputs, dict(CONFIG_FILES)).changes is True
    assert "cannot be compared with the live files: The Kubernetes API" in capsys.readouterr().out


def test_another_namespace_is_another_config_map(world: SmallWorld) -> None:
    result = ConfigFilesProvider().diff(ID, created(world), {**CONFIG_FILES, "namespace": "other"})
    assert result.replaces
    assert result.delete_before_replace


def test_an_update_records_the_files_that_went_well(world: SmallWorld) -> None:
    news = {**CONFIG_FILES, "files": {"slurm.conf": "KillWait=60\n"}}
    outputs = ConfigFilesProvider().update(ID, created(world), news).outs
    assert outputs == {**news, "known_good": news["files"]}


def test_a_refresh_sees_live_files_and_keeps_those_that_went_well(world: SmallWorld) -> None:
    outputs = created(world)
    world.objects[CONFIG_MAP]["data"] = {"slurm.conf": "KillWait=1\n"}
    read = ConfigFilesProvider().read(ID, outputs)
    assert read.outs is not None
    assert read.outs["files"] == {"slurm.conf": "KillWait=1\n"}
    assert read.outs["known_good"] == CONFIG_FILES["files"]


def test_a_refresh_sees_that_a_config_map_is_gone(world: SmallWorld) -> None:
    outputs = created(world)
    del world.objects[CONFIG_MAP]
    assert ConfigFilesProvider().read(ID, outputs).id == ""


def test_deleting_deletes_the_config_map_and_bears_that_it_is_gone(world: SmallWorld) -> None:
    outputs = created(world)
    ConfigFilesProvider().delete(ID, outputs)
    ConfigFilesProvider().delete(ID, outputs)
    assert CONFIG_MAP not in world.objects


def test_a_config_map_that_was_made_again_outlives_the_resource_that_it_replaces(world: SmallWorld) -> None:
    old = created(world)
    successor = ConfigFilesProvider().create(dict(CONFIG_FILES))
    assert successor.id != ID
    ConfigFilesProvider().delete(ID, old)
    assert world.objects[CONFIG_MAP]["data"] == CONFIG_FILES["files"]
    end_run()
    ConfigFilesProvider().delete(str(successor.id), successor.outs or {})
    assert CONFIG_MAP not in world.objects


def test_a_config_map_stays_that_of_its_resource_when_it_changes(world: SmallWorld) -> None:
    outputs = created(world)
    news = {**CONFIG_FILES, "files": {"slurm.conf": "KillWait=60\n"}}
    ConfigFilesProvider().update(ID, outputs, news)
    ConfigFilesProvider().delete(ID, outputs)
    assert CONFIG_MAP not in world.objects


def test_a_successor_whose_files_are_refused_leaves_the_config_map_to_the_old_resource(world: SmallWorld) -> None:
    sshd = {"after_sync": "sshd", "readers": [{"component": "login", "container": "sshd"}]}
    made = ConfigFilesProvider().create({**CONFIG_FILES, **sshd})
    world.add_pod("login-0", "login")
    world.sshd_words = "Bad configuration option"
    with pytest.raises(ConfigRefusedError):
        ConfigFilesProvider().create({**CONFIG_FILES, **sshd, "files": {"sshd_config": "Bogus yes"}})
    assert world.objects[CONFIG_MAP]["metadata"]["annotations"]["soperator-pulumi/resource"] == made.id
    end_run()
    ConfigFilesProvider().delete(ID, made.outs or {})
    assert CONFIG_MAP not in world.objects


def test_an_error_of_ours_comes_without_the_errors_that_led_to_it(world: SmallWorld) -> None:
    outputs = created(world)
    world.add_pod("login-0", "login")
    world.sshd_words = "Bad configuration option"
    news = {
        **CONFIG_FILES,
        "files": {"sshd_config": "Bogus yes"},
        "after_sync": "sshd",
        "readers": [{"component": "login", "container": "sshd"}],
    }
    with pytest.raises(ConfigRefusedError) as raised:
        ConfigFilesProvider().update(ID, outputs, news)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


# -- PodsReady ----------------------------------------------------------------------------------------------------


def test_pods_that_are_ready_are_no_change_and_others_are(
    world: SmallWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    props = {"namespace": NAMESPACE, "owner": "project.dev.hpc", "stateful_set": "login", "selector": LOGIN}
    world.objects[PATH] = a_stateful_set()
    assert PodsReadyProvider().create(props).outs == props
    assert PodsReadyProvider().diff("", props, props).changes is False
    world.objects[PATH] = a_stateful_set(readyReplicas=0)
    assert PodsReadyProvider().diff("", props, props).changes is True
    assert "login: 0 of 2 pods are ready" in capsys.readouterr().out


# -- Prerequisites ----------------------------------------------------------------------------------------------


def test_a_cluster_that_lacks_nothing_passes_the_check(world: SmallWorld) -> None:
    del world
    assert PrerequisitesProvider().check({}, dict(PREREQUISITES)).failures == []


def test_all_that_is_missing_is_one_failure_of_the_check(world: SmallWorld) -> None:
    world.objects["/api/v1/namespaces/hpc"] = {"metadata": {"labels": {}}}
    missing = {"path": "login.priority_class", "kind": "PriorityClass", "name": "high", "key": "", "holds": ""}
    (failure,) = PrerequisitesProvider().check({}, {**PREREQUISITES, "references": [missing]}).failures
    assert failure.reason.startswith("soperator:cluster has 2 problems:\n  namespace: ")
    assert "login.priority_class" in failure.reason


def test_a_cluster_that_is_not_reached_fails_the_check_in_words(world: SmallWorld) -> None:
    world.unreachable = True
    (failure,) = PrerequisitesProvider().check({}, dict(PREREQUISITES)).failures
    assert failure.reason == "The Kubernetes API at https://x is not reached."


def test_a_kubeconfig_that_is_not_known_yet_is_not_checked_in_a_preview(world: SmallWorld) -> None:
    world.unreachable = True
    assert PrerequisitesProvider().check({}, {**PREREQUISITES, "kubeconfig": UNKNOWN}).failures == []


@pytest.mark.parametrize("unknown", [UNKNOWN, Unknown()], ids=["text", "object"])
def test_names_that_are_not_known_yet_are_passed_over_in_a_preview(world: SmallWorld, unknown: object) -> None:
    del world
    reference = {"path": "storage.homes.storage_class", "kind": "StorageClass", "name": unknown}
    assert PrerequisitesProvider().check({}, {**PREREQUISITES, "references": [reference]}).failures == []


def test_the_addresses_of_the_kubernetes_api_are_inputs_as_a_preview_finds_them(world: SmallWorld) -> None:
    provider = PrerequisitesProvider()
    checked = provider.check({}, {**PREREQUISITES, "api_servers": None}).inputs
    assert checked["api_servers"] == ["10.96.0.1/32", "192.0.2.8/32", "192.0.2.9/32", "fd00:96::1/128"]
    outputs = provider.create(checked).outs
    assert outputs is not None
    assert provider.diff("", outputs, checked).changes is False

    world.objects[API_SLICE]["endpoints"] = [{"addresses": ["192.0.2.10"]}]
    moved = provider.check(checked, {**PREREQUISITES, "api_servers": None}).inputs
    assert provider.diff("", outputs, moved).changes is True


def test_addresses_of_the_kubernetes_api_that_are_given_are_taken(world: SmallWorld) -> None:
    del world.objects[API_SLICE]
    given = {**PREREQUISITES, "api_servers": ["192.0.2.0/24"]}
    assert PrerequisitesProvider().check({}, given).inputs == given


def test_the_public_half_of_an_own_host_key_is_recorded_and_followed(world: SmallWorld) -> None:
    def secret(seed: int) -> dict[str, Any]:
        key = host_key(bytes([seed]) * 32).private_key.encode()
        return {"metadata": {}, "data": {"id": base64.b64encode(key).decode()}}

    path = "/api/v1/namespaces/hpc/secrets/ours"
    own = {"path": "secrets.ssh_host_key", "kind": "Secret", "name": "ours", "key": "id", "holds": "ssh host key"}
    props = {**PREREQUISITES, "references": [own]}
    world.objects[path] = secret(1)
    outputs = PrerequisitesProvider().create(props).outs
    assert outputs is not None
    assert outputs["ssh_host_public_key"] == host_key(b"\1" * 32).public_key
    assert outputs["ssh_host_fingerprint"] == host_key(b"\1" * 32).fingerprint
    assert "PRIVATE" not in str(outputs)
    assert PrerequisitesProvider().diff("", outputs, props).changes is False
    world.objects[path] = secret(2)
    assert PrerequisitesProvider().diff("", outputs, props).changes is True


# -- the connection ---------------------------------------------------------------------------------------------


def a_config(**values: str) -> Config:
    return Config({key.replace("__", ":"): value for key, value in values.items()}, "project")


@pytest.mark.parametrize(
    ("props", "config", "expected"),
    [
        ({}, a_config(), Access()),
        ({"kubeconfig": "inputs"}, a_config(soperator__kubeconfig="stack"), Access("inputs")),
        ({}, a_config(kubernetes__context="west"), Access(None, "west")),
        ({"context": "east"}, a_config(kubernetes__context="west"), Access(None, "east")),
    ],
)
def test_the_cluster_is_the_one_of_the_inputs_then_of_the_stack_then_of_pulumis_own_provider(
    props: dict[str, str], config: Config, expected: Access
) -> None:
    assert access(props, config) == expected


def a_kubeconfig(server: str, token: str) -> str:
    """A kubeconfig with the contexts `east` and `west`, of which the latter leads elsewhere."""
    content = {
        "current-context": "east",
        "clusters": [
            {"name": "e", "cluster": {"server": server}},
            {"name": "w", "cluster": {"server": "https://west"}},
        ],
        "contexts": [{"name": "east", "context": {"cluster": "e"}}, {"name": "west", "context": {"cluster": "w"}}],
        "users": [{"name": "u", "user": {"token": token}}],
    }
    return json.dumps(content)


OLD, NEW, OTHER = a_kubeconfig("https://a", "old"), a_kubeconfig("https://a/", "new"), a_kubeconfig("https://b", "new")


@pytest.mark.parametrize(
    ("recorded", "config", "expected"),
    [
        ({"kubeconfig": OLD}, a_config(), Access(OLD)),
        ({"kubeconfig": OLD}, a_config(soperator__kubeconfig=NEW), Access(NEW)),
        ({"kubeconfig": OLD, "context": "east"}, a_config(soperator__kubeconfig=NEW), Access(NEW)),
        ({"kubeconfig": OLD, "context": "west"}, a_config(soperator__kubeconfig=NEW), Access(OLD, "west")),
        ({"kubeconfig": OLD}, a_config(soperator__kubeconfig=OTHER), Access(OLD)),
        ({"kubeconfig": OLD}, a_config(soperator__kubeconfig="[broken"), Access(OLD)),
        ({"kubeconfig": OLD}, a_config(soperator__kubeconfig='{"from_stack": "o/p/s", "output": "k"}'), Access(OLD)),
        ({"kubeconfig": "/no/such/file"}, a_config(soperator__kubeconfig=NEW), Access("/no/such/file")),
        ({"kubeconfig": OLD}, a_config(soperator__context="west"), Access(OLD)),
        ({"kubeconfig": OLD}, a_config(kubernetes__kubeconfig=NEW), Access(OLD)),
        ({"context": "east"}, a_config(soperator__kubeconfig=NEW), Access(None, "east")),
        ({}, a_config(soperator__kubeconfig=NEW), Access(NEW)),
        ({}, a_config(soperator__context="west"), Access(None, "west")),
    ],
)
def test_recorded_credentials_are_renewed_by_those_of_the_stack_for_the_same_server_alone(
    recorded: dict[str, str], config: Config, expected: Access
) -> None:
    assert access(with_newest_access(recorded, config), config) == expected


def test_a_kubeconfig_does_not_show_in_what_is_printed_of_a_connection() -> None:
    assert "token" not in repr(Access("token: abc", "west"))


def test_the_stacks_configuration_reaches_the_provider_in_its_own_process() -> None:
    provider = PodsReadyProvider()
    provider.configure(ConfigureRequest(a_config(soperator__context="west")))
    assert provider._config is not None


def test_the_handle_of_a_cluster_prints_no_credentials() -> None:
    cluster = ClusterConnection(KubernetesAccess("token: hunter2"), NAMESPACE, "project.dev.hpc", "", SELECTOR)
    assert "hunter2" not in repr(cluster)
