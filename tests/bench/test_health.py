"""Cost of a round of quick checks on a healthy node with eight GPUs: all nodes pay for it while jobs run."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from health_testing import IMPORT_ROOTS
from health_testing.smi_outputs import query
from soperator_pulumi.render.node_health import node_settings
from tests.bench.ratios import Goal, report
from tests.bench.sizes import size
from tests.strategies import a_spec

SINGLE_ROUNDS = size(5, 1)
"""One a process, as a node runs them."""
LOADED_ROUNDS, QUIET_ROUNDS = size(1000, 2), size(100, 2)
"""In one process."""

RECORD_PEAK = """
import sys
with open("/proc/self/status") as status, open(sys.argv[2] + "/peak", "w") as peak:
    peak.write(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""
CHECKS = f"""
import sys
sys.path[:0] = sys.argv[1].split(":")
from node_health import readers
from node_health.command import check
from node_health.health_round import Slurm
from node_health.state_machine import NodeState
readers.SMI_PLACES = (sys.argv[3],)
drained = []
slurm = Slurm(lambda *_: NodeState("IDLE", ""), lambda *call: drained.append(call), lambda *_: None)
for _ in range(int(sys.argv[4])):
    check("gpu-0", sys.argv[2], sys.argv[2], slurm)
{RECORD_PEAK}
sys.exit(7 if drained else 0)
"""
"""Runs the rounds, and fails if one of them drains the node."""

LOADS = (
    "while True: sum(range(10**6))",
    "import os\nwhile True:\n f = open(FILE, 'wb'); f.write(bytes(10**8)); os.fsync(f.fileno()); f.close()",
    "while True: bytes(3 * 10**8)",
)
"""Load of CPU, disk and memory."""


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Folder of a healthy node with eight GPUs, whose checks all run in each round."""
    spec = a_spec(
        node_sets=[
            {
                "name": "gpu",
                "cpus": 8,
                "memory_gib": 1,
                "gpus": {"count": 8, "type": "h100"},
                "rdma": {"resource": "a.b/c"},
            }
        ]
    )
    settings: dict[str, Any] = node_settings(spec, spec.node_sets[0])
    volume = {"path": "/", "shared": False, "read_only": False}
    settings |= {"volumes": [volume], "jail": "/", "interval_seconds": 1}
    # slurmd is not here; the disk of this machine may be full.
    checks = {name: check for name, check in settings["checks"].items() if name not in {"slurmd", "volume_space"}}
    settings["checks"] = {name: {**check, "every_seconds": 0} for name, check in checks.items()}
    (tmp_path / "gpu.json").write_text(json.dumps(settings))
    (tmp_path / "answer").write_text(query("h100-550"))
    smi = tmp_path / "nvidia-smi"
    smi.write_text(f'#!/bin/sh\n[ "$1" != -q ] || cat {tmp_path}/answer\n')
    smi.chmod(0o755)
    return tmp_path


def run(node: Path, program: str, rounds: int = 1) -> tuple[float, float]:
    """Return the CPU seconds and the MiB of a program, which has to succeed."""
    command = [sys.executable, "-IS", "-c", program, ":".join(IMPORT_ROOTS), str(node)]
    quiet = [(os.POSIX_SPAWN_OPEN, 1, str(node / "printed"), os.O_WRONLY | os.O_CREAT, 0o600)]
    arguments = [*command, str(node / "nvidia-smi"), str(rounds)]
    pid = os.posix_spawn(sys.executable, arguments, os.environ, file_actions=quiet)
    _, status, used = os.wait4(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, (node / "printed").read_text()
    # ru_maxrss would be that of this process, from which the other one was made.
    peak_mib = int((node / "peak").read_text()) / 1024
    return used.ru_utime + used.ru_stime, peak_mib


def test_a_round_against_a_python_that_does_nothing(node: Path) -> None:
    run(node, CHECKS)  # compiles the modules, as the image's build does
    rounds, nothing = [], []
    for _ in range(SINGLE_ROUNDS):
        rounds.append(run(node, CHECKS))
        nothing.append(run(node, RECORD_PEAK))
    for part, (what, unit, goal) in enumerate((("CPU", "s", Goal(10)), ("memory", "MiB", Goal(2)))):
        ours, theirs = ([row[part] for row in series] for series in (rounds, nothing))
        report(f"{what} of a round", ours, theirs, "a Python that does nothing", goal, unit=unit)


@contextmanager
def load(folder: Path) -> Iterator[None]:
    code = [text.replace("FILE", repr(str(folder / "load"))) for text in LOADS]
    running = [subprocess.Popen([sys.executable, "-c", text]) for text in code]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def test_healthy_rounds_under_load_drain_nothing_and_cost_no_more(node: Path) -> None:
    quiet, _ = run(node, CHECKS, QUIET_ROUNDS)
    with load(node):
        loaded, _ = run(node, CHECKS, LOADED_ROUNDS)
    what = f"CPU of a round under load, {LOADED_ROUNDS} in all"
    report(what, [loaded / LOADED_ROUNDS], [quiet / QUIET_ROUNDS], "a round on a quiet machine", Goal(1.5))
