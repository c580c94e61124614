"""The watch over munged: the container's real command, with stand-ins for its programs."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.rendered.cluster.clusters import a_deployment, containers_of, pod_of
from tests.unit.spank_plugin.compiler import toolchain
from tests.waiting import wait_until

FAILS, ANSWERS = "1", "0"

PROGRAMS = {
    "install": "",
    "mkdir": "",
    "munged": "exec /bin/sleep 60",
    "sleep": "",
    # Without a further answer it waits, as a munged of which nothing more is asked.
    "munge": 'read -r code < answers || exec /bin/sleep 60; sed -i 1d answers; exit "$code"',
    "timeout": '[ "$1 $2 $3" = "-s KILL 10" ] && shift 3 && exec "$@"',
}

FULL = """\
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
int fork(void)
{
    if (access("full", F_OK))
        return (int)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    errno = EAGAIN;
    return -1;
}
int vfork(void) { return fork(); }
"""
"""Library with which no program can be started while there is a file `full`: root has no limit of processes."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    for name, text in PROGRAMS.items():
        program = tmp_path / "bin" / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> calls\n{text}\n')
        program.chmod(0o755)
    return tmp_path


@contextmanager
def started(
    folder: Path, *answers: str, role: str = "hpc-controller", **variables: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the command of munged's container in a process group of its own, of which nothing is left."""
    folder.joinpath("answers").write_text("".join(f"{code}\n" for code in answers))
    munged = containers_of(pod_of(a_deployment(), role))["munged"]
    # Kubernetes replaces its own variables, and makes one of two dollar signs.
    words = [word.replace("$$", "$") for word in munged["command"]]
    environment = {"PATH": f"{folder}/bin:/usr/bin:/bin", **variables}
    with (
        (folder / "said").open("wb") as said,
        subprocess.Popen(
            words[words.index("/bin/sh") :], cwd=folder, env=environment, stderr=said, start_new_session=True
        ) as process,
    ):
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def run(folder: Path, *answers: str, **variables: str) -> int:
    """Run the command of munged's container until munged ends, and return its exit code."""
    with started(folder, *answers, **variables) as process:
        return process.wait(timeout=20)


def lines(folder: Path) -> list[str]:
    found = folder / "calls"
    return found.read_text().splitlines() if found.exists() else []


def calls(folder: Path, program: str) -> list[str]:
    return [line.removeprefix(f"{program} ") for line in lines(folder) if line.startswith(f"{program} ")]


def test_a_munged_that_answers_none_of_three_questions_is_killed(folder: Path) -> None:
    assert run(folder, FAILS, FAILS, FAILS) == -signal.SIGKILL
    assert calls(folder, "sleep") == ["60", "20", "20"]


def test_a_munged_that_answers_one_of_them_stays(folder: Path) -> None:
    run(folder, FAILS, ANSWERS, ANSWERS, FAILS, FAILS, ANSWERS, FAILS, FAILS, FAILS)
    assert len(calls(folder, "munge")) == 9


@pytest.fixture
def no_processes(folder: Path) -> str:
    """Library with which no process can be started while the file `full` exists."""
    (folder / "full.c").write_text(FULL)
    tools = toolchain()
    command = [*tools.compiler, "-fPIC", "-shared", "-o", "full.so", "full.c"]
    subprocess.run(command, cwd=folder, env={**os.environ, **tools.environment}, check=True, timeout=60)
    return str(folder / "full.so")


def test_a_watch_that_can_start_no_program_ends_munged_and_says_so(folder: Path, no_processes: str) -> None:
    (folder / "bin" / "sleep").write_text("#!/bin/sh\n: > full\n")

    assert run(folder, LD_PRELOAD=no_processes) == -signal.SIGKILL
    assert "its container starts again" in (folder / "said").read_text()


def test_a_container_that_kubernetes_ends_is_not_killed_by_the_watch(folder: Path) -> None:
    (folder / "bin" / "munged").write_text("#!/bin/sh\ntrap 'exit 7' TERM\necho munged >> calls\nwait_for_ever\n")
    (folder / "bin" / "wait_for_ever").write_text("#!/bin/sh\ntrap '' TERM\nexec /bin/sleep 1\n")
    (folder / "bin" / "wait_for_ever").chmod(0o755)
    with started(folder) as process:
        wait_until(lambda: {"munged", "munge"} <= {line.split()[0] for line in lines(folder)}, "a question")
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(timeout=20) == 7
    assert (folder / "said").read_text() == ""


def test_the_munged_of_jobs_starts_again_once_a_program_can_be_started_again(folder: Path, no_processes: str) -> None:
    (folder / "bin" / "sleep").write_text('#!/bin/sh\nexec /bin/sleep "$1"\n')
    munged = folder / "bin" / "munged"
    munged.write_text(munged.read_text().replace("exec", 'case "$*" in *--socket=*) exit ;; esac\nexec'))

    def of_jobs() -> int:
        return sum("--socket=/run/munge/jobs/munge.socket.2" in line for line in calls(folder, "munged"))

    with started(folder, role="hpc-cpu", LD_PRELOAD=no_processes) as process:
        wait_until(lambda: of_jobs() > 1, "it starts, and again")
        (folder / "full").touch()
        wait_until(lambda: "Cannot fork" in (folder / "said").read_text(), "no process can be started")
        had = of_jobs()
        (folder / "full").unlink()
        wait_until(lambda: of_jobs() > had + 1, "it starts again, and again")
        assert process.poll() is None, "the daemon's own munged is left alone"
