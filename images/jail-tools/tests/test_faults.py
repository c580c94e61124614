"""What goes wrong is found and named, with the exit code that tells Kubernetes whether to try again."""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from jail_testing import trees

from jail_tools.copying import verification
from jail_tools.copying.volume import Limit
from jail_tools.errors import TryAgainError, bounded, encoded
from jail_tools.layout import tree_of
from jail_tools.populating.marker import only_one
from jail_tools.populating.populate import Request, populate
from jail_tools.tree.entry import Entry

TRY_AGAIN = 1
REFUSED = 78


@pytest.fixture
def work() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="jail-tools-"))
    (folder / "jail").mkdir()
    source = folder / "source"
    for below in ("etc", "usr/bin", "usr/lib"):
        (source / below).mkdir(parents=True)
    for name in ("etc/passwd", "usr/bin/true", "usr/lib/libc.so"):
        (source / name).write_text(f"content of {name}\n")
    os.link(source / "usr/bin/true", source / "usr/bin/false")
    yield folder
    shutil.rmtree(folder)


@contextmanager
def small_volume(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    mounted = trees.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)])
    assert mounted.returncode == 0, mounted.stderr
    try:
        trees.probed(folder)
        yield folder
    finally:
        trees.run(["umount", str(folder)])


def verified(jail: Path) -> tuple[int, list[str]]:
    """Exit code of `verify` and the differences that it names."""
    done = trees.run(trees.command("verify", "--jail", jail, "--tree", trees.NAME))
    return done.returncode, [line for line in done.stdout.splitlines() if not line.startswith("verify:")]


def test_a_tree_as_it_was_populated_has_no_differences(work: Path) -> None:
    trees.summary(trees.run(trees.populate(work / "jail", "--root", work / "source")))
    assert verified(work / "jail") == (0, [])


def test_every_difference_is_found_and_named(work: Path) -> None:
    trees.summary(trees.run(trees.populate(work / "jail", "--root", work / "source")))
    tree = work / "jail/trees" / trees.NAME
    flipped = tree / "usr/lib/libc.so"
    status = flipped.stat()
    content = bytearray(flipped.read_bytes())
    content[3] ^= 1
    flipped.write_bytes(content)
    os.utime(flipped, ns=(status.st_atime_ns, status.st_mtime_ns))
    (tree / "etc/passwd").unlink()
    (tree / "etc/hosts").chmod(0o666)
    (tree / "usr/local/bin/srun").unlink()
    (tree / "usr/local/bin/srun").symlink_to("/tmp/evil")
    os.setxattr(tree / "usr/bin/true", "user.comment", b"x")
    (tree / "usr/lib/added").write_text("x")
    code, named = verified(work / "jail")
    assert code == TRY_AGAIN
    said = dict(line.split(": ", 1) for line in named)
    assert said["usr/lib/libc.so"].startswith("has other content: sha256 ")
    assert said["etc/passwd"] == "is missing"
    assert said["etc/hosts"] == "has mode 0666, should have 0644"
    assert said["usr/local/bin/srun"].startswith("was changed at ")
    assert said["usr/lib/added"] == "is not in the manifest"
    assert {"usr/bin/true", "usr/bin/false"} & said.keys()
    assert "etc/group" not in said


def test_a_hard_link_that_became_a_file_of_its_own_is_a_difference(work: Path) -> None:
    trees.summary(trees.run(trees.populate(work / "jail", "--root", work / "source")))
    tree = work / "jail/trees" / trees.NAME
    shutil.copy2(tree / "usr/bin/true", tree / "usr/bin/copy")
    (tree / "usr/bin/copy").rename(tree / "usr/bin/false")
    _, named = verified(work / "jail")
    assert any("is not the same file as" in line for line in named)


def test_a_tree_without_its_marker_has_nothing_to_be_compared_with(work: Path) -> None:
    done = trees.run(trees.command("verify", "--jail", work / "jail", "--tree", trees.NAME))
    assert done.returncode == REFUSED
    assert "is not complete" in done.stderr


def test_a_source_larger_than_the_volume_is_reported_before_anything_is_copied(work: Path) -> None:
    (work / "source/large").write_bytes(b"x" * 3_000_000)
    with small_volume(work / "small", "1m") as jail:
        done = trees.run(trees.populate(jail, "--root", work / "source"))
        assert done.returncode == TRY_AGAIN
        assert "the volume has 0 MiB free, the source has 3 MiB. Enlarge the volume." in done.stderr
        assert not trees.is_complete(jail)


def test_a_volume_that_fills_up_is_told_with_the_path_and_a_larger_one_ends_well(work: Path) -> None:
    for number in range(300):
        (work / f"source/usr/lib/{number}").write_bytes(b"x")  # a page each: more than their sizes say
    with small_volume(work / "small", "500k") as jail:
        arguments = trees.populate(jail, "--root", work / "source", "--processes", "2")
        done = trees.run(arguments)
        assert done.returncode == TRY_AGAIN
        # Each process may be the one that meets the end of the volume.
        named = re.findall(r"^  (\S+): No space left on device \(ENOSPC\)$", done.stderr, re.MULTILINE)
        assert named, done.stderr
        assert all((work / "source" / path).is_file() for path in named), named
        assert not trees.is_complete(jail)
        assert not os.path.lexists(jail / "active")
        trees.run(["mount", "-o", "remount,size=20m", str(jail)])
        trees.summary(trees.run(arguments))
        assert trees.is_complete(jail)


