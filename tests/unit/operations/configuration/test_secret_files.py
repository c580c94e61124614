"""A changed Secret: slurmdbd answers with the new files, or with the old ones, wherever the change is interrupted."""

import base64
import contextlib
from collections.abc import Mapping

import pytest

from soperator_pulumi.errors import ConfigRefusedError, NotReadyError, TransportError
from soperator_pulumi.operations.configuration.concealed import Concealed, changed_keys
from soperator_pulumi.operations.configuration.desired_files import (
    AfterSync,
    DesiredFiles,
    FilesKind,
    LiveFiles,
    Reader,
)
from soperator_pulumi.operations.configuration.slurmdbd import Slurmdbd
from soperator_pulumi.operations.configuration.transaction import SYNC_ANNOTATION, Transaction
from tests.fakes.accounting import DENIED, POD_PATH, SECRET, SECRET_PATH, AccountingWorld
from tests.fakes.objects import NAMESPACE, SELECTOR, KilledError

BASE = "DbdHost=accounting\nStorageHost=database\n"
OLD = {"slurmdbd.conf": f"{BASE}StoragePass=old-hunter2\n"}
NEW = {"slurmdbd.conf": f"{BASE}StoragePass=new-hunter3\n"}


def secret_files(files: Mapping[str, str]) -> DesiredFiles:
    return DesiredFiles(
        kind=FilesKind.SECRET,
        namespace=NAMESPACE,
        name=SECRET,
        labels={"team": "hpc"},
        annotations={},
        files=dict(files),
        selector=SELECTOR,
        readers=(Reader(component="accounting", container="slurmdbd"),),
        after_sync=AfterSync.SLURMDBD,
    )


def put(world: AccountingWorld, files: Mapping[str, str], known_good: Mapping[str, str] | None = None) -> None:
    slurmdbd = Slurmdbd(world, NAMESPACE, SELECTOR, world.reported.append, world.clock)
    transaction = Transaction(world, {AfterSync.SLURMDBD: slurmdbd}, world.reported.append, world.clock)
    transaction.put(secret_files(files), known_good)


def in_force(world: AccountingWorld, files: Mapping[str, str]) -> bool:
    return LiveFiles(world.objects[SECRET_PATH]).is_as(secret_files(files))


@pytest.fixture
def world() -> AccountingWorld:
    """A cluster whose slurmdbd runs on the old files."""
    world = AccountingWorld()
    put(world, OLD)
    world.add_slurmdbd()
    return world


def test_the_files_of_a_new_cluster_are_in_force_without_asking_anybody() -> None:
    world = AccountingWorld()
    put(world, OLD)
    assert in_force(world, OLD)
    assert world.objects[SECRET_PATH]["kind"] == "Secret"
    assert base64.b64decode(world.objects[SECRET_PATH]["data"]["slurmdbd.conf"]).decode() == OLD["slurmdbd.conf"]
    assert world.commands == []
    assert world.clock.time == 0


def test_slurmdbd_restarts_in_place_on_the_new_file_and_is_waited_for(world: AccountingWorld) -> None:
    uid = world.objects[POD_PATH]["metadata"]["uid"]
    put(world, NEW, OLD)
    assert world.slurmdbd_runs_on == NEW
    assert world.objects[POD_PATH]["metadata"]["uid"] == uid
    assert in_force(world, NEW)


def test_a_slurmdbd_whose_files_are_in_force_does_not_restart(world: AccountingWorld) -> None:
    before = dict(world.objects[POD_PATH])
    put(world, OLD, OLD)
    assert in_force(world, OLD)
    assert world.commands == []
    assert world.objects[POD_PATH] == before


