"""Failures are printed when they come, each reason once."""

import subprocess
import sys
from pathlib import Path

from tools import paths

CONFTEST = """
from tests.failures_at_once import register as pytest_configure
"""
TESTS = """
import pytest

@pytest.fixture(scope="session")
def cluster():
    raise RuntimeError("no cluster")

@pytest.mark.parametrize("number", range(20))
def test_needs_the_cluster(cluster, number):
    pass
"""


def test_the_reason_of_a_broken_fixture_is_printed_once_and_before_the_report(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_them.py").write_text(TESTS)
    options = ["-c", "/dev/null", "--rootdir", str(tmp_path), "-n", "2", "--dist", "loadfile"]
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    done = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, timeout=120, check=False)
    before, _, _ = done.stdout.partition("= ERRORS =")
    assert before.count("RuntimeError: no cluster") == 1
    assert "failed in its setup after" in before
    assert "GiB of memory and" in before
