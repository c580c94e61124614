"""Arguments of `make lab`."""

import io
import sys

import pytest

from tools.console import UserError
from tools.lab import __main__ as lab
from tools.lab.further_machines import Further
from tools.lab.slurm_machine import MEMORY_MIB


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Scripts of the machines that would start, with their memory in MiB."""
    scripts: list[tuple[str, int]] = []

    def run(script: str, *, memory_mib: int, processors: int, further: Further) -> int:
        assert processors > 1
        scripts.append((f"{script}\nmachines: {further.last}", memory_mib))
        return 3

    monkeypatch.setattr(lab, "run_on_terminal", run)
    monkeypatch.setattr(lab, "preparation", lambda: "prepare\n")
    monkeypatch.setattr(lab, "several", lambda machines: ("prepare\n", Further(machines)))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    return scripts


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Return the exit code of the command with arguments."""
    monkeypatch.setattr(sys, "argv", ["lab", *arguments])
    return lab.main()


def test_a_command_runs_after_slurm_is_up_and_gives_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, started: list[tuple[str, int]]
) -> None:
    assert call(monkeypatch, "make ssh CMD='srun hostname'") == 3
    ((script, memory_mib),) = started
    assert script.splitlines()[:2] == ["prepare", "make up"]
    assert script.splitlines()[2].startswith("sh -c ")
    assert memory_mib == MEMORY_MIB


def test_a_machine_without_slurm_runs_the_command_alone(
    monkeypatch: pytest.MonkeyPatch, started: list[tuple[str, int]]
) -> None:
    call(monkeypatch, "--without-slurm", "--memory-mib", "512", "uname -r")
    ((script, memory_mib),) = started
    assert "make up" not in script
    assert memory_mib == 512


def test_a_lab_has_one_machine_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, started: list[tuple[str, int]]
) -> None:
    call(monkeypatch, "true")
    call(monkeypatch, "--machines", "3", "true")
    assert [script.splitlines()[-1] for script, _ in started] == ["machines: 1", "machines: 3"]


def test_several_machines_without_their_kubernetes_are_refused(
    monkeypatch: pytest.MonkeyPatch, started: list[tuple[str, int]]
) -> None:
    with pytest.raises(UserError, match="leave out BARE, or leave out MACHINES"):
        call(monkeypatch, "--without-slurm", "--machines", "2", "true")
    assert not started


def test_a_shell_without_a_terminal_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, started: list[tuple[str, int]]
) -> None:
    with pytest.raises(UserError, match="needs a terminal"):
        call(monkeypatch)
    assert not started


@pytest.mark.parametrize("memory", ["", "8G", "-1", "255", "²"])
def test_a_wrong_memory_is_refused_with_the_least(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], started: list[tuple[str, int]], memory: str
) -> None:
    with pytest.raises(SystemExit):
        call(monkeypatch, f"--memory-mib={memory}", "true")
    assert "from 256 on" in capsys.readouterr().err
    assert not started
