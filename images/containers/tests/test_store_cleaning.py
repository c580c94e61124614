"""What a store removes: the images of the longest unused time, and never one in use."""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from container_images.image_reference import ImageError
from container_images.image_store import ImageStore
from container_images.store_cleaning import StoreLimits, open_to_owner, remove, size_of

BLOCK = 4096
DAY = 86_400

FOLDER = Path(__file__).parents[1]


def digest(letter: str) -> str:
    return "sha256:" + letter * 64


def of_blocks(count: int) -> Callable[[Path, Path], None]:
    """Return how an image of so many blocks is brought."""

    def bring(_: Path, new: Path) -> None:
        (new / "file").write_bytes(bytes(count * BLOCK))

    return bring


def started(store: ImageStore, letter: str, *, blocks: int = 2, days_ago: float = 0) -> Path:
    """Start a task in an image, and end it."""
    lock = store.use(digest(letter))
    folder = store.folder_of(digest(letter), of_blocks(blocks))
    os.close(lock)
    os.utime(folder, (time.time() - days_ago * DAY,) * 2)
    return folder


def held(folder: Path, letter: str) -> subprocess.Popen[str]:
    """Return another process, as on another node, which has an image in use until its input ends."""
    program = (
        "import sys; from pathlib import Path; from container_images.image_store import ImageStore;"
        "lock = ImageStore(Path(sys.argv[1]), print).use(sys.argv[2]); print(lock, flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, folder, digest(letter)],
        env={"PYTHONPATH": str(FOLDER)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline()
    return process


def limited(folder: Path, blocks: int, said: list[str] | None = None) -> ImageStore:
    """Return a store with room for so many blocks."""
    say = (lambda _: None) if said is None else said.append
    return ImageStore(folder, say, limits=StoreLimits(images_bytes=blocks * BLOCK))


def test_the_image_that_was_not_started_for_longest_goes_when_another_one_needs_its_room(tmp_path: Path) -> None:
    said: list[str] = []
    store = limited(tmp_path, 5, said)
    first, second = started(store, "a", days_ago=2), started(store, "b", days_ago=1)
    (second / "reference").write_text("docker://x/b:1")
    os.utime(second, (0, 0))

    third = started(store, "c")

    assert [first.is_dir(), second.is_dir(), third.is_dir()] == [True, False, True]
    assert said == ["removes docker://x/b:1 (0.00 GiB) to make room"]
    assert not list((tmp_path / "trash").iterdir())


def test_a_start_counts_as_a_use(tmp_path: Path) -> None:
    store = limited(tmp_path, 5)
    first, second = started(store, "a", days_ago=2), started(store, "b", days_ago=1)

    started(store, "a")
    started(store, "c")

    assert [first.is_dir(), second.is_dir()] == [True, False]


def test_an_image_in_use_elsewhere_stays_and_the_words_name_it(tmp_path: Path) -> None:
    store = limited(tmp_path, 5)
    first, second = started(store, "a", days_ago=2), started(store, "b", days_ago=1)
    (first / "reference").write_text("docker://x/a:1")
    os.utime(first, (0, 0))
    with held(tmp_path, "a"):
        with pytest.raises(ImageError, match=r"Jobs are running in docker://x/a:1 \(0\.00 GiB\): wait"):
            started(store, "c", blocks=4)
        assert [first.is_dir(), second.is_dir()] == [True, True], "what does not help is not removed"
        started(store, "d")

    assert [first.is_dir(), second.is_dir()] == [True, False]


def test_an_image_whose_users_are_not_known_stays(tmp_path: Path) -> None:
    store = limited(tmp_path, 3)
    first = started(store, "a")
    (tmp_path / "uses" / first.name).unlink()

    with pytest.raises(ImageError):
        started(store, "b")
    assert first.is_dir()


def test_an_image_that_is_too_large_is_refused_and_nothing_is_removed(tmp_path: Path) -> None:
    store = limited(tmp_path, 3)
    first = started(store, "a")

    with pytest.raises(ImageError, match=r"are needed, .* may take .*containers\.images_gib"):
        started(store, "b", blocks=9)
    assert first.is_dir()
    assert not list((tmp_path / "parts").iterdir())


def test_an_image_that_is_known_to_be_too_large_is_not_even_brought(tmp_path: Path) -> None:
    def bring(_part: Path, _new: Path) -> None:
        pytest.fail("it was brought")

    with pytest.raises(ImageError, match="are needed"):
        limited(tmp_path, 3).folder_of(digest("a"), bring, 4 * BLOCK)


@pytest.mark.parametrize(("days_ago", "stays"), [(6, True), (8, False)])
def test_an_image_goes_when_it_was_not_started_for_the_days_of_the_limit(
    days_ago: float, stays: bool, tmp_path: Path
) -> None:
    store = ImageStore(tmp_path, lambda _: None, limits=StoreLimits(unused_seconds=7 * DAY))
    old = started(store, "a", days_ago=days_ago)

    store.digest_of_job("1", "b", lambda: digest("b"))

    assert old.is_dir() == stays


def test_an_image_of_a_job_that_runs_for_longer_than_the_limit_stays(tmp_path: Path) -> None:
    store = ImageStore(tmp_path, lambda _: None, limits=StoreLimits(unused_seconds=7 * DAY))
    old = started(store, "a", days_ago=8)
    with held(tmp_path, "a"):
        store.digest_of_job("1", "b", lambda: digest("b"))

    assert old.is_dir()


@pytest.mark.parametrize(("at_work", "days_ago", "stays"), [(False, 0, True), (False, 2, False), (True, 2, True)])
def test_what_a_killed_process_has_pulled_goes_after_a_day(
    at_work: bool, days_ago: float, stays: bool, tmp_path: Path
) -> None:
    store = ImageStore(tmp_path, lambda _: None)
    part = tmp_path / "parts/x"
    (part / "oci").mkdir(parents=True)
    with (tmp_path / "locks/x").open("a") as lock:
        if at_work:
            fcntl.flock(lock, fcntl.LOCK_EX)
        os.utime(lock.fileno(), (time.time() - days_ago * DAY,) * 2)
        store.digest_of_job("1", "b", lambda: digest("b"))

    assert part.is_dir() == stays


def test_trash_that_a_killed_process_has_left_goes_at_the_next_start(tmp_path: Path) -> None:
    store = ImageStore(tmp_path, lambda _: None)
    (tmp_path / "trash/x/rootfs").mkdir(parents=True)

    started(store, "a")

    assert not list((tmp_path / "trash").iterdir())


def test_the_size_of_an_image_counts_blocks_and_every_file_once(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/a").write_bytes(b"x")
    (tmp_path / "folder/b").write_bytes(bytes(BLOCK + 1))
    (tmp_path / "c").hardlink_to(tmp_path / "folder/b")

    assert size_of(tmp_path) == (1 + 2) * BLOCK


def test_the_size_of_a_container_with_a_folder_without_search_leaves_out_what_is_in_it(tmp_path: Path) -> None:
    user = 4719
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed/a").write_bytes(b"x")
    (tmp_path / "b").write_bytes(b"x")
    (tmp_path / "closed").chmod(0o600)
    os.chown(tmp_path, user, user)
    os.chown(tmp_path / "closed", user, user)

    done = subprocess.run(
        ["/usr/bin/python3", "-c", "from container_images.store_cleaning import size_of; print(size_of('.'))"],
        env={"PYTHONPATH": str(FOLDER)},
        cwd=tmp_path,
        user=user,
        group=user,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout, done.stderr) == (f"{BLOCK}\n", "")


def test_folders_are_opened_to_their_owner_and_links_are_left_alone(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("x")
    outside.chmod(0o000)
    root = tmp_path / "root"
    (root / "closed/deep").mkdir(parents=True)
    (root / "closed/deep/file").write_text("x")
    (root / "closed/link").symlink_to(outside)
    (root / "closed/deep/file").chmod(0o111)
    (root / "closed/deep").chmod(0o055)
    (root / "closed").chmod(0o000)

    open_to_owner(root)

    assert (root / "closed").stat().st_mode & 0o7777 == 0o700
    assert (root / "closed/deep").stat().st_mode & 0o7777 == 0o755
    assert (root / "closed/deep/file").stat().st_mode & 0o7777 == 0o511
    assert outside.stat().st_mode & 0o7777 == 0


@pytest.mark.parametrize("mode", [0o000, 0o555])
def test_a_closed_folder_can_be_removed(mode: int, tmp_path: Path) -> None:
    (tmp_path / "root/closed").mkdir(parents=True)
    (tmp_path / "root/closed/x").touch()
    (tmp_path / "root/closed").chmod(mode)
    (tmp_path / "root").chmod(mode)

    remove(tmp_path / "root")

    assert not (tmp_path / "root").exists()
