"""Switching from one tree to another: what users did is reported, refused, left behind or carried over."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from jail_testing.jails import (
    GROUP,
    PASSWD,
    SHADOW,
    STATUS,
    Jail,
    command,
    contents,
    in_memory,
    install,
    killed_at,
    package,
    write,
)

from jail_tools import claim
from jail_tools.accounts import account_files
from jail_tools.accounts.account_resolution import Accounts
from jail_tools.accounts.tables import AccountFile
from jail_tools.errors import RefusedError, TryAgainError
from jail_tools.layout import Tree, tree_of
from jail_tools.switching.tree_switch import Policy, switch

NEWER = {
    "etc/os-release": "ID=debian\nVERSION=next\n",
    "etc/passwd": PASSWD + "messagebus:x:101:101::/nonexistent:/usr/sbin/nologin\n",
    "usr/lib/libc.so.6": "libc of next",
    "var/lib/dpkg/status": package("libc6", "2.45-1"),
}


@pytest.fixture
def jail() -> Iterator[Jail]:
    with in_memory() as folder:
        yield Jail(folder)


@pytest.fixture
def old(jail: Jail) -> Tree:
    return jail.populate("old")


@pytest.fixture
def new(jail: Jail, old: Tree) -> Tree:
    assert jail.active == old.name
    return jail.populate("new", changes=NEWER)


def refusal(new: Tree, policy: Policy) -> str:
    """Return what a switch is refused with, having looked that it changed nothing."""
    before = contents(new.jail)
    with pytest.raises(RefusedError, match="Nothing was changed") as error:
        switch(new, policy)
    assert contents(new.jail) == before
    return str(error.value)


def test_trees_that_no_one_changed_are_switched(jail: Jail, old: Tree, new: Tree) -> None:
    before = contents(new.root)

    done = switch(new, Policy.REFUSE)

    assert jail.active == new.name
    assert (done.old, done.new, done.changed, done.carried) == (old.name, new.name, 0, 0)
    assert contents(new.root) == before


def test_switching_again_changes_nothing(jail: Jail, new: Tree) -> None:
    switch(new, Policy.REFUSE)
    before = contents(jail.path)

    assert switch(new, Policy.REFUSE).changed == 0
    assert contents(jail.path) == before


def test_a_tree_that_is_not_whole_is_refused(jail: Jail, new: Tree) -> None:
    new.complete.rename(new.in_progress)

    assert "is not complete in this claim" in refusal(new, Policy.LEAVE_BEHIND)


def test_users_changes_are_named_by_package_and_directory_before_anything_is_changed(old: Tree, new: Tree) -> None:
    install(old, "htop", "3.3-1", {"usr/bin/htop": "htop"})
    write(old.root, {f"usr/local/bin/{number}": "x" for number in range(1, 8)} | {"etc/os-release": "ID=ours\n"})
    (old.root / "usr/bin/sh").unlink()

    said = refusal(new, Policy.REFUSE)

    assert [line.strip() for line in said.splitlines()[1:]] == [
        "package +htop 3.3-1",
        "files in /etc: 1 modified (os-release)",
        "files in /usr/bin: 1 removed (sh)",
        "files in /usr/local/bin: 7 added (1, 2, 3, 4, 5, ...)",
    ]


def test_what_no_one_would_miss_is_not_counted(old: Tree, new: Tree) -> None:
    write(
        old.root,
        {
            "var/log/apt/history.log": "x",
            "var/cache/apt/pkgcache.bin": "x",
            "tmp/x": "x",
            "usr/lib/python3/__pycache__/a.pyc": "x",
            "etc/ld.so.cache": "x",
            "root/.bash_history": "x",
        },
    )
    (old.root / "mnt/local").mkdir(parents=True)
    os.utime(old.root / "usr/bin/sh")

    assert switch(new, Policy.REFUSE).changed == 0


def test_what_the_new_tree_has_too_is_not_left_behind(old: Tree, new: Tree) -> None:
    """An image that was built because of what users had done by hand."""
    write(old.root, {"usr/local/bin/ours": "x"})
    write(new.root, {"usr/local/bin/ours": "x"})

    assert switch(new, Policy.REFUSE).changed == 0


def test_changes_can_be_left_behind(jail: Jail, old: Tree, new: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    install(old, "htop", "3.3-1", {"usr/bin/htop": "htop"})

    done = switch(new, Policy.LEAVE_BEHIND)

    assert (jail.active, done.carried) == (new.name, 0)
    assert done.changed > 0
    assert "package +htop 3.3-1" in capsys.readouterr().out
    assert not (new.root / "usr/bin/htop").exists()


def test_changes_can_be_carried_over(old: Tree, new: Tree) -> None:
    install(old, "htop", "3.3-1", {"usr/bin/htop": "htop", "usr/share/doc/htop/copyright": "c"}, "libc6 (>= 2.36)")
    (old.root / "usr/bin/htop").chmod(0o755)
    os.chown(old.root / "usr/bin/htop", 7, 8)
    (old.root / "usr/bin/h").symlink_to("htop")
    write(old.root, {"usr/bin/sh": "better sh"})
    os.setxattr(old.root / "usr/bin/htop", "trusted.note", b"kept")

    (old.root / "opt").chmod(0o1777)

    done = switch(new, Policy.CARRY_OVER)

    found = contents(new.root)
    for path in ("opt", "usr/bin/htop", "usr/bin/h", "usr/bin/sh", "usr/share/doc/htop/copyright"):
        assert found[path] == contents(old.root)[path]
    assert os.getxattr(new.root / "usr/bin/htop", "trusted.note") == b"kept"
    assert (new.root / "usr/lib/libc.so.6").read_text() == "libc of next"
    status = (new.root / "var/lib/dpkg/status").read_text()
    assert "Version: 2.45-1" in status
    assert "Package: htop" in status
    assert done.carried == done.changed


def test_triggers_of_packages_come_with_them(old: Tree, new: Tree) -> None:
    triggers = "var/lib/dpkg/triggers/File"
    install(old, "man-db", "2.13-1", {"usr/bin/man": "man"})
    write(old.root, {triggers: "/old gone\n/usr/share/man man-db/noawait\n"})
    write(new.root, {triggers: "/new theirs\n"})

    switch(new, Policy.CARRY_OVER)

    assert (new.root / triggers).read_text() == "/new theirs\n/usr/share/man man-db/noawait\n"


def test_a_package_that_the_new_tree_has_at_least_as_new_is_taken_from_there(old: Tree, new: Tree) -> None:
    status = old.root / "var/lib/dpkg/status"
    status.write_text(STATUS.replace("2.41-12", "2.41-13"))
    write(old.root, {"usr/lib/libc.so.6": "libc of a security update"})

    switch(new, Policy.CARRY_OVER)

    assert (new.root / "usr/lib/libc.so.6").read_text() == "libc of next"
    assert (new.root / "var/lib/dpkg/status").read_text() == package("libc6", "2.45-1")


def test_every_reason_against_carrying_over_is_named(old: Tree, new: Tree) -> None:
    install(old, "tool", "1", {"usr/bin/tool": "t"}, "libfoo (>= 2), libc6")
    write(old.root, {"etc/os-release": "ID=ours\n", "opt/app/bin": "x", "srv/file": "x"})
    (new.root / "srv").rmdir()
    (new.root / "srv").symlink_to("/etc")
    os.mkfifo(old.root / "opt/fifo")

    said = refusal(new, Policy.CARRY_OVER)

    assert "package tool 1 needs libfoo (>= 2), not in the new tree" in said
    assert "/etc/os-release: users changed it, and the new tree has another one" in said
    assert "/srv/file: /srv is not a directory in the new tree" in said
    assert "/opt/fifo: is a FIFO, which is not carried over: remove it" in said
    assert "/opt/app/bin" not in said


def test_a_package_that_is_half_installed_is_not_carried_over(old: Tree, new: Tree) -> None:
    half = package("kmod", "30-1").replace("install ok installed", "install ok unpacked")
    write(old.root, {"var/lib/dpkg/status": STATUS + half, "usr/bin/kmod": "x"})

    assert "package kmod 30-1 is unpacked in the old tree" in refusal(new, Policy.CARRY_OVER)


def test_a_link_in_the_new_tree_leads_nowhere(old: Tree, new: Tree, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (new.root / "usr/local/bin").rename(new.root / "usr/local/sbin")
    (new.root / "usr/local/bin").symlink_to(tmp_path / "outside")
    write(old.root, {"usr/local/bin/ours": "x"})

    refusal(new, Policy.CARRY_OVER)

    assert list((tmp_path / "outside").iterdir()) == []


def test_users_and_groups_come_over_whatever_becomes_of_files(old: Tree, new: Tree) -> None:
    write(
        old.root,
        {
            "etc/passwd": PASSWD.replace("/bin/bash", "/bin/zsh") + "bob:x:1500:1500::/home/bob:/bin/sh\n",
            "etc/group": GROUP.replace("video:x:44:", "video:x:44:bob") + "bob:x:1500:\n",
            "etc/shadow": SHADOW + "bob:$y$secret:19500:0:99999:7:::\n",
            "etc/subuid": "bob:100000:65536\n",
        },
    )
    write(new.root, {"etc/subuid": ""})

    switch(new, Policy.REFUSE)

    assert (new.root / "etc/passwd").read_text().splitlines() == [
        "root:x:0:0:root:/root:/bin/zsh",
        "daemon:x:1:1:daemon:/:/usr/sbin/nologin",
        "messagebus:x:101:101::/nonexistent:/usr/sbin/nologin",
        "bob:x:1500:1500::/home/bob:/bin/sh",
    ]
    assert "video:x:44:bob\n" in (new.root / "etc/group").read_text()
    assert "bob:$y$secret:" in (new.root / "etc/shadow").read_text()
    assert (new.root / "etc/shadow").stat().st_mode & 0o777 == 0o640
    assert (new.root / "etc/subuid").read_text() == "bob:100000:65536\n"


def test_an_account_that_both_changed_is_a_conflict_without_a_password_in_it(old: Tree, new: Tree) -> None:
    write(
        old.root,
        {
            "etc/passwd": PASSWD.replace("root:/root", "us:/root") + "web:x:101:101::/:/bin/sh\n",
            "etc/shadow": SHADOW.replace("root:*", "root:$y$ours"),
        },
    )
    write(new.root, {"etc/passwd": NEWER["etc/passwd"].replace("root:/root", "them:/root")})
    write(new.root, {"etc/shadow": SHADOW.replace("root:*", "root:$y$theirs")})

    said = refusal(new, Policy.CARRY_OVER)

    assert '/etc/passwd: root: users made it "root:x:0:0:us:/root:/bin/bash", the new tree has "root:x:0:0:them' in said
    assert "/etc/shadow: root was changed by users, and differently in the new tree" in said
    assert "/etc/passwd: messagebus and web would both have the id 101" in said
    assert "$y$" not in said


def test_accounts_of_packages_that_are_left_behind_are_left_behind(old: Tree, new: Tree) -> None:
    write(old.root, {"etc/passwd": PASSWD + "web:x:101:101::/:/bin/sh\n", "usr/bin/web": "x"})
    write(old.root, {"etc/shadow": SHADOW + "web:!:19500::::::\n"})

    switch(new, Policy.LEAVE_BEHIND)

    assert (new.root / "etc/passwd").read_text() == NEWER["etc/passwd"]
    assert (new.root / "etc/shadow").read_text() == SHADOW


def test_going_back_takes_along_what_changed_since_and_nothing_else(jail: Jail, old: Tree, new: Tree) -> None:
    """bob and eve were added in the first tree; in the second, eve was removed, bob got a shell, and zoe was added."""
    bob, eve, zoe = (
        f"{name}:x:{number}:{number}::/home/{name}:/bin/sh\n"
        for name, number in (("bob", 1500), ("eve", 1501), ("zoe", 1502))
    )
    write(old.root, {"etc/passwd": PASSWD + bob + eve})
    switch(new, Policy.REFUSE)
    write(new.root, {"etc/passwd": NEWER["etc/passwd"] + bob.replace("/bin/sh", "/bin/zsh") + zoe})

    switch(old, Policy.REFUSE)

    assert jail.active == old.name
    assert (old.root / "etc/passwd").read_text() == PASSWD + bob.replace("/bin/sh", "/bin/zsh") + zoe


def test_declared_users_are_known_in_the_new_tree_from_the_first_moment(old: Tree, new: Tree) -> None:
    alice = ("alice", "x", "2001", "2001", "", "/home/alice", "/bin/bash")
    declared: Accounts = {AccountFile.PASSWD: {"alice": alice}, AccountFile.GROUP: {}, AccountFile.SHADOW: {}}
    account_files.keep_declared(old, declared)

    switch(new, Policy.REFUSE)
    assert ":".join(alice) in (new.root / "etc/passwd").read_text()

    account_files.keep_declared(new, {kind: {} for kind in AccountFile})
    assert (new.root / "etc/passwd").read_text() == NEWER["etc/passwd"]


def test_a_full_volume_leaves_nothing_behind(old: Tree, new: Tree) -> None:
    """Files may be no larger than 1 MiB (setrlimit(2)): the second one fails half-way."""
    write(old.root, {"usr/local/bin/a": "x", "usr/local/bin/b": "x" * 2**21})
    before = contents(new.root)
    script = "ulimit -f 1024; trap '' XFSZ; exec \"$@\""

    done = subprocess.run(
        [
            "bash",
            "-c",
            script,
            "-",
            *command("switch", "--jail", new.jail, "--to", new.name, "--changes", "carry_over"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "File too large (EFBIG). Nothing was changed." in done.stderr
    assert contents(new.root) == before


def test_a_held_lock_is_waited_for_and_then_named(new: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim.locked.__wrapped__, "__defaults__", (0.0,))  # type: ignore[attr-defined] # contextlib's

    with claim.locked(new.jail), pytest.raises(TryAgainError, match="another switch or collect is still running"):
        switch(new, Policy.REFUSE)


def test_killed_before_any_change_that_it_makes_it_is_repaired_by_the_next_run(
    jail: Jail, old: Tree, new: Tree
) -> None:
    install(old, "htop", "3.3-1", {"usr/bin/htop": "htop", "opt/deep/er/file": "x"})
    write(old.root, {"usr/bin/sh": "better sh", "etc/passwd": PASSWD + "bob:x:1500:1500::/home/bob:/bin/sh\n"})
    untouched = contents(new.root)
    whole = jail.path.with_name("whole")
    copy(jail.path, whole)
    switch(tree_of(whole, new.name), Policy.CARRY_OVER)
    wanted = contents(whole)

    step, flipped = 0, 0
    while True:
        tried = jail.path.with_name(f"step-{step}")
        copy(jail.path, tried)
        tree = tree_of(tried, new.name)
        killed = killed_at(step, lambda tree=tree: switch(tree, Policy.CARRY_OVER))  # type: ignore[misc] # bound now
        if not killed:
            break
        flipped += (tried / "active").readlink().name == new.name
        if (tried / "active").readlink().name == old.name:
            with pytest.raises(RefusedError):
                switch(tree, Policy.REFUSE)
            assert contents(tree.root) == untouched, step
        switch(tree, Policy.CARRY_OVER)
        assert contents(tried) == wanted, step
        shutil.rmtree(tried)
        step += 1

    assert step > 30
    assert flipped > 0


def copy(jail: Path, to: Path) -> None:
    """Copy a claim with everything that a manifest knows of."""
    subprocess.run(["cp", "-a", jail, to], check=True)


def test_the_command_prints_its_result_as_the_last_line(jail: Jail, old: Tree, new: Tree) -> None:
    done = subprocess.run(
        command("switch", "--jail", jail.path, "--to", new.name), capture_output=True, text=True, check=True
    )

    assert json.loads(done.stdout.splitlines()[-1]) == {"from": old.name, "to": new.name, "changed": 0, "carried": 0}


def test_a_refused_command_ends_with_78_and_says_why(jail: Jail, old: Tree, new: Tree) -> None:
    write(old.root, {"usr/local/bin/ours": "x"})

    done = subprocess.run(
        command("switch", "--jail", jail.path, "--to", new.name), capture_output=True, text=True, check=False
    )

    assert done.returncode == 78
    assert done.stderr.startswith(
        f"switch: users changed tree {old.name}, and the new tree {new.name} does not have their changes."
    )
    assert "Traceback" not in done.stderr