def test_a_tree_that_someone_else_filled_is_refused_and_left_as_it_is(work: Path) -> None:
    theirs = work / "jail/trees" / trees.NAME / "data"
    theirs.mkdir(parents=True)
    done = trees.run(trees.populate(work / "jail", "--root", work / "source"))
    assert done.returncode == REFUSED
    assert "is not empty, and no populate began there. Nothing was changed." in done.stderr
    assert [path.name for path in theirs.parent.iterdir()] == ["data"]


def test_a_tree_that_another_source_began_is_refused(work: Path) -> None:
    meta = work / "jail/meta" / trees.NAME
    meta.mkdir(parents=True)
    (meta / "in-progress.json").write_text(json.dumps({"tree": trees.NAME, "source": "image:other", "began_ns": 1}))
    done = trees.run(trees.populate(work / "jail", "--root", work / "source"))
    assert done.returncode == REFUSED
    assert "was started from image:other, not from test:source" in done.stderr


def test_a_second_populate_of_the_same_tree_waits_and_then_says_so(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jail_tools.populating.marker.LOCK_SECONDS", 0.1)
    tree = tree_of(work / "jail", trees.NAME)
    trees.summary(trees.run(trees.populate(work / "jail", "--root", work / "source")))
    with only_one(tree), pytest.raises(TryAgainError, match="another populate"):
        populate(Request(tree, "test:source", work / "source"))


def test_what_the_disk_spoilt_while_it_was_copied_is_named_and_mended_by_the_next_try(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tree_of(work / "jail", trees.NAME)
    real = verification.differences

    def spoilt(root: Path, entries: list[Entry], processes: int, limit: Limit) -> list[verification.Difference]:
        file = root / "usr/lib/libc.so"
        status = file.stat()
        file.write_bytes(file.read_bytes().swapcase())
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        return real(root, entries, processes, limit)

    request = Request(tree, "test:source", work / "source", processes=2)
    monkeypatch.setattr(verification, "differences", spoilt)
    with pytest.raises(TryAgainError, match=r"1 differ.*\n  usr/lib/libc.so: has other content"):
        populate(request)
    assert not tree.complete.exists()
    monkeypatch.undo()
    populate(request)
    assert tree.complete.exists()
    assert (tree.root / "usr/lib/libc.so").read_text() == "content of usr/lib/libc.so\n"


def test_everything_that_cannot_be_read_is_named(work: Path) -> None:
    for name in ("usr/lib/first", "usr/lib/second"):
        (work / "source" / name).write_bytes(b"x")
        os.chown(work / "source" / name, 1000, 1000)
        (work / "source" / name).chmod(0)
    arguments = trees.populate(work / "jail", "--root", work / "source")
    done = trees.run(["setpriv", "--bounding-set=-dac_override,-dac_read_search", *arguments])
    assert done.returncode == TRY_AGAIN
    assert "  usr/lib/first: cannot be opened: Permission denied (EACCES)\n" in done.stderr
    assert "  usr/lib/second: cannot be opened: Permission denied (EACCES)\n" in done.stderr
    assert not trees.is_complete(work / "jail")
    trees.summary(trees.run(arguments))


def test_the_jobs_five_capabilities_are_enough(work: Path) -> None:
    ping = work / "source/usr/bin/ping"
    ping.write_bytes(b"ping")
    os.chown(ping, 1000, 64030)
    os.setxattr(ping, "security.capability", trees.CAPABILITY)
    ping.chmod(0o4750)
    os.mkfifo(work / "source/etc/fifo")
    five = "--bounding-set=-all,+chown,+dac_override,+fowner,+fsetid,+setfcap"
    done = trees.run(["setpriv", five, *trees.populate(work / "jail", "--root", work / "source")])
    trees.summary(done)
    copy = work / "jail/trees" / trees.NAME / "usr/bin/ping"
    assert os.getxattr(copy, "security.capability") == trees.CAPABILITY
    status = copy.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (1000, 64030, 0o4750)


def test_a_source_that_is_not_there_is_named(work: Path) -> None:
    done = trees.run(trees.populate(work / "jail", "--root", work / "nowhere"))
    assert done.returncode == TRY_AGAIN
    assert "cannot be listed: No such file or directory (ENOENT)" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["populate", "--jail", "x", "--tree", "../../etc", "--source", "s"], "12 hexadecimal digits"),
        (["populate", "--jail", "x", "--tree", "0" * 12, "--source", "s", "--limit-mib-per-second", "0"], "invalid"),
        (["populate", "--jail", "x"], "required"),
        (["unknown"], "invalid choice"),
    ],
)
def test_a_wrong_command_line_is_refused_for_good(arguments: list[str], words: str) -> None:
    done = trees.run(trees.command(*arguments))
    assert done.returncode == REFUSED
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_message_holds_as_many_lines_as_fit_and_counts_the_others() -> None:
    lines = [f"usr/lib/{number}: is missing" for number in range(1000)]
    message = bounded("1,000 differences:", lines)
    *_, last = message.splitlines()
    shown = len(message.splitlines()) - 2
    assert len(encoded(message)) <= 4096
    assert last == f"  ... and {1000 - shown:,} more"
    assert shown > 100
