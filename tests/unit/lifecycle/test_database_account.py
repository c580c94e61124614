"""A rotated password: slurmdbd gets into its database at every moment, wherever the rotation is interrupted."""

import contextlib
from typing import Any

import pytest

from soperator_pulumi.errors import ConfigRefusedError, DatabaseError, NotReadyError
from soperator_pulumi.lifecycle.database_account import DatabaseAccountProvider
from soperator_pulumi.lifecycle.secret_files import SecretFilesProvider
from soperator_pulumi.lifecycle.superseded import CREATED
from soperator_pulumi.operations.database.accounts import accepted_hashes, native_hash
from soperator_pulumi.render.passwords import quoted_password
from tests.fakes.accounting import DENIED, SECRET
from tests.fakes.mariadb import USER, DatabaseWorld
from tests.fakes.objects import NAMESPACE, NAMESPACE_PATH, PODS, SELECTOR, KilledError
from tests.unit.lifecycle.test_hidden_values import PROPS

OLD, NEW, NEWER = "old-hunter2", "new-hunter3", "newer-hunter4"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> DatabaseWorld:
    """A cluster that was deployed with the old password."""
    world = DatabaseWorld()
    world.objects[NAMESPACE_PATH] = {"metadata": {"uid": "recorded", "labels": {}}}
    world.connect(monkeypatch)
    CREATED.clear()
    world.add_database(OLD)
    return world


@pytest.fixture
def stack(world: DatabaseWorld) -> "Stack":
    stack = Stack(world)
    stack.up(OLD)
    world.add_slurmdbd()
    return stack


def account(password: str, *, accepts_former: bool) -> dict[str, Any]:
    return {
        "namespace": NAMESPACE,
        "namespace_uid": "recorded",
        "owner": "project.dev.hpc",
        "selector": SELECTOR,
        "user": USER,
        "password_hash": native_hash(password),
        "accepts_former": accepts_former,
        "config_secret": SECRET,
    }


class Stack:
    """The three resources of a rotation in their order, with what an engine records of each."""

    def __init__(self, world: DatabaseWorld) -> None:
        self.world = world
        self.state: dict[str, tuple[str, dict[str, Any]]] = {}

    def up(self, password: str) -> list[str]:
        """Deploy, and return the names of the resources that changed."""
        line = f"StoragePass={quoted_password(password)}"
        files = {**PROPS, "files": {"slurmdbd.conf": f"DbdHost=accounting\n{line}\n"}}
        steps: list[tuple[str, Any, dict[str, Any]]] = [
            ("accepted", DatabaseAccountProvider(), account(password, accepts_former=True)),
            ("files", SecretFilesProvider(), files),
            ("alone", DatabaseAccountProvider(), account(password, accepts_former=False)),
        ]
        changed = []
        for name, provider, props in steps:
            if name not in self.state:
                made = provider.create(dict(props))
                self.state[name] = made.id, made.outs
                changed.append(name)
                continue
            id_, outs = self.state[name]
            if provider.diff(id_, outs, dict(props)).changes:
                self.state[name] = id_, provider.update(id_, outs, dict(props)).outs
                changed.append(name)
        return changed


def test_an_account_of_a_new_cluster_stays_as_it_is(world: DatabaseWorld, stack: Stack) -> None:
    assert world.hashes == (native_hash(OLD),)
    assert stack.up(OLD) == []


def test_a_rotation_ends_with_the_new_password_alone(world: DatabaseWorld, stack: Stack) -> None:
    assert stack.up(NEW) == ["accepted", "files", "alone"]
    assert world.hashes == (native_hash(NEW),)
    assert not world.locked_out
    assert stack.up(NEW) == []


def test_a_password_that_slurmdbd_conf_has_in_quotes_is_rotated_as_well(world: DatabaseWorld, stack: Stack) -> None:
    stack.up("new # hunter3")
    assert world.hashes == (native_hash("new # hunter3"),)


