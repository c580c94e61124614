"""One run at a time on a stack."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.console import UserError
from tools.engine.lock import stack_lock

HOLD = """
import sys
from pathlib import Path
from tools.engine.lock import stack_lock
with stack_lock(Path(sys.argv[1]), "up of prod", 0, print):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "stack.lock"


def holder(file: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_free_lock_is_taken_and_given_back(file: Path) -> None:
    for _ in range(2):
        with stack_lock(file, "up", 0, print):
            pass


def test_a_held_lock_is_refused_with_who_what_and_since_when(file: Path) -> None:
    with holder(file) as process:
        said: list[str] = []
        with pytest.raises(UserError) as caught, stack_lock(file, "up", 0.3, said.append):
            pass
        process.communicate("")
    message = str(caught.value)
    assert f"`up of prod`, process {process.pid} of " in message
    assert f" on {os.uname().nodename}, since 20" in message
    assert len(said) == 1, "it says once that it waits"


def test_a_lock_is_taken_as_soon_as_it_is_free(file: Path) -> None:
    with holder(file) as process:
        assert process.stdin is not None

        def let_go(_: str) -> None:
            assert process.stdin is not None
            process.stdin.close()

        with stack_lock(file, "up", 30, let_go):
            pass


def test_a_killed_holder_holds_nothing(file: Path) -> None:
    with holder(file) as process:
        process.kill()
        process.wait()
        with stack_lock(file, "up", 0, print):
            pass
