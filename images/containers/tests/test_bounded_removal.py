"""Removal of folders that users have filled."""

import os
from pathlib import Path

import pytest

from container_images.bounded_removal import remove_entries


def removed(folder: Path, most: int) -> bool:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return remove_entries(descriptor, most)
    finally:
        os.close(descriptor)


def entries_below(folder: Path) -> int:
    return sum(1 for _ in folder.rglob("*"))


def test_folders_and_files_of_all_kinds_go(tmp_path: Path) -> None:
    (tmp_path / "one/two/three").mkdir(parents=True)
    (tmp_path / "one/two/file").touch()
    (tmp_path / ".hidden").touch()
    os.mkfifo(tmp_path / "one/pipe")

    assert removed(tmp_path, 100)
    assert entries_below(tmp_path) == 0


def test_more_than_a_call_looks_at_is_left_to_later_calls(tmp_path: Path) -> None:
    (tmp_path / "folder/inner").mkdir(parents=True)
    for number in range(10):
        (tmp_path / f"folder/{number}").touch()

    assert not removed(tmp_path, 5)
    assert entries_below(tmp_path) == 7
    assert not removed(tmp_path, 5)
    assert removed(tmp_path, 5)
    assert entries_below(tmp_path) == 0


@pytest.mark.parametrize("place", ["link", "folder/link"])
def test_a_link_is_removed_and_not_followed(tmp_path: Path, place: str) -> None:
    (tmp_path / "trash/folder").mkdir(parents=True)
    (tmp_path / "elsewhere/file").mkdir(parents=True)
    (tmp_path / "trash" / place).symlink_to(tmp_path / "elsewhere")

    assert removed(tmp_path / "trash", 100)
    assert (tmp_path / "elsewhere/file").exists()
    assert entries_below(tmp_path / "trash") == 0


def test_what_cannot_be_removed_ends_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/held").touch()
    (tmp_path / "file").touch()
    unlink = os.unlink

    def refused(name: str, *, dir_fd: int) -> None:
        if name == "held":
            raise PermissionError
        unlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", refused)
    assert removed(tmp_path, 100)
    monkeypatch.undo()
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["folder", "held"]
