"""The store of images: one brings, all others wait, and a killed one leaves nothing half."""

import errno
import fcntl
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path, PosixPath
from typing import Any, ClassVar

import pytest

from container_images.image_store import ImageStore
from tests.soak import times
from tests.waiting import wait_until

DIGEST = "sha256:" + "a" * 64


def make(part: Path, new: Path) -> None:
    (new / "rootfs").mkdir()
    with (part / "../../runs").open("a") as runs:
        runs.write("x")


def bring(folder: Path) -> Path:
    return ImageStore(folder, lambda _: None).folder_of(DIGEST, make)


def test_an_image_is_brought_once(tmp_path: Path) -> None:
    first, second = bring(tmp_path), bring(tmp_path)

    assert first == second
    assert (first / "rootfs").is_dir()
    assert (tmp_path / "runs").read_text() == "x"


class PathOfNfs(PosixPath):
    """A path as another NFS client has it: a name that was missing stays so until this client changes its folder."""

    _missing: ClassVar[set[str]] = set()

    def is_dir(self) -> bool:
        return self._is_known() and super().is_dir()

    def read_text(self, *arguments: Any, **named: Any) -> str:
        if not self._is_known():
            raise FileNotFoundError(self)
        return super().read_text(*arguments, **named)

    def mkdir(self, *arguments: Any, **named: Any) -> None:
        super().mkdir(*arguments, **named)
        self._missing.clear()

    def rmdir(self) -> None:
        super().rmdir()
        self._missing.clear()

    def _is_known(self) -> bool:
        if not self.exists():
            self._missing.add(str(self))
        return str(self) not in self._missing


def test_a_node_whose_nfs_client_remembers_that_the_image_is_missing_brings_it_no_second_time(tmp_path: Path) -> None:
    store = ImageStore(PathOfNfs(tmp_path), lambda _: None)
    ready = bring(tmp_path)
    ready.rename(tmp_path / "later")
    assert not PathOfNfs(ready).is_dir()
    (tmp_path / "later").rename(ready)

    assert store.folder_of(DIGEST, make) == ready
    assert (tmp_path / "runs").read_text() == "x"
    assert [*ready.parent.iterdir()] == [ready]


def test_a_node_whose_nfs_client_remembers_that_the_record_is_missing_starts_the_image_of_the_job(
    tmp_path: Path,
) -> None:
    store = ImageStore(PathOfNfs(tmp_path), lambda _: None)
    ImageStore(tmp_path, lambda _: None).digest_of_job("7", "image", lambda: "sha256:first")
    (record,) = (tmp_path / "jobs").iterdir()
    record.rename(tmp_path / "later")
    with pytest.raises(FileNotFoundError):
        PathOfNfs(record).read_text()
    (tmp_path / "later").rename(record)

    assert store.digest_of_job("7", "image", lambda: "sha256:second") == "sha256:first"


def test_a_node_whose_nfs_client_remembers_that_a_named_container_is_missing_starts_it(tmp_path: Path) -> None:
    store = ImageStore(PathOfNfs(tmp_path), lambda _: None)
    folder = tmp_path / "named/tools"
    assert not PathOfNfs(folder).is_dir()
    folder.mkdir()

    assert store.named_folder("tools").is_dir()


def test_nodes_of_two_architectures_have_images_of_their_own(tmp_path: Path) -> None:
    folders = [
        ImageStore(tmp_path, lambda _: None, machine).folder_of(DIGEST, make) for machine in ("x86_64", "aarch64")
    ]

    assert folders[0] != folders[1]
    assert (tmp_path / "runs").read_text() == "xx"


def test_many_at_once_bring_it_once(tmp_path: Path) -> None:
    context = get_context("fork")
    processes = [context.Process(target=bring, args=(tmp_path,)) for _ in range(20)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)

    assert [process.exitcode for process in processes] == [0] * 20
    assert (tmp_path / "runs").read_text() == "x"


PULLERS, KILLS = times(40, 100), times(10, 50)
"""Processes that want an image at once, and how many of them are killed while they bring it."""

FILES = 30
CONTENT = "whole" * 1000


def make_unless_killed(part: Path, new: Path) -> None:
    """Make an image; the first ones that try are killed, after another number of files every time."""
    with (part / "../../tries").open("a+") as tries:
        tries.write("x")
        tries.flush()
        tried = tries.tell()
    (new / "rootfs").mkdir()
    for number in range(FILES):
        if tried <= KILLS and number == (tried - 1) * FILES // KILLS:
            os.kill(os.getpid(), signal.SIGKILL)
        (new / "rootfs" / str(number)).write_text(CONTENT)


def find_it_whole(folder: Path) -> None:
    image = ImageStore(folder, lambda _: None).folder_of(DIGEST, make_unless_killed)
    assert [(image / "rootfs" / str(number)).read_text() == CONTENT for number in range(FILES)] == [True] * FILES


