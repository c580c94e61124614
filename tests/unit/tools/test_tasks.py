"""Tasks in parallel: none outlives the failure of another, and each line names its task."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.waiting import wait_until
from tools import locks, tasks
from tools.console import UserError, say
from tools.kube.process import output, watched
from tools.paths import ROOT

PARENT = """\
import signal, sys
from pathlib import Path
from tests.unit.tools.test_tasks import long_build
from tools import console, tasks
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may have had it ignore
console.run(lambda: tasks.together({"build": lambda: long_build(Path(sys.argv[1])), "other": lambda: None}))
"""


def long_call(folder: Path) -> None:
    output(["sh", "-c", f"echo $$ > {folder}/new; mv {folder}/new {folder}/program; exec sleep 600"])


def long_build(folder: Path) -> None:
    """Run a program that has started another one, as Go starts compilers."""
    script = f"sleep 600 & echo $! > {folder}/new; echo $$ > {folder}/program; mv {folder}/new {folder}/compiler; wait"
    watched(
        ["sh", "-c", script],
        environment={},
        cwd=folder,
        timeout_seconds=600,
        what="building",
        report=lambda _: None,
    )


def fail_when(condition: Callable[[], bool]) -> Callable[[], None]:
    def task() -> None:
        wait_until(condition, "the other task is at work")
        raise UserError("no space left")

    return task


def is_gone(noted: Path) -> bool:
    try:
        return (Path("/proc") / noted.read_text().strip() / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_tasks_run_in_parallel_and_their_lines_open_with_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    both = threading.Barrier(2, timeout=240)

    def task() -> None:
        both.wait()
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


@pytest.mark.parametrize(("task", "last"), [(long_call, "program"), (long_build, "compiler")])
def test_a_failure_ends_the_programs_of_the_others_and_is_the_one_raised(
    tmp_path: Path, task: Callable[[Path], None], last: str
) -> None:
    with pytest.raises(UserError, match="no space left"):
        tasks.together({"long": lambda: task(tmp_path), "short": fail_when((tmp_path / last).exists)})
    for noted in tmp_path.iterdir():
        wait_until(partial(is_gone, noted), f"{noted.name} is gone")


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
        tasks.together({"long": task, "short": fail_when(started.is_set)})
    assert ended.is_set()


def test_a_failure_ends_a_wait_for_a_lock(tmp_path: Path) -> None:
    waits = threading.Event()

    def task() -> None:
        waits.set()
        with locks.held(tmp_path / "lock", "waiting", wait_seconds=600):
            pytest.fail("it is held")

    with locks.held(tmp_path / "lock", "holding", wait_seconds=0), pytest.raises(UserError, match="no space left"):
        tasks.together({"long": task, "short": fail_when(waits.is_set)})


def test_after_a_failure_programs_run_as_before() -> None:
    with pytest.raises(UserError):
        tasks.together({"short": fail_when(lambda: True)})
    assert output(["echo", "fine"]) == "fine\n"


@pytest.mark.parametrize(
    ("sent", "told"),
    [(signal.SIGINT, "interrupted: rerun the same command to continue\n"), (signal.SIGKILL, "")],
    ids=["ctrl-c", "kill -9"],
)
def test_what_a_build_runs_ends_with_it_however_that_ends(tmp_path: Path, sent: signal.Signals, told: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, tmp_path], cwd=ROOT, stderr=subprocess.PIPE, text=True
    ) as parent:
        wait_until((tmp_path / "compiler").exists, "it builds")
        os.kill(parent.pid, sent)
        _, said = parent.communicate()
    assert said == told
    wait_until(lambda: is_gone(tmp_path / "program"), "the program is gone")
    if sent == signal.SIGKILL:  # what the program itself started ends by itself, as compilers do
        os.kill(int((tmp_path / "compiler").read_text()), signal.SIGKILL)
    wait_until(lambda: is_gone(tmp_path / "compiler"), "what it started is gone")
