"""One program at a time, and the others know which."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tools import locks
from tools.console import UserError
from tools.paths import ROOT

HOLD = "import sys; from pathlib import Path; from tools import locks\n"
HOLD += "with locks.held(Path(sys.argv[1]), 'up of prod', wait_seconds=5): print('held', flush=True); sys.stdin.read()"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "stack.lock"


@contextmanager
def another_program(file: Path) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(file)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_held_lock_is_refused_with_who_what_and_since_when(file: Path) -> None:
    said: list[str] = []
    with (
        another_program(file) as holder,
        pytest.raises(UserError, match=rf"`up of prod`, process {holder.pid} of \w+ on \S+, since 20.*Rerun"),
        locks.held(file, "up", wait_seconds=0.3, say=said.append),
    ):
        pass
    assert len(said) == 1, "one line for the whole wait"


def test_who_waits_prints_for_whom(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with another_program(file) as holder, pytest.raises(UserError), locks.held(file, "down", wait_seconds=0.1):
        pass
    assert f"waiting up to 0.1 s for `up of prod`, process {holder.pid} of " in capsys.readouterr().err


def test_a_lock_is_taken_as_soon_as_its_holder_ends_however_that_ends(file: Path) -> None:
    with another_program(file) as holder, locks.held(file, "down", wait_seconds=30, say=lambda _: holder.kill()):
        pass


def test_a_killed_holder_holds_nothing(file: Path) -> None:
    with another_program(file) as holder:
        holder.kill()
        holder.wait()
        with locks.held(file, "up", wait_seconds=0):
            pass


def test_a_lock_is_free_after_the_body(file: Path) -> None:
    for _ in range(2):
        with locks.held(file, "up", wait_seconds=0):
            pass
