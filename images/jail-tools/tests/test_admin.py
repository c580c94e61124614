"""The first process of the admin pod."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from jail_testing.jails import command

from jail_tools.admin import make_links
from jail_tools.errors import RefusedError


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with a merged /usr, an own folder, and a link out of it."""
    tree = tmp_path / "tree"
    for name in ("usr/bin", "etc", "data"):
        (tree / name).mkdir(parents=True)
    (tree / "bin").symlink_to("usr/bin")
    return tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A pod's root, where /usr and /etc are mounted."""
    for name in ("usr", "etc"):
        (tmp_path / "root" / name).mkdir(parents=True)
    return tmp_path / "root"


def test_what_is_not_mounted_gets_a_link(root: Path, tree: Path) -> None:
    assert make_links(root, tree) == ["bin", "data"]

    assert (root / "bin").readlink() == Path("usr/bin")
    assert (root / "data").readlink() == tree / "data"
    assert not (root / "usr").is_symlink()


def test_a_container_that_starts_again_finds_its_links(root: Path, tree: Path) -> None:
    make_links(root, tree)

    assert make_links(root, tree) == []


def test_without_a_tree_it_is_refused(root: Path, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="the tree is not mounted in this pod"):
        make_links(root, tmp_path / "none")


def test_it_takes_in_orphans_and_ends_when_asked_to(root: Path, tree: Path) -> None:
    """In a PID namespace of its own, as in a pod: its first process gets what lost its parent."""
    with subprocess.Popen(
        ["unshare", "--pid", "--fork", "--kill-child", *command("admin", "--root", root, "--tree", tree)],
        stdout=subprocess.PIPE,
        text=True,
    ) as outer:
        assert outer.stdout is not None
        assert outer.stdout.readline() == "admin: ready (2 links: bin, data)\n"
        (first,) = children(outer.pid)
        subprocess.run(["nsenter", "--pid", "--target", str(first), "sh", "-c", "sleep 60 &"], check=True)
        (orphan,) = children(first)
        os.kill(orphan, signal.SIGKILL)
        while children(first):
            os.sched_yield()
        os.kill(first, signal.SIGTERM)
        assert outer.wait(10) == 0


def children(process: int) -> list[int]:
    """Return a process's children, zombies among them."""
    return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
