"""Cost of a round of quick checks on a healthy node with eight GPUs, and a thousand of them under load."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from health_testing.smi_outputs import query
from soperator_pulumi.render.node_health import node_settings
from tests.strategies import a_spec
from tools import paths

ROUNDS = 1000
MOST_CPU_SECONDS, MOST_MIB = 0.2, 20
"""Bounds of a round, of all nodes at all times: they pay for it while jobs run."""

ONE_ROUND = """
import sys
sys.path.insert(0, sys.argv[1])
from node_health import readers
from node_health.command import check
from node_health.health_round import Slurm
from node_health.state_machine import NodeState
readers.SMI_PLACES = (sys.argv[3],)
drained = []
slurm = Slurm(lambda *_: NodeState("IDLE", ""), lambda *call: drained.append(call), lambda *_: None)
for _ in range(int(sys.argv[4])):
    check("gpu-0", sys.argv[2], sys.argv[2], slurm)
with open("/proc/self/status") as status, open(sys.argv[2] + "/peak", "w") as peak:
    peak.write(next(line.split()[1] for line in status if line.startswith("VmHWM")))
sys.exit(7 if drained else 0)
"""

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
    checks = {name: each for name, each in settings["checks"].items() if name not in {"slurmd", "volume_space"}}
    settings["checks"] = {name: {**each, "every_seconds": 0} for name, each in checks.items()}
    (tmp_path / "gpu.json").write_text(json.dumps(settings))
    (tmp_path / "answer").write_text(query("h100-550"))
    smi = tmp_path / "nvidia-smi"
    smi.write_text(f'#!/bin/sh\n[ "$1" != -q ] || cat {tmp_path}/answer\n')
    smi.chmod(0o755)
    return tmp_path


def run(node: Path, rounds: int) -> tuple[int, float, float]:
    """Return the exit status, the CPU seconds and the MiB of so many rounds in a process."""
    command = [sys.executable, "-IS", "-c", ONE_ROUND, str(paths.ROOT / "images/health"), str(node)]
    quiet = [(os.POSIX_SPAWN_OPEN, 1, str(node / "printed"), os.O_WRONLY | os.O_CREAT, 0o600)]
    arguments = [*command, str(node / "nvidia-smi"), str(rounds)]
    pid = os.posix_spawn(sys.executable, arguments, os.environ, file_actions=quiet)
    _, status, used = os.wait4(pid, 0)
    # ru_maxrss would be that of this process, from which the other one was made.
    peak_mib = int((node / "peak").read_text()) / 1024
    return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, peak_mib


def test_a_round_costs_little(node: Path) -> None:
    run(node, 1)  # compiles the modules, as the image's build does
    measured = [run(node, 1) for _ in range(5)]
    cpu, memory = min(each[1] for each in measured), max(each[2] for each in measured)
    print(f"a round: {cpu:.3f} s of CPU, {memory:.1f} MiB")

    assert {each[0] for each in measured} == {0}
    assert cpu <= MOST_CPU_SECONDS
    assert memory <= MOST_MIB


@contextmanager
def load(folder: Path) -> Iterator[None]:
    code = [each.replace("FILE", repr(str(folder / "load"))) for each in LOADS]
    running = [subprocess.Popen([sys.executable, "-c", each]) for each in code]
    try:
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()


def test_a_thousand_healthy_rounds_under_load_drain_nothing(node: Path) -> None:
    with load(node):
        status, cpu, memory = run(node, ROUNDS)
    print(f"{ROUNDS} rounds under load: {cpu / ROUNDS:.3f} s of CPU each, {memory:.1f} MiB")

    assert status == 0
