"""Cost of the exporter of metrics at 1,000 nodes and 5,000 jobs: its memory, its calls of Slurm, and a scrape."""

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

from tests.bench.ratios import Goal, report, seconds
from tests.bench.sizes import size
from tests.waiting import wait_until
from tools import paths

COUNT_OF_NODES, COUNT_OF_JOBS = size(1000, 10), size(5000, 20)
SCRAPES = size(20, 2)
ASKED = size(200, 2)
"""Nodes that a program asks for one by one: they stand for all."""
ROUNDS = size(3, 1)
INTERVAL_SECONDS = size(5, 1)
CALLS = 3
"""Calls of Slurm in a round."""

BARE = "import http.server, prometheus_client; print(open('/proc/self/status').read())"
"""Program that imports what any exporter in Python imports, and prints its status."""


@dataclass
class Exporter:
    """A running exporter, whose Slurm is three programs that print files."""

    process: "subprocess.Popen[bytes]"
    port: int
    calls: Path

    def scrape(self) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=60) as answer:
            return bytes(answer.read())

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
    options = ["--port", str(port), "--interval", str(INTERVAL_SECONDS)]
    process = subprocess.Popen([sys.executable, "-c", program, *options], env=environment)
    made = Exporter(process, port, folder / "calls")
    try:
        # The second has the most to hold: its own answers, and the page of the first.
        wait_until(lambda: answers_to_scrapes(made) and made.count_of_calls() >= 2 * CALLS, what="two rounds are over")
        yield made
    finally:
        process.terminate()
        process.wait(30)


def answers_to_scrapes(exporter: Exporter) -> bool:
    with suppress(OSError):
        return bool(exporter.scrape())
    return False


def peak_mib(status: str) -> float:
    """Return the most memory that a process has had, by its status in /proc."""
    (kib,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(kib) / 1024


def test_its_memory_against_a_python_that_serves_nothing(exporter: Exporter) -> None:
    bare = subprocess.run([sys.executable, "-c", BARE], check=True, capture_output=True, text=True).stdout
    exporter.scrape()
    ours = peak_mib(Path(f"/proc/{exporter.process.pid}/status").read_text())
    what = f"memory of the exporter with {COUNT_OF_NODES} nodes and {COUNT_OF_JOBS} jobs"
    report(what, [ours], [peak_mib(bare)], "a Python that has imported the same", Goal(2.2), unit="MiB")


def test_calls_of_slurm_for_many_scrapes_against_a_round_for_each_scrape(exporter: Exporter) -> None:
    before = exporter.count_of_calls()
    for _ in range(SCRAPES):
        exporter.scrape()
    calls = exporter.count_of_calls() - before
    report(
        f"{SCRAPES} scrapes", [calls], [CALLS * SCRAPES], "a round for each scrape", Goal(0.1), unit="calls of Slurm"
    )


def test_a_scrape_against_a_program_that_asks_for_each_node(exporter: Exporter) -> None:
    slurm = os.environ | {"PATH": f"{exporter.calls.parent}:{os.environ['PATH']}"}
    loop = f"i=0; while [ $i -lt {ASKED} ]; do scontrol show node gpu-$i > /dev/null; i=$((i + 1)); done"
    scrapes, asks = [], []
    for _ in range(ROUNDS):
        asked = seconds(lambda: subprocess.run(["sh", "-c", loop], env=slurm, check=True))
        asks.append(asked * COUNT_OF_NODES / ASKED)
        scrapes.append(seconds(exporter.scrape))
    report("scrape", scrapes, asks, "one call of Slurm for each node", Goal(0.1))