def test_of_many_at_once_none_finds_half_an_image_whoever_is_killed(tmp_path: Path) -> None:
    context = get_context("fork")
    processes = [context.Process(target=find_it_whole, args=(tmp_path,)) for _ in range(PULLERS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)

    ends = [process.exitcode for process in processes]
    assert (ends.count(-signal.SIGKILL), ends.count(0)) == (KILLS, PULLERS - KILLS)
    assert len((tmp_path / "tries").read_text()) == KILLS + 1, "one more try brings it for all"
    assert list((tmp_path / "parts").iterdir()) == []


def test_a_process_that_waits_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    waits, done = threading.Event(), threading.Event()

    def wait(_part: Path, _new: Path) -> None:
        waits.set()
        assert done.wait(30)

    def tell(text: str) -> None:
        said.append(text)
        done.set()

    first = threading.Thread(target=lambda: ImageStore(tmp_path, lambda _: None).folder_of(DIGEST, wait))
    first.start()
    assert waits.wait(30)
    ImageStore(tmp_path, tell).folder_of(DIGEST, wait)
    first.join(30)

    assert len(said) == 1
    assert "another process that brings this image" in said[0]


def end_itself(part: Path, new: Path) -> None:
    (part / "oci").mkdir()
    (new / "rootfs").mkdir()
    os.kill(os.getpid(), signal.SIGKILL)


def be_killed(folder: Path, bring: Callable[[Path, Path], None]) -> None:
    ImageStore(folder, lambda _: None).folder_of(DIGEST, bring)


def killed(folder: Path, bring: Callable[[Path, Path], None]) -> None:
    """Return when a process that brings an image has been killed."""
    process = get_context("fork").Process(target=be_killed, args=(folder, bring))
    process.start()
    process.join(30)
    assert process.exitcode == -signal.SIGKILL
    assert not list((folder / "images").iterdir())


def test_a_killed_one_leaves_the_lock_free_and_its_part_to_the_next(tmp_path: Path) -> None:
    killed(tmp_path, end_itself)

    found: list[list[str]] = []
    ImageStore(tmp_path, lambda _: None).folder_of(
        DIGEST, lambda part, new: found.append([path.name for path in part.iterdir() if path != new])
    )

    assert found == [["oci"]]
    assert not list((tmp_path / "parts").iterdir())


def test_a_failed_one_leaves_what_it_has_pulled_and_no_copy(tmp_path: Path) -> None:
    def fail(part: Path, new: Path) -> None:
        (part / "oci").mkdir()
        (new / "rootfs").mkdir()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space left"):
        ImageStore(tmp_path, lambda _: None).folder_of(DIGEST, fail)

    assert [path.name for path in (tmp_path / "parts").glob("*/*")] == ["oci"]


def test_a_late_writer_of_a_killed_one_changes_nothing_in_the_image(tmp_path: Path) -> None:
    killed(tmp_path, end_itself)
    (late,) = (tmp_path / "parts").glob("*/new.*/rootfs")

    def bring(_: Path, new: Path) -> None:
        (new / "rootfs").mkdir()
        late.mkdir(parents=True, exist_ok=True)
        (late / "old").touch()

    ready = ImageStore(tmp_path, lambda _: None).folder_of(DIGEST, bring)

    assert sorted(path.name for path in ready.rglob("*")) == ["rootfs", "size"]


def test_the_programs_of_a_killed_one_keep_the_lock_as_long_as_they_live(tmp_path: Path) -> None:
    ends, keeps = os.pipe()

    def start(part: Path, new: Path) -> None:
        subprocess.Popen(["cat"], stdin=ends, close_fds=False)
        end_itself(part, new)

    killed(tmp_path, start)
    os.close(ends)
    (path,) = (tmp_path / "locks").iterdir()

    def free() -> bool:
        with path.open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    assert not free()
    os.close(keeps)
    wait_until(free, "the lock is free when the program has ended", timeout_seconds=30)


def test_all_nodes_of_a_job_have_one_digest_and_the_next_job_asks_again(tmp_path: Path) -> None:
    answers = iter(["first", "second"])
    store = ImageStore(tmp_path, lambda _: None)

    assert store.digest_of_job("1", "a:latest", lambda: next(answers)) == "first"
    assert store.digest_of_job("1", "a:latest", lambda: next(answers)) == "first"
    assert store.digest_of_job("2", "a:latest", lambda: next(answers)) == "second"


def test_records_of_old_jobs_go(tmp_path: Path) -> None:
    store = ImageStore(tmp_path, lambda _: None)
    store.digest_of_job("1", "a", lambda: "x")
    for path in [*(tmp_path / "jobs").iterdir(), *(tmp_path / "locks").iterdir()]:
        os.utime(path, (0, 0))
    store.digest_of_job("2", "a", lambda: "x")

    assert [path.name.split("-")[0] for path in (tmp_path / "jobs").iterdir()] == ["2"]
    assert [path.name.split("-")[0] for path in (tmp_path / "locks").iterdir()] == ["2"]


def test_a_record_that_another_process_has_just_renamed_stops_no_look_up(tmp_path: Path) -> None:
    store = ImageStore(tmp_path, lambda _: None)
    store.digest_of_job("1", "a", lambda: "x")
    for folder in ("jobs", "locks"):
        (tmp_path / folder / "2-a.new").symlink_to("renamed")

    assert store.digest_of_job("3", "a", lambda: "x") == "x"


def test_what_a_killed_process_leaves_of_a_look_is_no_record_and_no_container(tmp_path: Path) -> None:
    store = ImageStore(tmp_path, lambda _: None)
    for folder in ("jobs", "images", "named"):
        left = tmp_path / folder / ".look.gpu-0"
        left.mkdir()
        os.utime(left, (0, 0))

    assert store.digest_of_job("1", "a", lambda: "x") == "x"
    assert store.names() == []