def test_a_password_that_the_database_refuses_ends_with_the_old_one_and_slurmdbds_words(world: AccountingWorld) -> None:
    world.complains = lambda files: f"[2026-11-21T08:00:00] {DENIED}" if files == NEW else ""
    with pytest.raises(ConfigRefusedError, match="Access denied for user 'slurm'") as refused:
        put(world, NEW, OLD)
    assert "The old files are in effect again." in str(refused.value)
    assert "2026-11-21" not in str(refused.value), "a line that is repeated is reported once"
    assert world.slurmdbd_runs_on == OLD
    assert in_force(world, OLD)


def test_a_slurmdbd_that_ends_runs_on_the_old_file_again(world: AccountingWorld) -> None:
    world.dies = lambda files: "slurmdbd: fatal: slurmdbd.conf: StorageHost not set" if files == NEW else ""
    with pytest.raises(ConfigRefusedError, match=r"\nfatal: slurmdbd\.conf: StorageHost not set\n"):
        put(world, NEW, OLD)
    assert world.slurmdbd_runs_on == OLD
    assert in_force(world, OLD)


def test_errors_that_may_pass_are_waited_out_before_the_old_file_is_restored(world: AccountingWorld) -> None:
    world.complains = lambda files: "error: mysql_real_connect failed: 2002 Can't connect" if files == NEW else ""
    with pytest.raises(ConfigRefusedError, match=r"does not answer after 180 s(.|\n)*2002 Can't connect"):
        put(world, NEW, OLD)
    assert world.slurmdbd_runs_on == OLD
    assert any("waits for slurmdbd" in line for line in world.reported)


def test_a_slurmdbd_that_works_for_long_without_an_error_is_left_alone(world: AccountingWorld) -> None:
    """It may convert its tables, which must not be interrupted."""
    world.is_silent = lambda files: files == NEW
    with pytest.raises(NotReadyError, match=r"It reports no error\. Run again to continue the wait"):
        put(world, NEW, OLD)
    assert world.slurmdbd_runs_on == NEW
    assert not in_force(world, NEW)


def test_errors_of_the_former_run_are_none_of_the_new_one(world: AccountingWorld) -> None:
    world.run_logs["containerd://1"] = DENIED
    put(world, NEW, OLD)
    assert in_force(world, NEW)


@pytest.mark.parametrize("survived_calls", range(20))
@pytest.mark.parametrize("then", [NEW, OLD], ids=["again", "reverted"])
def test_a_run_after_one_that_was_killed_at_any_call_brings_its_own_files_into_force(
    world: AccountingWorld, survived_calls: int, then: Mapping[str, str]
) -> None:
    world.calls_left = survived_calls
    with contextlib.suppress(KilledError):
        put(world, NEW, OLD)
    world.calls_left = None
    put(world, then, OLD)
    assert world.slurmdbd_runs_on == then
    assert in_force(world, then)


@pytest.mark.parametrize("survived_calls", range(40))
def test_a_restore_that_is_killed_at_any_call_is_completed_by_the_next_run(
    world: AccountingWorld, survived_calls: int
) -> None:
    world.complains = lambda files: DENIED if files == NEW else ""
    world.calls_left = survived_calls
    with pytest.raises((KilledError, ConfigRefusedError)):
        put(world, NEW, OLD)
    world.calls_left = None
    put(world, OLD, OLD)
    assert world.slurmdbd_runs_on == OLD
    assert in_force(world, OLD)


def test_a_signal_that_never_arrived_is_sent_again(world: AccountingWorld) -> None:
    world.lost_signals = 1
    put(world, NEW, OLD)
    assert world.slurmdbd_runs_on == NEW


def test_a_slurmdbd_that_is_down_gets_a_new_pod_instead_of_a_kubelets_pause(world: AccountingWorld) -> None:
    world.dies = lambda files: "fatal: gone" if files == OLD else ""
    world.signal_slurmdbd()
    world.clock.sleep(2)
    put(world, NEW, OLD)
    assert world.slurmdbd_runs_on == NEW
    assert in_force(world, NEW)