@pytest.mark.parametrize("survived_calls", range(60))
@pytest.mark.parametrize("then", [NEW, OLD, NEWER], ids=["again", "reverted", "with another one"])
def test_a_rotation_that_is_killed_at_any_call_is_completed_by_the_next_run(
    world: DatabaseWorld, stack: Stack, survived_calls: int, then: str
) -> None:
    world.calls_left = survived_calls
    with contextlib.suppress(KilledError):
        stack.up(NEW)
    world.calls_left = None
    stack.up(then)
    assert not world.locked_out
    assert world.hashes == (native_hash(then),)
    assert (world.slurmdbd_runs_on or {})["slurmdbd.conf"].endswith(f"StoragePass={then}\n")
    assert stack.up(then) == []


def test_a_slurmdbd_that_does_not_start_keeps_the_former_password(world: DatabaseWorld, stack: Stack) -> None:
    world.complains = lambda files: DENIED if NEW in files["slurmdbd.conf"] else ""
    with pytest.raises(ConfigRefusedError):
        stack.up(NEW)
    assert world.hashes == (native_hash(NEW), native_hash(OLD))
    assert stack.up(OLD) == ["accepted", "alone"], "the files are in force again already"
    assert [*world.hashes] == [native_hash(OLD)]


def test_a_former_password_stays_while_slurmdbd_may_use_it(
    world: DatabaseWorld, stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in a run with targets, which leaves the files out."""
    del stack
    alone = account(NEW, accepts_former=False)
    assert DatabaseAccountProvider().diff("", account(OLD, accepts_former=False), alone).changes
    assert "loses its former password once slurmdbd has the new one" in capsys.readouterr().out
    with pytest.raises(NotReadyError, match="slurmdbd does not run on the new one yet"):
        DatabaseAccountProvider().update("", {}, alone)
    assert world.hashes == (native_hash(OLD),)


def test_a_database_that_is_down_stands_in_the_way_of_a_rotation_alone(world: DatabaseWorld, stack: Stack) -> None:
    del stack
    del world.objects[f"{PODS}/database-0"]
    props = account(OLD, accepts_former=True)
    assert DatabaseAccountProvider().diff("", props, props).changes is False
    assert DatabaseAccountProvider().diff("", props, account(NEW, accepts_former=True)).changes
    with pytest.raises(NotReadyError, match=r"MariaDB does not answer after 120 s: .* pod hpc/database-0 is missing"):
        DatabaseAccountProvider().update("", props, account(NEW, accepts_former=True))


def test_a_database_that_is_restarting_is_waited_for(world: DatabaseWorld, stack: Stack) -> None:
    del stack
    world.add_database(OLD, "creating")
    world.clock.after(20, lambda: world.add_database(OLD))
    DatabaseAccountProvider().update("", {}, account(NEW, accepts_former=True))
    assert world.hashes == (native_hash(NEW), native_hash(OLD))


def test_words_of_mariadb_come_without_the_statement_and_the_hash(world: DatabaseWorld, stack: Stack) -> None:
    del stack
    world.refuses_statement = f"ERROR 1064 (42000) at line 1: syntax error near '{native_hash(NEW)}'"
    with pytest.raises(DatabaseError) as refused:
        DatabaseAccountProvider().update("", {}, account(NEW, accepts_former=True))
    assert str(refused.value).endswith("refuses: ERROR 1064 (42000) at line 1: syntax error near '[secret]'")


def test_the_hash_is_that_of_mariadb() -> None:
    assert native_hash("one") == "*74445CD742AF268FD22866DA0D12758951D638F7", "SELECT PASSWORD('one')"


def test_other_ways_into_an_account_are_no_passwords() -> None:
    password = '{"plugin": "mysql_native_password", "authentication_string": "*A"}'
    assert accepted_hashes(f'{{"plugin": "unix_socket", "auth_or": [{{}}, {password}]}}') == ("*A",)
