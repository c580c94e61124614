"""Tests that are slow and rare are left out of a run unless it is a soak."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import paths

TESTS = """
import pytest

@pytest.mark.soak
def test_rare():
    pass

def test_quick():
    pass
"""


@pytest.mark.parametrize(
    ("variables", "found"), [({}, "1 passed, 1 deselected in "), ({"SOAK": "1"}, "2 passed in ")], ids=["quick", "soak"]
)
def test_a_test_marked_so_runs_in_a_soak_alone(tmp_path: Path, variables: dict[str, str], found: str) -> None:
    (tmp_path / "conftest.py").symlink_to(paths.ROOT / "conftest.py")
    (tmp_path / "test_both.py").write_text(TESTS)
    options = ["-q", "-c", "/dev/null", "--rootdir", str(tmp_path), "-o", "markers=soak", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    inherited = {name: value for name, value in os.environ.items() if name != "SOAK"}
    environment = inherited | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | variables
    done = subprocess.run(
        command, cwd=paths.ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert found in done.stdout, done.stdout + done.stderr
