"""Removal by root of copies that their users start no more."""

import fcntl
import os
import tracemalloc
from pathlib import Path

import pytest

from container_images.copies_on_disk import remove_unused

USER, NOW, DAY = 2001, 10_000_000.0, 86_400.0


@pytest.fixture
def store(tmp_path: Path) -> Path:
    for name in ("images", "uses", "parts", "locks", "trash"):
        (tmp_path / str(USER) / name).mkdir(parents=True)
    return tmp_path / str(USER)


def make(store: Path, kind: str, name: str, days: float) -> Path:
    """Make a folder with a file that changed last so many days ago, and its lock."""
    folder = store / kind / name
    folder.mkdir()
    (folder / "file").touch()
    (store / {"images": "uses", "parts": "locks"}[kind] / name).touch()
    os.utime(folder, (NOW - days * DAY,) * 2)
    return folder


def left(store: Path) -> list[str]:
    return sorted(
        str(path.relative_to(store)) for kind in ("images", "parts", "trash") for path in (store / kind).iterdir()
    )


def test_what_was_not_started_for_too_long_goes(store: Path) -> None:
    make(store, "images", "old", 8)
    make(store, "images", "new", 6)

    assert remove_unused(store.parent, USER, NOW, 7 * DAY) == 1
    assert left(store) == ["images/new"]


def test_a_copy_that_a_task_uses_stays(store: Path) -> None:
    make(store, "images", "old", 8)
    with (store / "uses/old").open("r+") as task:
        fcntl.flock(task, fcntl.LOCK_SH)
        assert remove_unused(store.parent, USER, NOW, 7 * DAY) == 0
    assert left(store) == ["images/old"]


def test_without_a_limit_copies_stay_and_remains_of_killed_processes_go(store: Path) -> None:
    make(store, "images", "old", 8)
    make(store, "parts", "killed", 2)
    make(store, "parts", "at work", 0)
    (store / "trash/thrown/folder").mkdir(parents=True)

    assert remove_unused(store.parent, USER, NOW, None) == 0
    assert left(store) == ["images/old", "parts/at work"]


@pytest.mark.parametrize("name", ["images", "uses", "trash"])
def test_a_link_in_place_of_a_folder_is_not_followed(store: Path, tmp_path: Path, name: str) -> None:
    copy = make(store, "images", "old", 8)
    elsewhere = (store / name).rename(tmp_path / "elsewhere")
    (store / name).symlink_to(elsewhere)

    assert remove_unused(store.parent, USER, NOW, 7 * DAY) == 0
    assert (copy / "file").exists()


def test_a_link_in_place_of_the_users_folder_is_not_followed(store: Path, tmp_path: Path) -> None:
    make(store, "images", "old", 8)
    (tmp_path / "2002").symlink_to(store)

    assert remove_unused(tmp_path, 2002, NOW, 7 * DAY) == 0
    assert left(store) == ["images/old"]


@pytest.mark.parametrize("name", ["images", "uses"])
def test_a_link_in_place_of_a_copy_or_of_its_lock_is_not_followed(store: Path, tmp_path: Path, name: str) -> None:
    make(store, "images", "old", 8)
    elsewhere = (store / name / "old").rename(tmp_path / "elsewhere")
    (store / name / "old").symlink_to(elsewhere)

    assert remove_unused(store.parent, USER, NOW, 7 * DAY) == 0
    assert elsewhere.exists()


def test_a_pipe_in_place_of_a_lock_holds_nothing_up(store: Path) -> None:
    make(store, "images", "old", 8)
    (store / "uses/old").unlink()
    os.mkfifo(store / "uses/old")

    assert remove_unused(store.parent, USER, NOW, 7 * DAY) == 1


def test_a_user_without_a_store_has_nothing_to_remove(tmp_path: Path) -> None:
    assert remove_unused(tmp_path, USER, NOW, DAY) == 0


def test_a_trash_with_many_files_takes_little_memory_of_root(store: Path) -> None:
    (store / "trash/thrown").mkdir()
    for number in range(20_000):
        (store / f"trash/thrown/{number}").touch()

    tracemalloc.start()
    remove_unused(store.parent, USER, NOW, None)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert left(store) == []
    assert peak_bytes < 500_000