def test_a_kubelet_that_pauses_before_it_starts_slurmdbd_again_gets_a_new_pod(world: AccountingWorld) -> None:
    world.pauses = True
    put(world, NEW, OLD)
    assert world.slurmdbd_runs_on == NEW
    assert world.clock.time < 10


def test_a_slurmdbd_that_waits_for_a_machine_is_not_waited_for(world: AccountingWorld) -> None:
    world.add_slurmdbd("unschedulable")
    put(world, NEW, OLD)
    assert in_force(world, NEW)
    assert world.clock.time < 1
    assert any("It reads the files when it starts" in line for line in world.reported)


def test_a_slurmdbd_that_is_just_being_replaced_is_waited_for(world: AccountingWorld) -> None:
    world.delete(POD_PATH)
    put(world, NEW, OLD)
    assert world.slurmdbd_runs_on == NEW


def test_a_pod_carries_nothing_that_depends_on_the_files(world: AccountingWorld) -> None:
    put(world, NEW, OLD)
    first = world.objects[POD_PATH]["metadata"]["annotations"][SYNC_ANNOTATION]
    put(world, OLD, NEW)
    put(world, NEW, OLD)
    second = world.objects[POD_PATH]["metadata"]["annotations"][SYNC_ANNOTATION]
    assert first != second
    assert secret_files(NEW).digest not in {first, second}


# -- texts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        (OLD, NEW, ["s/slurmdbd.conf: StoragePass changed"]),
        (OLD, {"slurmdbd.conf": "StoragePass=x\nDbdPort=1\n"}, [
            "s/slurmdbd.conf: DbdHost changed, DbdPort changed, StorageHost changed, StoragePass changed"
        ]),
        ({"client.cnf": "[client]\npassword = a\n"}, {"client.cnf": "[client]\npassword = b\n"}, [
            "s/client.cnf: password changed"
        ]),
        ({"a.conf": "# old\nA=1\n"}, {"a.conf": "# new\nA=1\n"}, ["s/a.conf: changed"]),
        ({"jwt.key": "abc=\ndef=="}, {"jwt.key": "abc=\nghi=="}, ["s/jwt.key: changed"]),
        ({"a.conf": "A=1\nhunter2"}, {"a.conf": "A=1\nhunter3"}, ["s/a.conf: changed"]),
        ({}, NEW, ["s/slurmdbd.conf: added"]),
        (NEW, {}, ["s/slurmdbd.conf: removed"]),
        (NEW, NEW, []),
    ],
)  # fmt: skip
def test_a_preview_names_files_and_keys_alone(old: Mapping[str, str], new: Mapping[str, str], lines: list[str]) -> None:
    assert [*changed_keys("s", old, new)] == lines


def test_a_value_is_hidden_in_words_of_others_and_other_settings_are_not() -> None:
    ends_with_a_backslash = Concealed.of({"slurmdbd.conf": "StoragePass=a\\\\\nStorageHost=database\n"})
    assert (
        ends_with_a_backslash.text("access with a\\ to database refused") == "access with [secret] to database refused"
    )
    hidden = Concealed.of({"slurmdbd.conf": 'StoragePass="a b"\nStorageHost=database\n', "key": "line 1\nline 2\n"})
    words = "debug2: StoragePass = a b, host database, key line 2"
    assert hidden.text(words) == "debug2: StoragePass = [secret], host database, key [secret]"


def test_a_secret_is_hidden_as_the_daemon_prints_it_too() -> None:
    hidden = Concealed.of({"slurmdbd.conf": 'StoragePass="a\\#b c\\\\d"\n'})

    assert (
        hidden.text(r'in the file "a\#b c\\d", for the daemon a#b c\d')
        == "in the file [secret], for the daemon [secret]"
    )


def test_an_error_keeps_its_kind_and_loses_the_values() -> None:
    hidden = Concealed.of(OLD)
    with pytest.raises(TransportError) as raised, hidden.in_errors():
        raise TransportError("it was old-hunter2")
    assert str(raised.value) == "it was [secret]"
