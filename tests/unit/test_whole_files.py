"""Files are written as a whole or not at all."""

import errno
from pathlib import Path

import pytest

from soperator_pulumi.whole_files import write_whole


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file"


def test_a_new_file_is_for_its_owner_unless_a_mode_is_given(file: Path, tmp_path: Path) -> None:
    write_whole(file, b"secret")
    write_whole(tmp_path / "archive", b"layers", mode=0o644)

    assert [path.stat().st_mode & 0o777 for path in (file, tmp_path / "archive")] == [0o600, 0o644]


def test_a_file_that_exists_keeps_its_mode(file: Path) -> None:
    file.touch()
    file.chmod(0o640)
    write_whole(file, "new")

    assert file.read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o640


def test_what_has_opened_the_file_still_reads_the_old_content(file: Path) -> None:
    file.write_text("old")
    with file.open() as opened:
        write_whole(file, "new")
        assert opened.read() == "old"


def test_a_file_that_cannot_be_replaced_stays_as_it_is_and_nothing_is_left(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    file.write_text("old")
    monkeypatch.setattr(Path, "replace", refuse)

    with pytest.raises(OSError, match="No space left on device"):
        write_whole(file, "new")
    assert file.read_text() == "old"
    assert [*file.parent.iterdir()] == [file]
