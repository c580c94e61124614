"""Noise of an idle worker's own processes, as a job feels it: fixed work in a job, against the same in a plain process.

A program repeats the same work, and what interrupts it makes a quantum longer: slurmd, munged, the watch, the health
checks, and the kubelet and the runtime for the worker's pod. The plain process runs on the same machine while it has no
worker, in turn with the job, so that all other processes are in both.
"""

import base64
import math
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.bench.ratios import Goal, report
from tests.bench.sizes import size
from tests.cluster.slurm import JAIL, SMALL, Slurm, a_cluster, a_jail, a_node_set, bring_images, unique
from tests.conftest import Kubernetes
from tests.unit.spank_plugin.compiler import toolchain
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster

TURNS = size(5, 1)
QUANTA = size(60_000, 50)
"""Quanta in a turn. In full, they take over a minute: a round of health checks is in every turn."""
STEPS = 1_000_000
"""Multiplications in a quantum, about a millisecond."""

SOURCE = Path(__file__).parent / "programs/fixed_work.c"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The program, linked statically: it runs in any jail."""
    built = tmp_path / "fixed-work"
    tools = toolchain()
    command = [*tools.compiler, "-std=c11", "-D_DEFAULT_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-static"]
    subprocess.run([*command, "-o", built, SOURCE], env={**os.environ, **tools.environment}, check=True, timeout=300)
    return built


@pytest.fixture
def slurm(kubernetes: Kubernetes, tmp_path: Path) -> Iterator[Slurm]:
    bring_images(kubernetes)
    # With the 20m of other tests' pods, all others would take the processor from the job.
    own = a_node_set("cpu", pod_resources={**SMALL, "requests": {"cpu": "500m", "memory": "64Mi"}})
    made = Slurm(kubernetes, tmp_path, a_cluster(name=unique("bench-noise"), node_sets=[own], jail=a_jail(JAIL)))
    try:
        yield made
    finally:
        made.destroy()


def scale(slurm: Slurm, replicas: int) -> None:
    """Give the machine a worker, or take it away, and wait until it is idle or gone."""
    slurm.kubernetes.run(
        "scale", "statefulset", "cpu", "--namespace", slurm.namespace, f"--replicas={replicas}", "--timeout=60s"
    )
    if replicas:
        wait_until(lambda: slurm.node_state("cpu-0") == "IDLE+DYNAMIC_NORM", what="cpu-0 is idle")
    else:
        slurm.kubernetes.run("wait", "pod", "cpu-0", "--namespace", slurm.namespace, "--for=delete", "--timeout=120s")


def permille_999(quanta: Sequence[int]) -> float:
    """Return the milliseconds that 999 of 1,000 quanta don't exceed."""
    return sorted(quanta)[math.ceil(len(quanta) * 0.999) - 1] / 1e6


def lost(quanta: Sequence[int], undisturbed: int) -> float:
    """Return the milliseconds that quanta took above the time of an undisturbed one."""
    return sum(quantum - undisturbed for quantum in quanta) / 1e6


@pytest.mark.timeout(1800)
def test_fixed_work_in_a_job_against_a_plain_process(slurm: Slurm, program: Path) -> None:
    slurm.up()
    binary = base64.b64encode(program.read_bytes()).decode()
    slurm.ssh("base64 -d > fixed-work && chmod +x fixed-work", stdin=binary)
    words = (str(QUANTA), str(STEPS))
    jobs: list[list[int]] = []
    processes: list[list[int]] = []
    for turn in range(TURNS):
        if turn:
            scale(slurm, 1)
        in_job = slurm.ssh(f"srun -w cpu-0 ./fixed-work {' '.join(words)}", timeout_seconds=900).stdout
        scale(slurm, 0)
        plain = subprocess.run([program, *words], check=True, capture_output=True, text=True, timeout=900).stdout
        for found, text in ((jobs, in_job), (processes, plain)):
            found.append([int(line) for line in text.splitlines()])
            assert len(found[-1]) == QUANTA

    against, goal = "a plain process of the machine without a worker", Goal(1.02)
    what = "p99.9 of fixed work in a job"
    report(what, [*map(permille_999, jobs)], [*map(permille_999, processes)], against, goal, unit="ms")
    undisturbed = min(min(quanta) for quanta in (*jobs, *processes))
    ours, theirs = ([lost(quanta, undisturbed) for quanta in series] for series in (jobs, processes))
    report(f"time lost in {QUANTA} quanta of fixed work in a job", ours, theirs, against, goal, unit="ms")
