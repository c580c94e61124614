"""The record of passes stands outside of the tree and survives what befalls its writers."""

from pathlib import Path

import pytest

from tools import paths
from tools.console import UserError
from tools.soak import passes
from tools.soak.parts import Piece
from tools.soak.passes import Pass, Revision

ONE = Pass("1/9", "clusters", Revision("a" * 40, changed=False), "2026-01-02T03:04:05+00:00", 700, {"test_a.py": 1.5})
OTHER = Pass("2/9", "clusters", Revision("b" * 40, changed=True), "2026-01-03T03:04:05+00:00", 800, {})


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the record of the machine as it is."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_without_a_record_nothing_has_passed() -> None:
    assert passes.recorded() == []


def test_passes_are_read_in_the_order_in_which_they_came() -> None:
    passes.append(ONE)
    passes.append(OTHER)

    assert passes.recorded() == [ONE, OTHER]


def test_a_line_that_was_cut_off_is_no_pass() -> None:
    passes.append(ONE)
    with passes.file().open("a") as lines:
        lines.write('{"part": "2/9", "la')

    assert passes.recorded() == [ONE]


def test_shares_of_a_file_in_one_run_have_its_seconds_in_equal_amounts() -> None:
    pieces = [Piece("test_a.py", 1, 2, 4), Piece("test_a.py", 1, 4, 4), Piece("test_b.py", 1), Piece("test_c.py", 1)]

    assert passes.by_piece(pieces, {"test_a.py": 60, "test_b.py": 7}) == {
        "test_a.py 2/4": 30,
        "test_a.py 4/4": 30,
        "test_b.py": 7,
    }


def test_a_tree_without_git_is_refused_with_the_next_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    with pytest.raises(UserError, match="run `make soak` in a checkout"):
        passes.revision()


def test_a_commit_that_the_checkout_does_not_have_has_no_distance() -> None:
    assert passes.commits_since("f" * 40) is None
