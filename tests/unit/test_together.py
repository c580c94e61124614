"""Tests that share a cluster run one after the other, and first."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tools import paths

CONFTEST = """
import pytest
from tests.together import register as pytest_configure

@pytest.fixture(scope="session")
def slurm():
    pass
"""
ONE = """
import pytest

def test_shares(slurm):
    pass

def test_alone():
    pass
"""
TWO = """
import pytest

@pytest.fixture
def slurm():
    pass

@pytest.mark.timeout(1200)
def test_has_its_own(slurm):
    pass
"""
THREE = """
import pytest

@pytest.fixture(scope="module")
def life(slurm):
    pass

def test_lives(life):
    pass
"""


def test_those_of_a_shared_cluster_run_first_and_in_one_process(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for name, text in (("one", ONE), ("two", TWO), ("three", THREE)):
        (tmp_path / f"test_{name}.py").write_text(text)
    options = ["-c", "/dev/null", "--rootdir", str(tmp_path), "-n", "2", "--dist", "loadfile", "-v"]
    plugins = [f"-p{plugin}" for plugin in ("xdist", "pytest_timeout")]
    command = [sys.executable, "-m", "pytest", *options, *plugins, "test_one.py", "test_two.py", "test_three.py"]
    environment = {**os.environ, "PYTHONPATH": str(paths.ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    ran = re.findall(r"\[(gw\d)\].*PASSED \S+::(\w+)", done.stdout)
    processes = {name: process for process, name in ran}
    assert processes.keys() == {"test_shares", "test_lives", "test_has_its_own", "test_alone"}, done.stdout
    assert processes["test_shares"] == processes["test_lives"] != processes["test_has_its_own"]
