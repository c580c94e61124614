"""Cost of the exporter of metrics at 1,000 nodes and 5,000 jobs: its memory, and a scrape against a round."""

import os
import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from exporter_testing.answers import DIAG, NODES, job_line

from tests.bench.ratios import report, seconds
from tests.waiting import wait_until
from tools import paths

COUNT_OF_NODES, COUNT_OF_JOBS = 1000, 5000
MEMORY_GOAL_MIB = 50
SCRAPES = 20
CALLS = 3
"""Calls of Slurm in a round."""


@dataclass
class Exporter:
    """A running exporter, whose Slurm is three programs that print files."""

    process: "subprocess.Popen[bytes]"
    port: int
    calls: Path

    def scrape(self) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=60) as answer:
            return bytes(answer.read())

    def peak_mib(self) -> float:
        """Return the most memory that the process has had."""
        (kib,) = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text())
        return int(kib) / 1024

    def count_of_calls(self) -> int:
        return len(self.calls.read_text().splitlines())


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    folder = tmp_path_factory.mktemp("slurm")
    _, node = NODES.splitlines()
    jobs = (
        job_line(JobID=str(i), UserName=f"user{i % 200}", NodeList=f"gpu-{i % COUNT_OF_NODES}")
        for i in range(COUNT_OF_JOBS)
    )
    answers = {
        "scontrol": "\n".join(node.replace("gpu-0", f"gpu-{i}") for i in range(COUNT_OF_NODES)).encode(),
        "squeue": b"".join(jobs),
        "sdiag": DIAG.encode(),
    }
    for name, answer in answers.items():
        (folder / f"{name}.out").write_bytes(answer)
        (folder / name).write_text(f"#!/bin/sh\necho {name} >> {folder}/calls\nexec cat {folder}/{name}.out\n")
        (folder / name).chmod(0o755)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = "import sys; from slurm_exporter.command import main; sys.exit(main(sys.argv[1:]))"
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(paths.ROOT / "images" / "exporter")}
    process = subprocess.Popen([sys.executable, "-c", program, "--port", str(port), "--interval", "5"], env=environment)
    made = Exporter(process, port, folder / "calls")
    try:
        # The second has the most to hold: its own answers, and the page of the first.
        wait_until(lambda: answers_to_scrapes(made) and made.count_of_calls() == 2 * CALLS, what="two rounds are over")
        yield made
    finally:
        process.terminate()
        process.wait(30)


def answers_to_scrapes(exporter: Exporter) -> bool:
    with suppress(OSError):
        return bool(exporter.scrape())
    return False


def test_its_memory_and_the_calls_of_slurm_for_many_scrapes(exporter: Exporter) -> None:
    before = exporter.count_of_calls()
    times = [seconds(exporter.scrape) for _ in range(SCRAPES)]
    size_mib = len(exporter.scrape()) / 1024**2
    print(
        f"\n{COUNT_OF_NODES} nodes, {COUNT_OF_JOBS} jobs: {exporter.peak_mib():.0f} MiB at most (goal: "
        f"{MEMORY_GOAL_MIB}), a scrape of {size_mib:.1f} MiB in {sorted(times)[SCRAPES // 2] * 1000:.0f} ms, {CALLS} "
        f"calls of Slurm a round"
    )
    assert exporter.count_of_calls() - before in {0, CALLS}
    assert exporter.peak_mib() < MEMORY_GOAL_MIB


def test_a_scrape_against_a_program_that_asks_for_each_node(exporter: Exporter) -> None:
    """Two hundred processes stand for the thousand of a check of each node."""
    slurm = os.environ | {"PATH": f"{exporter.calls.parent}:{os.environ['PATH']}"}
    for_each = ["sh", "-c", "i=0; while [ $i -lt 200 ]; do scontrol show node gpu-$i > /dev/null; i=$((i + 1)); done"]
    asks = [seconds(lambda: subprocess.run(for_each, env=slurm, check=True)) * 5 for _ in range(3)]
    report("scrape", [seconds(exporter.scrape) for _ in range(3)], asks, "one call of Slurm for each node", 0.1)
