"""A copy has everything that its source has: names, owners, modes, times, links, attributes, holes."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from jail_testing import trees

from jail_tools.layout import tree_of
from jail_tools.populating.populate import Request, populate

ACL = bytes.fromhex("0200000001000700ffffffff02000400e803000004000500ffffffff10000500ffffffff20000500ffffffff")


@pytest.fixture
def work() -> Iterator[Path]:
    """A folder on a real disk, not in memory: holes and attributes are its business."""
    folder = Path(tempfile.mkdtemp(prefix="jail-tools-"))
    yield folder
    shutil.rmtree(folder)


def copied(source: Path, jail: Path) -> Path:
    jail.mkdir(exist_ok=True)
    tree = tree_of(jail, trees.NAME)
    populate(Request(tree, "test:source", source, processes=2))
    return tree.root


def brought(source: Path, copy: Path) -> dict[str, Any]:
    """What is in the copy, without what every tree has besides."""
    whole = trees.seen(copy)
    return {path: whole.get(path) for path in trees.seen(source)}


@given(plan=trees.plans)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_tree_arrives_as_it_is(plan: list[Any]) -> None:
    with tempfile.TemporaryDirectory(prefix="jail-tools-") as folder:
        source = Path(folder, "source")
        source.mkdir()
        trees.build(source, plan)
        copy = copied(source, Path(folder, "jail"))
        assert brought(source, copy) == trees.seen(source)


def test_capabilities_and_access_control_lists_arrive(work: Path) -> None:
    source = work / "source"
    source.mkdir()
    (source / "ping").write_bytes(b"ping")
    os.setxattr(source / "ping", "security.capability", trees.CAPABILITY)
    (source / "shared").mkdir()
    (source / "shared/file").write_bytes(b"")
    os.setxattr(source / "shared/file", "system.posix_acl_access", ACL)
    os.setxattr(source / "shared", "system.posix_acl_default", ACL)
    copy = copied(source, work / "jail")
    assert os.getxattr(copy / "ping", "security.capability") == trees.CAPABILITY
    assert os.getxattr(copy / "shared/file", "system.posix_acl_access") == ACL
    assert os.getxattr(copy / "shared", "system.posix_acl_default") == ACL
    assert brought(source, copy) == trees.seen(source)


def test_an_inherited_list_of_the_claim_reaches_nothing(work: Path) -> None:
    (work / "source").mkdir()
    (work / "source/file").write_bytes(b"x")
    (work / "jail").mkdir()
    os.setxattr(work / "jail", "system.posix_acl_default", ACL)
    copy = copied(work / "source", work / "jail")
    assert os.listxattr(copy) == []
    assert os.listxattr(copy / "file") == []


def test_holes_stay_holes(work: Path) -> None:
    (work / "source").mkdir()
    with (work / "source/lastlog").open("wb") as file:
        file.seek(5 * 2**30)
        file.write(b"end")
        file.truncate(2**40)
    copy = copied(work / "source", work / "jail")
    status = (copy / "lastlog").stat()
    assert status.st_size == 2**40
    assert status.st_blocks * 512 < 2**20
    with (copy / "lastlog").open("rb") as file:
        file.seek(5 * 2**30 - 1)
        assert file.read(5) == b"\0end\0"


def test_sockets_and_devices_are_left_out_and_named(work: Path) -> None:
    source = work / "source"
    source.mkdir()
    os.mknod(source / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod(source / "socket", stat.S_IFSOCK | 0o600)
    (work / "jail").mkdir()
    done = trees.run(trees.populate(work / "jail", "--root", source))
    assert trees.summary(done)
    assert "populate: left out: null: character device\n" in done.stdout
    assert "populate: left out: socket: socket\n" in done.stdout
    assert not os.path.lexists(work / "jail/trees" / trees.NAME / "null")


def test_a_tree_is_prepared_for_what_is_mounted_on_it(work: Path) -> None:
    (work / "source/etc").mkdir(parents=True)
    (work / "source/etc/resolv.conf").symlink_to("../run/systemd/resolve/stub-resolv.conf")
    (work / "source/usr/local/bin").mkdir(parents=True)
    (work / "source/usr/local/bin/srun").write_text("our own")
    copy = copied(work / "source", work / "jail")
    for folder in ("proc", "sys", "dev", "run", "home", "opt/slurm", "var/spool/slurmd", "var/lib/extrausers"):
        assert (copy / folder).is_dir()
    assert stat.S_IMODE((copy / "tmp").stat().st_mode) == 0o1777
    for file in ("etc/hosts", "etc/hostname", "etc/resolv.conf"):
        assert stat.S_ISREG((copy / file).lstat().st_mode)
    assert (copy / "usr/local/bin/srun").read_text() == "our own"
    assert (copy / "usr/local/bin/sinfo").readlink() == Path("/opt/slurm/bin/sinfo")


def test_nothing_is_made_below_a_symbolic_link_of_the_source(work: Path) -> None:
    outside = work / "outside"
    outside.mkdir()
    (work / "source/usr").mkdir(parents=True)
    (work / "source/usr/local").symlink_to(outside)
    (work / "source/var").symlink_to(outside)
    copied(work / "source", work / "jail")
    assert list(outside.iterdir()) == []


def test_what_is_mounted_below_a_source_is_left_out(work: Path) -> None:
    source = work / "source"
    (source / "with space").mkdir(parents=True)
    trees.run(["mount", "-t", "tmpfs", "none", str(source / "with space")])
    try:
        (source / "with space/secret").write_text("x")
        (work / "jail").mkdir()
        done = trees.run(trees.populate(work / "jail", "--root", source))
    finally:
        trees.run(["umount", str(source / "with space")])
    assert trees.summary(done)
    assert "populate: left out: with space: what is mounted there" in done.stdout
    assert list((work / "jail/trees" / trees.NAME / "with space").iterdir()) == []


def test_the_claim_is_not_copied_into_itself(work: Path) -> None:
    (work / "file").write_bytes(b"x")
    copy = copied(work, work / "jail")
    assert (copy / "file").exists()
    assert not (copy / "jail").exists()


def test_the_first_tree_becomes_the_active_one_and_the_second_does_not(work: Path) -> None:
    (work / "source").mkdir()
    copied(work / "source", work / "jail")
    second = tree_of(work / "jail", "f" * 12)
    populate(Request(second, "test:source", work / "source"))
    assert (work / "jail/active").readlink() == Path("trees", trees.NAME)
    assert second.complete.exists()


def test_only_root_may_look_at_what_is_known_of_a_tree(work: Path) -> None:
    (work / "source/etc").mkdir(parents=True)
    (work / "source/etc/shadow").write_text("root:*:::::::\n")
    copied(work / "source", work / "jail")
    assert stat.S_IMODE((work / "jail/meta").stat().st_mode) == 0o700
    assert (work / "jail/meta" / trees.NAME / "accounts/shadow").read_text() == "root:*:::::::\n"
    assert stat.S_IMODE((work / "jail/trees" / trees.NAME).stat().st_mode) == 0o755
