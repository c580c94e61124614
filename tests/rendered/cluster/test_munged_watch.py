"""The watch over munged: the container's real command, with stand-ins for its programs."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.rendered.cluster.clusters import a_deployment, containers_of, pod_of

FAILS, ANSWERS = "1", "0"

PROGRAMS = {
    "install": "",
    "munged": "exec /bin/sleep 60",
    "sleep": "",
    # Without a further answer it waits, as a munged of which nothing more is asked.
    "munge": 'read -r code < answers || exec /bin/sleep 60; sed -i 1d answers; exit "$code"',
    "timeout": '[ "$1 $2 $3" = "-s KILL 10" ] && shift 3 && exec "$@"',
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    for name, text in PROGRAMS.items():
        program = tmp_path / "bin" / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> calls\n{text}\n')
        program.chmod(0o755)
    return tmp_path


def run(folder: Path, *answers: str) -> int:
    """Run the command of munged's container until munged ends, and return its exit code."""
    folder.joinpath("answers").write_text("".join(f"{code}\n" for code in answers))
    munged = containers_of(pod_of(a_deployment(), "hpc-controller"))["munged"]
    # Kubernetes replaces its own variables, and makes one of two dollar signs.
    words = [word.replace("$$", "$") for word in munged["command"]]
    environment = {"PATH": f"{folder}/bin:/usr/bin:/bin"}
    return subprocess.run(
        words[words.index("/bin/sh") :], cwd=folder, env=environment, stderr=subprocess.DEVNULL, timeout=20, check=False
    ).returncode


def calls(folder: Path, program: str) -> list[str]:
    lines = folder.joinpath("calls").read_text().splitlines()
    return [line.removeprefix(f"{program} ") for line in lines if line.startswith(f"{program} ")]


def test_a_munged_that_answers_none_of_three_questions_is_killed(folder: Path) -> None:
    assert run(folder, FAILS, FAILS, FAILS) == -signal.SIGKILL
    assert calls(folder, "sleep") == ["60", "20", "20"]


def test_a_munged_that_answers_one_of_them_stays(folder: Path) -> None:
    run(folder, FAILS, ANSWERS, ANSWERS, FAILS, FAILS, ANSWERS, FAILS, FAILS, FAILS)
    assert len(calls(folder, "munge")) == 9
