"""A run of tests prints where its time went."""

import re
import subprocess
import sys
from pathlib import Path

from tests.time_spent import Ledger, Spent, table
from tools import paths

CONFTEST = """
from tests.time_spent import register as pytest_configure
"""
BUSY = """
import subprocess, sys, time
import pytest
from tests.waiting import wait_until

@pytest.fixture(scope="module")
def cluster():
    subprocess.run([sys.executable, "-c", "while sum(__import__('os').times()[:2]) < 0.7: pass"], check=True)

def test_that_works(cluster):
    pass

def test_that_waits():
    began = time.monotonic()
    wait_until(lambda: time.monotonic() - began > 0.3, "it is later")
"""
QUICK = """
def test_quickly():
    pass
"""


def test_seconds_of_all_processes_stand_with_the_module_and_the_fixture_that_took_them(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_busy.py").write_text(BUSY)
    (tmp_path / "test_quick.py").write_text(QUICK)
    options = ["-c", "/dev/null", "--rootdir", str(tmp_path), "-n", "1", "-p", "no:randomly"]
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    done = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows: dict[str, list[str]] = {}
    for line in done.stdout.partition("time spent")[2].splitlines():
        rows.setdefault(" ".join(line.split()[4:]), line.split()[:4])

    wall, own, machine, _ = map(float, rows["test_busy.py"])
    assert wall >= 1
    assert own >= 0.6
    assert machine >= 0.6
    assert float(rows["cluster in test_busy.py"][1]) >= 0.6
    assert float(rows["test_quick.py"][1]) < 0.5
    assert int(rows["test_busy.py"][3]) == 6
    assert list(rows).index("test_busy.py") < list(rows).index("test_quick.py")
    assert re.search(r"processes started: [1-9]\d* by tests, of them 0 Pulumi programs", done.stdout)


def test_a_ledger_arrives_as_it_was_sent() -> None:
    sent, received = Ledger(), Ledger()
    sent.phases["test_a.py", "call"].add(Spent(1, 2.0, 1.0, 3.0))
    sent.waits["test_a.py"].add(Spent(7, 2.5))
    sent.counts["processes"] += 3

    for _ in range(2):
        received.add_plain(sent.plain())

    assert received.phases == {("test_a.py", "call"): Spent(2, 4.0, 2.0, 6.0)}
    assert received.waits == {"test_a.py": Spent(14, 5.0)}
    assert received.counts == {"processes": 6}


def test_the_longest_stand_first_and_the_table_has_an_end() -> None:
    ledger = Ledger()
    for number in range(100):
        ledger.phases[f"test_{number}.py", "call"].add(Spent(1, float(number)))

    lines = list(table(ledger, 5000, 4000, 10))

    modules = [line for line in lines if ".py" in line]
    assert "test_99.py" in modules[0]
    assert len(modules) == 25
    assert "in all: 5000 s of wall, 4000 s of the machine's processors" in lines[-1]
