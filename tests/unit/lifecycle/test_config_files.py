"""ConfigFiles: files of a ConfigMap as a resource, compared with the live ones, and no one else's."""

import copy
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pulumi.dynamic import ConfigureRequest

from soperator_pulumi.errors import ConfigRefusedError, KubernetesError
from soperator_pulumi.lifecycle.config_files import ConfigFilesProvider
from soperator_pulumi.lifecycle.provider import LiveProvider
from soperator_pulumi.lifecycle.superseded import CREATED
from soperator_pulumi.operations.nodes.cluster_ref import CONTROLLER_LOST
from tests.fakes.objects import NAMESPACE, SELECTOR
from tests.fakes.slurmctld import Job
from tests.fakes.small_world import SmallWorld
from tests.unit.lifecycle.recorded_world import CONFIG_FILES, NAMESPACE_PATH, NEW, OLD, a_config, reached_world

ID = f"{NAMESPACE}/slurm-config/0"
CONFIG_MAP = f"/api/v1/namespaces/{NAMESPACE}/configmaps/slurm-config"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> SmallWorld:
    return reached_world(monkeypatch)


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
    assert "cannot compare with the live files: The" in capsys.readouterr().out
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


OFF, ON = (f"AccountingStorageType=accounting_storage/{kind}\n" for kind in ("none", "slurmdbd"))


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (OFF, ON, ["accounting is turned on", "Kept: running and pending jobs", "Jobs that ended before"]),
        ("KillWait=30\n", ON, ["accounting is turned on"]),
        (ON, OFF, ["accounting is turned off", "the database with all records, unless storage.keep", "Lost: "]),
        (OFF, f"{ON}AccountingStorageEnforce=limits\n", ["accounting.enforce would keep them waiting for ever"]),
    ],
    ids=["on", "on in an old cluster", "off", "on and enforced"],
)
def test_a_preview_names_what_a_switch_of_accounting_keeps_and_loses(
    world: SmallWorld, capsys: pytest.CaptureFixture[str], before: str, after: str, words: list[str]
) -> None:
    olds = {**CONFIG_FILES, "after_sync": "slurm", "files": {"slurm.conf": before}}
    outputs = ConfigFilesProvider().create(olds).outs or {}
    assert world.objects[CONFIG_MAP]

    assert ConfigFilesProvider().diff(ID, outputs, {**olds, "files": {"slurm.conf": after}}).changes

    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("slurm-config: accounting is"))
    assert [word for word in words if word not in line] == []
    assert ("waiting for ever" in line) is ("Enforce" in after)


@pytest.mark.parametrize("setting", [OFF, ON], ids=["off", "on"])
def test_accounting_that_stays_as_it_is_has_no_line_in_a_preview(
    world: SmallWorld, capsys: pytest.CaptureFixture[str], setting: str
) -> None:
    olds = {**CONFIG_FILES, "after_sync": "slurm", "files": {"slurm.conf": setting}}
    outputs = ConfigFilesProvider().create(olds).outs or {}
    assert world.objects[CONFIG_MAP]

    assert ConfigFilesProvider().diff(ID, outputs, {**olds, "files": {"slurm.conf": f"{setting}KillWait=5\n"}}).changes

    assert "switched" not in capsys.readouterr().out


def test_a_changed_file_is_a_change_and_its_difference_is_printed(
    world: SmallWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = created(world)
    news = {**CONFIG_FILES, "files": {"slurm.conf": "KillWait=60\n"}}
    assert ConfigFilesProvider().diff(ID, outputs, news).changes is True
    printed = capsys.readouterr().out.splitlines()
    assert printed[-2:] == ["-KillWait=30", "+KillWait=60"]


def test_of_a_long_new_file_a_preview_shows_its_size_and_its_first_lines(
    world: SmallWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = created(world)
    script = "".join(f"line {number}\n" for number in range(500))
    added = {**CONFIG_FILES, "files": {"slurm.conf": "KillWait=30\n", "new.sh": script}}
    assert ConfigFilesProvider().diff(ID, outputs, added).changes is True
    assert capsys.readouterr().out.splitlines() == [
        "slurm-config/new.sh: new, 500 lines, 4390 bytes, which begin with",
        *(f"+line {number}" for number in range(5)),
    ]


def test_of_a_new_file_of_one_long_line_a_preview_shows_its_size_and_its_beginning(
    world: SmallWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = created(world)
    added = {**CONFIG_FILES, "files": {"slurm.conf": "KillWait=30\n", "nccl.xml": "<system>" * 12_500}}
    assert ConfigFilesProvider().diff(ID, outputs, added).changes is True
    assert capsys.readouterr().out.splitlines() == [
        "slurm-config/nccl.xml: new, 1 line, 100000 bytes, which begin with",
        f"+{'<system>' * 25}",
    ]


def test_a_long_file_that_changes_is_a_difference(world: SmallWorld, capsys: pytest.CaptureFixture[str]) -> None:
    script = "".join(f"line {number}\n" for number in range(500))
    files = {"slurm.conf": "KillWait=30\n", "new.sh": script}
    outputs = ConfigFilesProvider().create({**CONFIG_FILES, "files": files}).outs or {}
    end_run()
    news = {**CONFIG_FILES, "files": {**files, "new.sh": script.replace("line 7\n", "line seven\n")}}
    assert ConfigFilesProvider().diff(ID, outputs, news).changes is True
    assert capsys.readouterr().out.splitlines()[-4:] == [" line 6", "-line 7", "+line seven", " line 8"]


def test_a_file_that_someone_else_changed_is_a_change(world: SmallWorld, capsys: pytest.CaptureFixture[str]) -> None:
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
    assert "completes an interrupted change" in capsys.readouterr().out


def test_changed_labels_are_a_change_of_which_nothing_is_told(
    world: SmallWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = created(world)
    assert ConfigFilesProvider().diff(ID, outputs, {**CONFIG_FILES, "labels": {"team": "ml"}}).changes is True
    assert capsys.readouterr().out == ""


def test_a_cluster_that_cannot_be_reached_counts_as_changed_and_is_reported(
    world: SmallWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = created(world)
    world.unreachable = True
    assert ConfigFilesProvider().diff(ID, outputs, dict(CONFIG_FILES)).changes is True
    assert "cannot compare with the live files: The Kubernetes API" in capsys.readouterr().out


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
