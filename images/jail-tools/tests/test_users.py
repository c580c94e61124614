"""The sidecar that keeps accounts: declared ones and those made inside the jail, for daemons and for the tree."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from jail_testing.jails import GROUP, PASSWD, SHADOW, Jail, command, in_memory

from jail_tools import claim, resolve_beneath
from jail_tools.accounts import account_files, account_sync
from jail_tools.accounts.account_resolution import SYSTEM_NAMES
from jail_tools.accounts.account_sync import AccountSync
from jail_tools.accounts.tables import AccountFile, Table, parse
from soperator_pulumi.spec import user as user_spec
from tests.waiting import wait_until

SLURM = {
    "passwd": "slurm:x:64030:64030::/nonexistent:/usr/sbin/nologin\n",
    "group": "slurm:x:64030:\n",
    "shadow": "slurm:*:19000:0:99999:7:::\n",
}
ALICE = {
    "passwd": "alice:x:2001:2001::/home/alice:/bin/bash\n",
    "group": "alice:x:2001:\nphysics:x:3000:alice\n",
    "shadow": "alice:*:19000:0:99999:7:::\n",
}
BOB = ("bob:x:1500:1500:Bob:/home/bob:/bin/sh\n", "bob:x:1500:\n", "bob:$y$secret:19500:0:99999:7:::\n")


class Sidecar(AccountSync):
    """One in a folder of its own, with the users that a ConfigMap would declare."""

    def declare(self, *users: dict[str, str]) -> None:
        for name in SLURM:
            (self.declared / name).write_text("".join(user[name] for user in (SLURM, *users)))

    def known(self, name: str) -> list[str]:
        return (self.out / name).read_text().splitlines()


@pytest.fixture
def jail() -> Iterator[Jail]:
    with in_memory() as folder:
        yield Jail(folder)


@pytest.fixture
def sidecar(tmp_path: Path, jail: Jail) -> Sidecar:
    (tmp_path / "declared").mkdir()
    (tmp_path / "out").mkdir()
    sidecar = Sidecar(jail.path, tmp_path / "declared", tmp_path / "out", write_tree=True)
    sidecar.declare(ALICE)
    return sidecar


def add(root: Path, passwd: str = "", group: str = "", shadow: str = "") -> None:
    """Do what useradd does in the admin shell."""
    for name, lines in (("passwd", passwd), ("group", group), ("shadow", shadow)):
        with (root / "etc" / name).open("a") as file:
            file.write(lines)


def test_before_there_is_a_tree_the_declared_users_are_known(sidecar: Sidecar) -> None:
    sidecar.look()

    assert {name: (sidecar.out / name).read_text() for name in SLURM} == {
        name: "".join(sorted((SLURM[name] + ALICE[name]).splitlines(keepends=True), key=by_id)) for name in SLURM
    }


def by_id(line: str) -> tuple[int, str]:
    fields = line.split(":")
    return (int(fields[2]) if len(fields) < 9 else 0, fields[0])


def test_what_was_merged_is_reported_last_by_its_checksums(sidecar: Sidecar) -> None:
    sidecar.look()

    sums = (sidecar.out / "declared.sha256").read_text()
    assert sums == "".join(
        f"{hashlib.sha256((sidecar.declared / name).read_bytes()).hexdigest()}  {name}\n" for name in SLURM
    )


def test_a_user_added_inside_the_jail_is_known_to_the_daemons(sidecar: Sidecar, jail: Jail) -> None:
    tree = jail.populate("a")
    add(tree.root, *BOB)

    sidecar.look()

    assert BOB[0].strip() in sidecar.known("passwd")
    assert BOB[1].strip() in sidecar.known("group")


def test_no_password_of_the_jail_leaves_it_but_a_lock_does(sidecar: Sidecar, jail: Jail) -> None:
    tree = jail.populate("a")
    add(tree.root, *BOB)
    add(tree.root, "eve::1501:1501::/home/eve:/bin/sh\n", "eve:x:1501:\n", "eve:!$y$secret:19500:0:99999:7::20000:\n")

    sidecar.look()

    assert "bob:*:19500:0:99999:7:::" in sidecar.known("shadow")
    assert "eve:!:19500:0:99999:7::20000:" in sidecar.known("shadow")
    assert "eve:x:1501:1501::/home/eve:/bin/sh" in sidecar.known("passwd")
    assert (sidecar.out / "shadow").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "line",
    [
        "daemon2:x:200:200::/:/bin/sh\n",
        "munge:x:1600:1600::/:/bin/sh\n",
        "nothing:x:65534:65534::/:/bin/sh\n",
        "root2:x:0:0::/root:/bin/sh\n",
    ],
)
def test_the_systems_own_accounts_stay_in_the_jail(sidecar: Sidecar, jail: Jail, line: str) -> None:
    add(jail.populate("a").root, passwd=line)

    sidecar.look()

    assert len(sidecar.known("passwd")) == 2


@pytest.mark.parametrize(
    ("gid", "said"),
    [
        ("0", "the primary group has the id 0, which is the system's"),
        ("100", "the primary group has the id 100, which is the system's"),
        ("65534", "the primary group has the id 65534, which is the system's"),
        ("64031", "64031 is the id of munge on every node"),
        ("4294967296", "4294967296 is not an id"),
    ],
)
def test_a_user_whose_primary_group_is_the_systems_is_left_out_and_named(
    sidecar: Sidecar, jail: Jail, capsys: pytest.CaptureFixture[str], gid: str, said: str
) -> None:
    add(jail.populate("a").root, passwd=f"eve:x:1501:{gid}::/home/eve:/bin/sh\n")

    sidecar.look()

    assert len(sidecar.known("passwd")) == 2
    assert f"users: user of the jail is left out: eve: {said}" in capsys.readouterr().out


def test_groups_of_the_system_do_not_count_and_their_members_are_reported(
    sidecar: Sidecar, jail: Jail, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = jail.populate("a")
    add(tree.root, *BOB)
    add(tree.root, group="adm:x:4:bob,alice\nwheel:x:10:bob\nmunge:x:64031:bob\nteam:x:1600:bob\n")

    sidecar.look()

    said = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in sidecar.known("group") if "bob" in line] == ["bob", "team"]
    what = "is in groups of the jail that are the system's, and do not count in sessions and jobs"
    assert {f"users: user bob {what}: adm, wheel", f"users: user alice {what}: adm"} <= {*said}


def test_declared_users_stand_in_the_trees_own_files(sidecar: Sidecar, jail: Jail) -> None:
    tree = jail.populate("a")

    sidecar.look()

    assert (tree.root / "etc/passwd").read_text() == PASSWD + ALICE["passwd"] + SLURM["passwd"]
    assert (tree.root / "etc/group").read_text() == GROUP + ALICE["group"] + SLURM["group"]
    assert (tree.root / "etc/shadow").stat().st_mode & 0o777 == 0o640


def test_nothing_is_written_when_nothing_changes(sidecar: Sidecar, jail: Jail) -> None:
    tree = jail.populate("a")
    sidecar.look()
    written = [path.stat().st_mtime_ns for folder in (tree.root / "etc", sidecar.out) for path in folder.iterdir()]

    sidecar.look()

    assert written == [
        path.stat().st_mtime_ns for folder in (tree.root / "etc", sidecar.out) for path in folder.iterdir()
    ]


def test_accounts_are_parsed_when_they_change_and_not_at_every_look(
    sidecar: Sidecar, jail: Jail, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[AccountFile] = []

    def parse_noted(kind: AccountFile, content: bytes) -> Table:
        parsed.append(kind)
        return parse(kind, content)

    for module in (account_sync, account_files):
        monkeypatch.setattr(module, "parse", parse_noted)
    tree = jail.populate("a")
    sidecar.look()
    sidecar.look()  # what the first one has written
    parsed.clear()

    sidecar.look()

    assert parsed == []
    add(tree.root, *BOB)
    sidecar.look()
    assert parsed
    assert BOB[0].strip() in sidecar.known("passwd")


def test_a_user_who_is_no_longer_declared_leaves_the_tree_again(sidecar: Sidecar, jail: Jail) -> None:
    tree = jail.populate("a")
    add(tree.root, *BOB)
    sidecar.look()

    sidecar.declare()
    sidecar.look()

    assert (tree.root / "etc/passwd").read_text() == PASSWD + BOB[0] + SLURM["passwd"]
    assert (tree.root / "etc/group").read_text() == GROUP + BOB[1] + SLURM["group"]
    assert (tree.root / "etc/shadow").read_text() == SHADOW + BOB[2] + SLURM["shadow"]


def test_a_removed_user_is_unknown_at_once_even_where_the_tree_cant_be_written(sidecar: Sidecar, jail: Jail) -> None:
    jail.populate("a")
    sidecar.look()
    login = Sidecar(sidecar.jail, sidecar.declared, sidecar.out, write_tree=False)

    login.declare()
    login.look()

    assert login.known("passwd") == [SLURM["passwd"].strip()]


def test_what_the_admin_changes_about_a_declared_user_stays(sidecar: Sidecar, jail: Jail) -> None:
    tree = jail.populate("a")
    sidecar.look()
    shadow = tree.root / "etc/shadow"
    shadow.write_text(shadow.read_text().replace("alice:*", "alice:$y$secret"))

    sidecar.look()
    assert "alice:$y$secret:" in shadow.read_text()

    sidecar.declare()
    sidecar.look()
    assert "alice" not in shadow.read_text()


def test_the_jails_own_members_of_a_declared_group_stay_when_the_declaration_changes(
    sidecar: Sidecar, jail: Jail
) -> None:
    tree = jail.populate("a")
    add(tree.root, *BOB)
    sidecar.look()
    group = tree.root / "etc/group"
    group.write_text(group.read_text().replace("physics:x:3000:alice", "physics:x:3000:alice,bob"))
    carol = {name: text.replace("alice", "carol").replace("2001", "2002") for name, text in ALICE.items()}

    sidecar.declare(
        {**ALICE, "group": "alice:x:2001:\ncarol:x:2002:\nphysics:x:3000:alice,carol\n"}, {**carol, "group": ""}
    )
    sidecar.look()

    assert "physics:x:3000:alice,bob,carol\n" in group.read_text()
    assert "physics:x:3000:alice,bob,carol" in sidecar.known("group")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("alice:x:1700:1700::/home/a:/bin/sh\n", "user alice has the id 1700 in the jail, and 2001 as declared"),
        ("mallory:x:2001:2001::/home/m:/bin/sh\n", "user mallory of the jail has the id 2001 of the declared alice"),
    ],
)
def test_a_clash_is_said_once_the_declared_one_counts_and_the_tree_is_left_alone(
    sidecar: Sidecar, jail: Jail, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    tree = jail.populate("a")
    add(tree.root, passwd=line)
    capsys.readouterr()

    for _ in range(3):
        sidecar.look()

    assert capsys.readouterr().out.count(said) == 1
    assert [found for found in sidecar.known("passwd") if ":2001:" in found] == [ALICE["passwd"].strip()]
    assert "alice:x:2001" not in (tree.root / "etc/passwd").read_text()
    assert line in (tree.root / "etc/passwd").read_text()


def test_a_user_who_was_there_before_is_not_removed_with_the_declaration(sidecar: Sidecar, jail: Jail) -> None:
    tree = jail.populate("a")
    add(tree.root, passwd=ALICE["passwd"])
    sidecar.look()

    sidecar.declare()
    sidecar.look()

    assert ALICE["passwd"] in (tree.root / "etc/passwd").read_text()


def test_a_tree_without_accounts_gets_them(sidecar: Sidecar, jail: Jail) -> None:
    tree = jail.populate("busybox", {"bin/busybox": "x", "etc/shadow": ""})
    (tree.root / "etc/shadow").unlink()

    sidecar.look()

    assert (tree.root / "etc/passwd").read_text() == ALICE["passwd"] + SLURM["passwd"]
    assert (tree.root / "etc/shadow").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("plant", ["link", "folder link", "fifo"])
def test_what_root_in_the_jail_plants_leads_nowhere(
    sidecar: Sidecar, jail: Jail, tmp_path: Path, capsys: pytest.CaptureFixture[str], plant: str
) -> None:
    tree = jail.populate("a")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "passwd").write_text("eve:x:1800:1800::/:/bin/sh\n")
    if plant == "folder link":
        (tree.root / "etc").rename(tree.root / "etc-old")
        (tree.root / "etc").symlink_to(outside)
    else:
        (tree.root / "etc/passwd").unlink()
        if plant == "link":
            (tree.root / "etc/passwd").symlink_to(outside / "passwd")
        else:
            os.mkfifo(tree.root / "etc/passwd")

    sidecar.look()

    assert (outside / "passwd").read_text() == "eve:x:1800:1800::/:/bin/sh\n"
    assert len(list(outside.iterdir())) == 1
    assert len(sidecar.known("passwd")) == 2
    assert "Until this is fixed, the jail's own users from the last successful read count" in capsys.readouterr().out


def test_a_tree_that_cant_be_read_for_a_moment_loses_no_one(sidecar: Sidecar, jail: Jail) -> None:
    tree = jail.populate("a")
    add(tree.root, *BOB)
    sidecar.look()
    (tree.root / "etc/passwd").rename(tree.root / "etc/passwd-away")
    (tree.root / "etc/passwd").mkdir()

    sidecar.declare()
    sidecar.look()

    assert sidecar.known("passwd") == [BOB[0].strip(), SLURM["passwd"].strip()]


def test_a_configuration_that_is_not_mounted_yet_removes_no_one(sidecar: Sidecar, jail: Jail) -> None:
    tree = jail.populate("a")
    sidecar.look()
    for path in sidecar.declared.iterdir():
        path.unlink()

    sidecar.look()

    assert ALICE["passwd"] in (tree.root / "etc/passwd").read_text()
    assert ALICE["passwd"].strip() in sidecar.known("passwd")


def test_files_are_read_as_of_one_version_while_the_kubelet_switches_them(sidecar: Sidecar) -> None:
    """As it does: a new folder, the link ..data renamed to point to it, the old folder removed."""
    sidecar.declare(ALICE)
    files = {path.name: path.read_text() for path in sidecar.declared.iterdir()}
    for name in files:
        (sidecar.declared / name).unlink()
    switched = threading.Event()

    def switch_often() -> None:
        for number in range(300):
            new = sidecar.declared / f"..{number}"
            new.mkdir()
            for name, text in files.items():
                (new / name).write_text(text)
            (sidecar.declared / "..new").symlink_to(new.name)
            (sidecar.declared / "..new").rename(sidecar.declared / "..data")
            if number:
                shutil.rmtree(sidecar.declared / f"..{number - 1}")
            switched.set()

    kubelet = threading.Thread(target=switch_often)
    kubelet.start()
    assert switched.wait(10)
    seen = set()
    while kubelet.is_alive():
        seen.add(len(sidecar._read_declared()))
    kubelet.join()

    assert seen == {3}


def test_an_active_link_that_leads_nowhere_keeps_the_declared_users(
    sidecar: Sidecar, jail: Jail, capsys: pytest.CaptureFixture[str]
) -> None:
    (jail.path / "active").symlink_to("/etc")

    sidecar.look()

    assert len(sidecar.known("passwd")) == 2
    assert "is not a symbolic link to trees/<tree>" in capsys.readouterr().out


def test_the_tree_is_not_written_while_useradd_holds_the_lock(sidecar: Sidecar, jail: Jail) -> None:
    """A lock as lckpwdf(3) takes it, held by another process."""
    tree = jail.populate("a")
    program = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); print('held'); input()"
    with subprocess.Popen(
        [sys.executable, "-u", "-c", program, tree.root / "etc/.pwd.lock"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as useradd:
        assert useradd.stdout is not None
        assert useradd.stdout.readline() == "held\n"
        sidecar.look()
        assert (tree.root / "etc/passwd").read_text() == PASSWD
        assert ALICE["passwd"].strip() in sidecar.known("passwd")
        useradd.communicate("\n")

    sidecar.look()

    assert ALICE["passwd"] in (tree.root / "etc/passwd").read_text()


def test_our_lock_keeps_useradd_waiting(jail: Jail) -> None:
    tree = jail.populate("a")
    with resolve_beneath.directory(str(tree.root)) as root, account_files.locked(root):
        program = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'w'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        done = subprocess.run(
            [sys.executable, "-c", program, tree.root / "etc/.pwd.lock"], capture_output=True, text=True, check=False
        )
    assert "BlockingIOError" in done.stderr


def test_names_that_the_images_have_are_those_that_the_specification_refuses() -> None:
    assert SYSTEM_NAMES == user_spec.SYSTEM_NAMES


def test_the_command_runs_until_it_is_asked_to_end(sidecar: Sidecar, jail: Jail) -> None:
    jail.populate("a")
    arguments: list[str | Path] = [
        "--jail",
        jail.path,
        "--declared",
        sidecar.declared,
        "--out",
        sidecar.out,
        "--write-tree",
    ]
    with subprocess.Popen(command("users", *arguments)) as process:
        wait_until(
            lambda: (sidecar.out / "declared.sha256").exists() or process.poll() is not None,
            "it has looked",
            timeout_seconds=20,
        )
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0

    assert ALICE["passwd"].strip() in sidecar.known("passwd")
    assert claim.active_tree(jail.path) is not None
