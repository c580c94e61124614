"""Shares of a file are run by pytest once in all, the longest file first, and progress names each file."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tools import paths
from tools.soak.pytest_plugin import of_shares, shares

LONG = """
import pytest

@pytest.mark.parametrize("number", range(5))
def test_of_many(number):
    pass
"""
GROUPED = f"""
import pytest

pytestmark = pytest.mark.xdist_group("cluster")
{LONG}"""
SHORT = """
def test_alone():
    pass
"""


def test_each_test_is_in_one_share_whatever_the_order() -> None:
    tests = [f"test_long.py::test_of_many[{number}]" for number in range(7)]
    found = [of_shares(order, {"test_long.py": ({share}, 3)}) for share in (1, 2, 3) for order in (tests, tests[::-1])]

    assert found[0::2] == found[1::2]
    assert sorted(test for run in found[0::2] for test in run) == tests
    assert [len(run) for run in found[0::2]] == [3, 2, 2]


def test_several_shares_of_a_file_add_up_and_other_files_run_whole() -> None:
    tests = [*(f"test_long.py::test_of_many[{number}]" for number in range(3)), "test_short.py::test_alone"]
    options = ["test_long.py=1/3", "test_long.py=3/3"]

    assert of_shares(tests, shares(options)) == {tests[0], tests[2], tests[3]}


def test_workers_run_the_share_and_progress_counts_files(tmp_path: Path) -> None:
    (tmp_path / "test_long.py").write_text(GROUPED)
    (tmp_path / "test_short.py").write_text(SHORT)
    options = ["-q", "-c", "/dev/null", "--rootdir", str(tmp_path), "-p", "no:cacheprovider", "-p", "xdist.plugin"]
    chosen = ["-p", "tools.soak.pytest_plugin", "--share=test_long.py=2/2", "test_short.py", "test_long.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-n", "1", "--dist", "loadfile", "--no-loadscope-reorder", *chosen],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(paths.ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "3 passed" in done.stdout, done.stdout + done.stderr
    assert re.findall(r"\d s  file (\d of 2: \w+\.py)", done.stdout) == [
        "1 of 2: test_short.py",
        "2 of 2: test_long.py",
    ]
