"""The way to another version of Slurm: its order, the dump before it, and no way back."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from soperator_pulumi.errors import ConfigRefusedError, DatabaseError
from soperator_pulumi.kube.verbs import Json, revisions_path
from soperator_pulumi.operations.slurm_upgrade import OTHER_VERSION, VERSION_ANNOTATION, SlurmUpgrade
from soperator_pulumi.slurm.transport import Answer
from tests.fakes.objects import CREATED, NAMESPACE, PODS, SELECTOR, STATEFUL_SETS, Objects, labels_of
from tests.fakes.pods import a_pod

PARTS = {"accounting": "accounting", "controller": "controller", "cpu": "worker", "login": "login"}
"""StatefulSets with Slurm in their pods, with their components."""


@dataclass(eq=False)
class World(Objects):
    """An API server, with a database that answers."""

    commands: list[Sequence[str]] = field(default_factory=list)
    answer: Answer = field(default_factory=lambda: Answer(0, "", ""))
    reported: list[str] = field(default_factory=list)

    def transport(self, _namespace: str, pod: str, container: str, *, coreutils: bool = True) -> "World":
        assert (pod, container, coreutils) == ("database-0", "mariadb", True)
        return self

    def run(self, command: Sequence[str], *, timeout_seconds: float, stdin: bytes = b"") -> Answer:
        del timeout_seconds, stdin
        self.commands.append(command)
        return self.answer


def a_stateful_set(name: str, component: str, version: str | None) -> Json:
    marks = {} if version is None else {VERSION_ANNOTATION: version}
    metadata = {"name": name, "labels": labels_of(component), "annotations": marks}
    return {"metadata": metadata, "status": {"currentRevision": "old", "updateRevision": "new"}}


def a_world(versions: dict[str, str | None] | None = None, *, database: bool = True) -> World:
    """Return a cluster of 24.11, with other versions of some parts."""
    parts = {**dict.fromkeys(PARTS, "24.11"), **(versions or {})}
    world = World({f"{STATEFUL_SETS}/{name}": a_stateful_set(name, PARTS[name], v) for name, v in parts.items()})
    if database:
        world.objects[f"{STATEFUL_SETS}/database"] = a_stateful_set("database", "database", None)
    return world


def upgrade(world: World, version: str = "26.05") -> SlurmUpgrade:
    return SlurmUpgrade(world, NAMESPACE, "hpc", SELECTOR, version, world.reported.append)  # type: ignore[arg-type] # a fake


def with_pod(
    world: World, name: str, container: str, state: str, revision: str = "new", *, created: str = CREATED
) -> None:
    """Add a pod, and the revision of its template, which is a minute older than a pod is by default."""
    world.objects[f"{revisions_path(NAMESPACE)}/new"] = {"metadata": {"creationTimestamp": "2026-11-21T07:59:00Z"}}
    pod = a_pod(f"{name}-0", PARTS[name], container, state, uid="1", creationTimestamp=created)
    pod["metadata"]["labels"] = {**pod["metadata"]["labels"], "controller-revision-hash": revision}
    world.objects[f"{PODS}/{name}-0"] = pod


def test_the_steps_come_in_slurms_order() -> None:
    lines = "\n".join(upgrade(a_world()).steps())
    words = [
        "hpc: the upgrade of Slurm 24.11 to 26.05 begins",
        "dump",
        "slurmdbd,",
        "slurmctld;",
        "slurmd of cpu",
        "login",
    ]

    assert sorted(words, key=lines.index) == words
    assert "a return to 24.11 is impossible" in lines


def test_a_cluster_without_an_annotation_is_of_the_oldest_version() -> None:
    assert upgrade(a_world(dict.fromkeys(PARTS))).behind() == [*PARTS]
    assert upgrade(a_world(dict.fromkeys(PARTS)), "24.11").behind() == []


def test_an_interrupted_upgrade_names_what_is_left() -> None:
    lines = "\n".join(upgrade(a_world({"accounting": "26.05", "controller": "26.05"})).steps())

    assert "24.11 to 26.05 continues" in lines
    assert "slurmd of cpu" in lines
    assert "slurmdbd," not in lines
    assert "dump" not in lines


STEPS = ["dump of the database", "slurmdbd,", "slurmctld;", "slurmd of", "login nodes"]
"""Steps of an upgrade, by words of the preview's lines, in Slurm's order."""


def test_slurmrestd_follows_slurmctld_and_the_versions_of_its_api_that_are_left_are_named() -> None:
    world = a_world()
    world.objects[f"{STATEFUL_SETS}/rest"] = a_stateful_set("rest", "rest", "24.11")
    lines = "\n".join(upgrade(world).steps())

    words = ["slurmctld;", "slurmrestd;", "slurmd of cpu,"]
    assert sorted(words, key=lines.index) == words
    assert "its API has only the versions v0.0.42, v0.0.43, v0.0.44, v0.0.45" in lines
    assert "slurmrestd" not in "\n".join(upgrade(a_world()).steps())


def test_the_steps_say_that_a_database_elsewhere_is_not_dumped() -> None:
    elsewhere = "\n".join(upgrade(a_world(database=False)).steps())

    assert elsewhere.index("no dump: the database is external") < elsewhere.index("slurmdbd,")
    assert "no dump" not in "\n".join(upgrade(a_world()).steps())


@pytest.mark.parametrize("done", range(len(PARTS) + 1))
def test_an_upgrade_killed_after_any_step_continues_with_those_after_it(done: int) -> None:
    world = a_world(dict.fromkeys([*PARTS][:done], "26.05"))
    left = [] if done == len(PARTS) else STEPS[done + 1 :] if done else STEPS

    lines = "\n".join(upgrade(world).steps())
    upgrade(world).dump()

    assert [words for words in STEPS if words in lines] == left
    # A dump after slurmdbd's start would be one of converted tables, in the place of the one from before.
    assert len(world.commands) == (not done)


def test_an_upgrade_killed_between_two_node_sets_continues_with_the_second() -> None:
    world = a_world({"accounting": "26.05", "controller": "26.05", "cpu": "26.05"})
    world.objects[f"{STATEFUL_SETS}/gpu"] = a_stateful_set("gpu", "worker", "24.11")

    (line,) = (line for line in upgrade(world).steps() if "slurmd of" in line)

    assert line.startswith("  slurmd of gpu,")


def test_a_pool_of_login_nodes_is_upgraded_with_the_login_nodes() -> None:
    world = a_world(dict.fromkeys(PARTS, "26.05"))
    world.objects[f"{STATEFUL_SETS}/login-gpu"] = a_stateful_set("login-gpu", "login-gpu", "24.11")

    assert upgrade(world).behind() == ["login-gpu"]
    lines = [*upgrade(world).steps()]
    assert [line for line in lines if line.startswith("  clients")] == [
        "  clients in the jail: login nodes restart, which ends their sessions"
    ]
    assert "slurmd of" not in "\n".join(lines)


@pytest.mark.parametrize("part", ["accounting", "controller", "cpu", "login"])
def test_a_way_back_from_the_middle_of_an_upgrade_is_refused(part: str) -> None:
    """The part is the last that has the new version, with all before it."""
    names = [*PARTS]
    world = a_world(dict.fromkeys(names[: names.index(part) + 1], "26.05"))
    with_pod(world, "accounting", "slurmdbd", "running")

    with pytest.raises(ConfigRefusedError, match=r"slurmdbd 26\.05 has written"):
        upgrade(world, "24.11").refuse_way_back()


@pytest.mark.parametrize("fate", ["exit 1", "kill -KILL $PPID; sleep 9"], ids=["fails", "is killed with its shell"])
def test_a_dump_that_is_not_whole_never_has_the_name_of_one(fate: str, tmp_path: Path) -> None:
    world = a_world()
    upgrade(world).dump()
    ((*command, _),) = world.commands
    client = tmp_path / "mariadb-dump"
    client.write_text(f"#!/bin/sh\necho half\n{fate}\n")
    client.chmod(0o755)
    dump = tmp_path / "before.sql"
    dump.write_text("whole")

    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([*command, str(dump)], env=environment, check=False)

    assert done.returncode != 0
    assert dump.read_text() == "whole"


def test_a_dump_that_fails_leaves_the_volume_its_room(tmp_path: Path) -> None:
    world = a_world()
    upgrade(world).dump()
    ((*command, _),) = world.commands
    client = tmp_path / "mariadb-dump"
    client.write_text('#!/bin/sh\ntest -e "$PART" && cat "$PART" >&2\necho half\nexit 5\n')
    client.chmod(0o755)
    part = tmp_path / "before.sql.part"
    part.write_text("of a run that was killed")

    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PART": str(part)}
    whole = [*command, str(tmp_path / "before.sql")]
    done = subprocess.run(whole, env=environment, check=False, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (5, "")
    assert not part.exists()


def test_a_cluster_that_has_the_version_has_no_steps() -> None:
    assert [*upgrade(a_world(), "24.11").steps()] == []


def test_the_database_is_dumped_before_slurmdbd_converts_it() -> None:
    world = a_world()
    upgrade(world).dump()

    (command,) = world.commands
    assert command[-1] == "/var/lib/mysql/before-slurm-26.05.sql"
    assert "mariadb-dump" in command[2]


@pytest.mark.parametrize(
    "world", [a_world({"accounting": "26.05"}), a_world(database=False)], ids=["slurmdbd is new", "no own database"]
)
def test_nothing_is_dumped_where_there_is_nothing_to_keep(world: World) -> None:
    upgrade(world).dump()

    assert world.commands == []


def test_a_dump_that_fails_stops_the_upgrade_with_the_words_of_mariadb() -> None:
    world = a_world()
    world.answer = Answer(1, "", "No space left on device")

    with pytest.raises(DatabaseError, match=r"(?s)nothing has been upgraded.*No space left on device"):
        upgrade(world).dump()


@pytest.mark.parametrize("state", ["running", "crashed", "restarted"])
@pytest.mark.parametrize(("part", "daemon"), [("accounting", "slurmdbd"), ("controller", "slurmctld")])
def test_a_way_back_is_refused_once_a_daemon_has_started(part: str, daemon: str, state: str) -> None:
    world = a_world({part: "26.05"})
    with_pod(world, part, daemon, state)

    with pytest.raises(ConfigRefusedError, match=rf"(?s){daemon} 26\.05 has written.*the dump of the database"):
        upgrade(world, "24.11").refuse_way_back()


def test_a_way_back_is_refused_where_no_one_knows_what_has_started() -> None:
    with pytest.raises(ConfigRefusedError, match=r"Set slurm\.version to 26\.05"):
        upgrade(a_world({"controller": "26.05"}), "24.11").refuse_way_back()


@pytest.mark.parametrize(("state", "revision"), [("no image", "new"), ("creating", "new"), ("running", "old")])
def test_an_upgrade_that_never_started_can_be_taken_back(state: str, revision: str) -> None:
    world = a_world({"controller": "26.05"})
    with_pod(world, "controller", "slurmctld", state, revision)

    upgrade(world, "24.11").refuse_way_back()


@pytest.mark.parametrize("state", ["no image", "creating", "unschedulable"])
def test_a_way_back_is_refused_where_the_pod_is_the_successor_of_one_that_may_have_run(state: str) -> None:
    world = a_world({"accounting": "26.05"})
    with_pod(world, "accounting", "slurmdbd", state, created="2026-11-21T08:30:00Z")

    with pytest.raises(ConfigRefusedError, match=r"Set slurm\.version to 26\.05"):
        upgrade(world, "24.11").refuse_way_back()


def test_a_way_back_is_refused_where_no_one_knows_when_the_upgrade_began() -> None:
    world = a_world({"accounting": "26.05"})
    with_pod(world, "accounting", "slurmdbd", "creating")
    del world.objects[f"{revisions_path(NAMESPACE)}/new"]

    with pytest.raises(ConfigRefusedError, match=r"Set slurm\.version to 26\.05"):
        upgrade(world, "24.11").refuse_way_back()


def test_an_upgrade_with_images_of_another_version_can_be_taken_back() -> None:
    world = a_world({"accounting": "26.05"})
    with_pod(world, "accounting", "slurmdbd", "crashed")
    (status,) = world.objects[f"{PODS}/accounting-0"]["status"]["containerStatuses"]
    status["lastState"]["terminated"]["exitCode"] = OTHER_VERSION

    upgrade(world, "24.11").refuse_way_back()


@pytest.mark.parametrize("state", ["no image", "creating"])
def test_a_way_back_is_refused_while_the_pod_of_a_completed_upgrade_starts_again(state: str) -> None:
    world = a_world({"controller": "26.05"})
    world.objects[f"{STATEFUL_SETS}/controller"]["status"]["currentRevision"] = "new"
    with_pod(world, "controller", "slurmctld", state)

    with pytest.raises(ConfigRefusedError, match=r"Set slurm\.version to 26\.05"):
        upgrade(world, "24.11").refuse_way_back()


def test_a_setting_that_the_running_slurmctld_does_not_know_comes_after_the_upgrade() -> None:
    with pytest.raises(ConfigRefusedError, match=r"24\.11 does not know MetricsType.*only slurm\.version changed"):
        upgrade(a_world()).refuse_new_settings(["MetricsType"])
    upgrade(a_world(dict.fromkeys(PARTS, "26.05"))).refuse_new_settings(["MetricsType"])
