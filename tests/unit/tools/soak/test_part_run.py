"""A part that passes is recorded with its commit. One that fails or is killed leaves no trace."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.waiting import wait_until
from tools import paths
from tools.soak import __main__ as soak
from tools.soak import part_run, passes
from tools.soak.parts import LANES, Piece, SoakPart

CLUSTERS = LANES[1]
CONFTEST = """
from tests.time_spent import register as pytest_configure
"""
OPTIONS = """
[pytest]
addopts = --import-mode=importlib -p no:cacheprovider -p xdist.plugin
"""
PASSES = """
def test_passes():
    pass
"""
FAILS = """
def test_fails():
    raise AssertionError
"""
CHANGES_THE_TREE = """
from pathlib import Path

def test_changes_the_tree():
    Path("made.txt").touch()
"""
WAITS = """
import time
from pathlib import Path

def test_waits():
    Path("begun").touch()
    time.sleep(300)
"""


@pytest.fixture
def commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], SoakPart]:
    """Commit a test to a tree of its own, which becomes that of the tools, and return a part with the test alone."""
    root = tmp_path / "tree"
    monkeypatch.setattr(paths, "ROOT", root)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[4]))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # most of the seconds of so small a run
    (root / "unit").mkdir(parents=True)
    (root / "unit/conftest.py").write_text(CONFTEST)
    (root / "pytest.ini").write_text(OPTIONS)
    (root / ".gitignore").write_text("__pycache__\n")
    subprocess.run(["git", "init", "-q", root], check=True)

    def committed(test: str) -> SoakPart:
        (root / "unit/test_one.py").write_text(test)
        author = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        subprocess.run(["git", "-C", root, "add", "."], check=True)
        subprocess.run(["git", *author, "-C", root, "commit", "-qm", "change", "--allow-empty"], check=True)
        return SoakPart("3/9", LANES[0], (Piece("unit/test_one.py", 1, is_alone=True),))

    return committed


def test_a_pass_is_recorded_with_its_commit_and_the_seconds_of_its_files(commit: Callable[[str], SoakPart]) -> None:
    assert part_run.run(commit(PASSES))

    (found,) = passes.recorded()
    assert (found.part, found.lane, found.revision) == ("3/9", LANES[0].name, passes.revision())
    assert not found.revision.changed
    assert 0 <= found.measured["unit/test_one.py"] < 60


def test_a_failure_is_not_recorded(commit: Callable[[str], SoakPart], capfd: pytest.CaptureFixture[str]) -> None:
    assert not part_run.run(commit(FAILS))

    assert passes.recorded() == []
    assert "Part 3/9 failed after 1 minute. To rerun it: make soak PART=3/9" in capfd.readouterr().err


def test_a_pass_of_a_tree_with_uncommitted_changes_says_so(
    commit: Callable[[str], SoakPart], capfd: pytest.CaptureFixture[str]
) -> None:
    part = commit(PASSES)
    (paths.ROOT / "new.txt").touch()

    assert part_run.run(part)

    assert [str(found.revision)[10:] for found in passes.recorded()] == ["+changes"]
    assert "counts for no commit" in capfd.readouterr().err


def test_a_change_while_a_part_runs_counts_as_uncommitted(commit: Callable[[str], SoakPart]) -> None:
    assert part_run.run(commit(CHANGES_THE_TREE))

    assert [found.revision.changed for found in passes.recorded()] == [True]


def test_a_part_that_is_killed_leaves_no_record(commit: Callable[[str], SoakPart]) -> None:
    part = commit(WAITS)
    program = (
        "from pathlib import Path; from tools import paths; from tools.soak import part_run; "
        "from tools.soak.parts import LANES, SoakPart, Piece; "
        f"paths.ROOT = Path({str(paths.ROOT)!r}); part_run.run(SoakPart('3/9', LANES[0], {part.pieces!r}))"
    )
    with subprocess.Popen([sys.executable, "-c", program], start_new_session=True) as process:
        try:
            wait_until((paths.ROOT / "begun").exists, "the test runs", timeout_seconds=60)
        finally:
            os.killpg(process.pid, signal.SIGKILL)

    assert passes.recorded() == []


def test_all_parts_run_after_one_that_fails_and_the_exit_code_reports_it(
    commit: Callable[[str], SoakPart], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    fails = commit(FAILS)
    (paths.ROOT / "unit/test_two.py").write_text(PASSES)
    passes_later = SoakPart("4/9", LANES[0], (Piece("unit/test_two.py", 1, is_alone=True),))
    monkeypatch.setattr(soak, "all_parts", lambda: [fails, passes_later])
    monkeypatch.setattr(sys, "argv", ["soak"])

    assert soak.main() == 1

    assert [found.part for found in passes.recorded()] == ["4/9"]
    assert "1 of 2 parts failed: 3/9." in capfd.readouterr().err


def test_files_of_clusters_run_two_at_a_time_and_shares_are_named() -> None:
    pieces = [Piece("tests/cluster/test_kills.py", 300, 1, 2), Piece("tests/cluster/test_jobs.py", 30)]
    found = part_run.pytest_arguments(CLUSTERS, pieces)

    assert found[found.index("-n") :] == [
        *("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"),
        "--share=tests/cluster/test_kills.py=1/2",
        "tests/cluster/test_kills.py",
        "tests/cluster/test_jobs.py",
    ]


def test_tests_read_full_numbers_and_their_version_of_slurm_from_the_environment() -> None:
    assert part_run.environment(SoakPart("1/1", LANES[0], ())) == {"SOAK": "1"}
    assert part_run.environment(SoakPart("1/1", CLUSTERS, ())) == {"SOAK": "1", "SLURM_VERSION": CLUSTERS.slurm}
