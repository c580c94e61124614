"""The parts of a populate that stand alone: manifest, limit, CPUs, mount points, batches, the program's own copy."""

import hashlib
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jail_testing import trees

from jail_tools.copying.parallel import BATCH_ENTRIES, batches, default_processes
from jail_tools.copying.volume import STEPS_NS, Limit, Volume, volume_of
from jail_tools.sources.root import mount_points
from jail_tools.tree import content, manifest
from jail_tools.tree.entry import Entry, EntryKind

paths = st.binary(min_size=1, max_size=30).filter(lambda path: b"\0" not in path).map(os.fsdecode)
entries = st.one_of(
    st.builds(
        Entry,
        path=paths,
        kind=st.just(EntryKind.FILE),
        mode=st.integers(0, 0o7777),
        uid=st.integers(0, 2**32 - 2),
        gid=st.integers(0, 2**32 - 2),
        mtime_ns=st.integers(-(2**40), 2**63),
        size=st.integers(0, 2**50),
        sparse=st.booleans(),
        sha256=st.just("0" * 64),
        xattrs=st.lists(st.tuples(st.sampled_from(["user.a", "user.b"]), st.binary()), unique_by=lambda x: x[0]).map(
            lambda found: tuple(sorted(found))
        ),
    ),
    st.builds(lambda path, target: Entry(path, EntryKind.SYMLINK, 0o777, target=target), paths, paths),
    st.builds(lambda path, target: Entry(path, EntryKind.LINK, target=target), paths, paths),
)


@given(st.lists(entries, max_size=8, unique_by=lambda entry: entry.path))
def test_a_manifest_gives_back_what_was_written_in_order_of_paths(
    tmp_path_factory: pytest.TempPathFactory, written: list[Entry]
) -> None:
    file = tmp_path_factory.mktemp("meta") / "manifest.jsonl"
    manifest.write(file, written)
    assert list(manifest.read(file)) == sorted(written, key=lambda entry: entry.path)
    assert file.read_bytes().isascii()


def test_a_line_that_is_no_entry_is_named(tmp_path: Path) -> None:
    file = tmp_path / "manifest.jsonl"
    file.write_bytes(manifest.line(Entry("a", EntryKind.FIFO)) + b'{"path": "b"}\n')
    with pytest.raises(ValueError, match=r"manifest.jsonl:2: not an entry"):
        list(manifest.read(file))


@pytest.mark.parametrize("kept", [True, False])
def test_the_checksum_of_a_sparse_file_does_not_depend_on_where_its_holes_are(kept: bool, tmp_path: Path) -> None:
    size = 10 * content.BLOCK_BYTES + 5
    file = tmp_path / "file"
    with file.open("wb") as stream:
        if not kept:
            stream.write(bytes(size))
        stream.seek(4 * content.BLOCK_BYTES + 7)
        stream.write(b"data")
        stream.truncate(size)
    with file.open("rb") as stream:
        found = content.digest(stream.fileno(), size, sparse=True)
    block = bytearray(content.BLOCK_BYTES)
    block[7:11] = b"data"
    offset = (4 * content.BLOCK_BYTES).to_bytes(8, "little")
    assert found == hashlib.sha256(offset + block).hexdigest()


def test_a_limit_holds() -> None:
    limit = Limit(10)
    started = time.monotonic()
    for _ in range(4):
        limit.pace(1024 * 1024)
    assert time.monotonic() - started >= 0.3  # the fourth MiB begins then


@pytest.mark.parametrize(("quota", "expected"), [("max 100000", None), ("50000 100000", 1), ("100000 100000", 1)])
def test_the_cgroups_quota_bounds_the_processes(quota: str, expected: int | None, tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text(quota + "\n")
    allowed = len(os.sched_getaffinity(0))
    assert default_processes(tmp_path / "cpu.max") == (allowed if expected is None else expected)


def test_without_a_quota_every_cpu_counts(tmp_path: Path) -> None:
    assert default_processes(tmp_path / "cpu.max") == len(os.sched_getaffinity(0))


def test_mount_points_are_those_below_the_root() -> None:
    text = (
        "22 1 8:1 / / rw - ext4 /dev/a rw\n"
        "23 22 0:5 / /proc rw - proc proc rw\n"
        "24 22 8:1 /x /etc/hosts rw - ext4 /dev/a rw\n"
        "25 22 0:9 / /with\\040space/\\134x rw - tmpfs none rw\n"
    )
    assert mount_points(text, Path("/")) == {"proc", "etc/hosts", "with space/\\x"}
    assert mount_points(text, Path("/etc")) == {"hosts"}


@given(st.lists(st.integers(0, 40 * 2**20), max_size=2000))
def test_batches_cover_every_entry_once(sizes: list[int]) -> None:
    found = batches([Entry(str(number), EntryKind.FILE, size=size) for number, size in enumerate(sizes)])
    assert sorted(position for batch in found for position in batch) == list(range(len(sizes)))
    assert all(len(batch) <= BATCH_ENTRIES for batch in found)


def test_a_real_volume_keeps_what_it_was_tried_for(tmp_path: Path) -> None:
    volume = volume_of(tmp_path, tmp_path, Limit(None), 1)
    assert "user." in volume.spaces
    assert volume.step_ns == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step_ns", STEPS_NS)
def test_times_are_wanted_as_the_volume_keeps_them(step_ns: int, tmp_path: Path) -> None:
    volume = Volume(tmp_path, Limit(None), 1, frozenset(), step_ns)
    entry = volume.timed(Entry("a", EntryKind.FILE, mtime_ns=1_234_567_891_123_456_789))
    assert entry.mtime_ns % step_ns == 0
    assert 0 <= 1_234_567_891_123_456_789 - entry.mtime_ns < step_ns


def test_install_copies_the_program(tmp_path: Path) -> None:
    program = tmp_path / "program"
    (program / "bin").mkdir(parents=True)
    (program / "bin/python3.13").write_bytes(b"elf")
    (program / "bin/python3.13").chmod(0o755)
    (program / "bin/python3").symlink_to("python3.13")
    target = tmp_path / "target"
    target.mkdir()
    for _ in range(2):  # a restarted init container finds its own copy
        done = trees.run(trees.command("install", target, "--from", program))
        assert done.returncode == 0, done.stderr
    assert (target / "bin/python3").readlink() == Path("python3.13")
    assert os.access(target / "bin/python3", os.X_OK)
