"""Tasks beside each other: none outlives the failure of another, and each line names its task."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import tasks
from tools.console import UserError, say
from tools.kube import locks
from tools.kube.process import output, watched
from tools.paths import ROOT

TASK = """\
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may have had it ignore
from tools import console, tasks
from tools.kube.process import output
def wait(): output(["sh", "-c", "echo $$ > {pid}; exec sleep 60"])
console.run(lambda: tasks.together({{"one": wait, "two": lambda: None}}))
"""


def fail_after(event: Callable[[], bool]) -> Callable[[], None]:
    def task() -> None:
        wait_until(event)
        raise UserError("no space left")

    return task


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_alive(pid_file: Path) -> bool:
    status = Path("/proc") / pid_file.read_text().strip() / "stat"
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_tasks_run_beside_each_other_and_their_lines_open_with_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    barrier = threading.Barrier(2, timeout=30)

    def task() -> None:
        barrier.wait()
        say("two\nlines")

    tasks.together({"kubernetes": task, "images": task})
    assert sorted(capsys.readouterr().err.splitlines()) == [
        "images     | lines",
        "images     | two",
        "kubernetes | lines",
        "kubernetes | two",
    ]
    say("alone")
    assert capsys.readouterr().err == "alone\n"


@pytest.mark.parametrize("run", [output, None], ids=["output", "watched"])
def test_a_failure_ends_the_programs_of_the_others_and_is_the_one_raised(
    tmp_path: Path, run: Callable[..., str] | None
) -> None:
    pid = tmp_path / "pid"
    command = ["sh", "-c", f"(echo $BASHPID; exec sleep 60) & echo $! > {pid}.new && mv {pid}.new {pid}; wait"]

    def task() -> None:
        if run:
            run(["sh", "-c", f"echo $$ > {pid}.new && mv {pid}.new {pid}; exec sleep 60"])
        else:
            watched(command, environment={}, cwd=tmp_path, timeout_seconds=60, what="waiting", report=lambda _: None)

    with pytest.raises(UserError, match="no space left"):
        tasks.together({"long": task, "short": fail_after(pid.exists)})
    wait_until(lambda: not is_alive(pid))


def test_a_failure_lets_the_others_start_no_other_program() -> None:
    started, ended = threading.Event(), threading.Event()

    def task() -> None:
        try:
            while True:
                output(["true"])
                started.set()
        except tasks.Ended:
            ended.set()

    with pytest.raises(UserError, match="no space left"):
        tasks.together({"long": task, "short": fail_after(started.is_set)})
    assert ended.is_set()


def test_a_failure_ends_a_wait_for_a_lock(tmp_path: Path) -> None:
    waits = threading.Event()

    def task() -> None:
        waits.set()
        with locks.held(tmp_path / "lock", "waiting", wait_seconds=600):
            pytest.fail("it is held")

    with locks.held(tmp_path / "lock", "holding", wait_seconds=0), pytest.raises(UserError, match="no space left"):
        tasks.together({"long": task, "short": fail_after(waits.is_set)})


def test_after_a_failure_programs_run_as_before() -> None:
    with pytest.raises(UserError):
        tasks.together({"short": fail_after(lambda: True)})
    assert output(["echo", "fine"]) == "fine\n"


def test_ctrl_c_ends_every_program_and_is_told_in_words(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with subprocess.Popen(
        [sys.executable, "-c", TASK.format(pid=pid)], cwd=ROOT, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_until(lambda: pid.exists() and pid.read_text() != "")
        os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert "interrupted: run the same command again" in said
    assert not is_alive(pid)
