"""Namespaces of test runs that were killed are found by the next run."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import left_behind

DEPLOYS = "from tests import left_behind; left_behind.record('hpc-1'); left_behind.record('hpc-2'); "


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Other processes than this one have a folder of their own for what they deploy."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(left_behind, "_FOLDER", tmp_path / "soperator-pulumi" / "test-namespaces")


def test_the_namespaces_of_a_killed_process_are_found_once() -> None:
    subprocess.run([sys.executable, "-c", f"{DEPLOYS} import os; os.kill(os.getpid(), 9)"], check=False)
    assert list(left_behind.by_killed_runs()) == ["hpc-1", "hpc-2"]
    assert list(left_behind.by_killed_runs()) == []


def test_those_of_a_process_that_runs_are_its_own() -> None:
    waits = f"{DEPLOYS} print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", waits], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        other.stdout.readline()
        assert list(left_behind.by_killed_runs()) == []
        other.kill()
    assert list(left_behind.by_killed_runs()) == ["hpc-1", "hpc-2"]


def test_a_namespace_that_could_not_be_removed_is_found_again() -> None:
    subprocess.run([sys.executable, "-c", DEPLOYS], check=True)
    assert next(left_behind.by_killed_runs()) == "hpc-1"
    assert list(left_behind.by_killed_runs()) == ["hpc-1", "hpc-2"]


def test_a_process_does_not_find_its_own() -> None:
    left_behind.record("hpc-3")
    assert list(left_behind.by_killed_runs()) == []
