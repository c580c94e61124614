"""One program at a time, and the others know which."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tools import locks
from tools.console import UserError
from tools.paths import ROOT

HOLD = "import sys; from pathlib import Path; from tools import locks\n"
HOLD += "with locks.held(Path(sys.argv[1]), 'kube up', wait_seconds=5): print('held', flush=True); sys.stdin.read()"


@contextmanager
def another_program(lock: Path) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_who_holds_it_and_since_when_is_said(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with (
        another_program(lock) as holder,
        pytest.raises(UserError, match=rf"held by process {holder.pid} \(kube up, since \d{{4}}-.*end it"),
        locks.held(lock, "kube down", wait_seconds=0.1),
    ):
        pass


def test_one_that_waits_goes_on_when_the_holder_ends_however_it_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = tmp_path / "lock"
    with another_program(lock) as holder:
        timer = threading.Timer(2, holder.kill)
        timer.start()
        with locks.held(lock, "kube down", wait_seconds=30):
            pass
        timer.join()
    assert f"waiting for process {holder.pid} (kube up" in capsys.readouterr().err


def test_it_is_free_after_the_body(tmp_path: Path) -> None:
    for _ in range(2):
        with locks.held(tmp_path / "lock", "kube up", wait_seconds=0.1):
            pass
