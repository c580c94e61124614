"""What many workers cost a deployment: calls, bytes, and memory, as the nodes become four times as many.

The pods are on a machine that kwok simulates, which reports them as running. The nodes of the real slurmctld are of
Slurm's state EXTERNAL, which it takes as nodes that are there, without a slurmd: nothing registers, and no job runs.

`WORKERS=64` has fewer, which shows that the tests work, and `WORKERS=4096` the default of `slurm.max_nodes`. With `-s`,
pytest prints the costs.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.api_traffic import EXEC, Traffic, counted
from tests.cluster.kwok import SimulatedMachine, simulated_machine
from tests.cluster.scrapes import exposition, scraped
from tests.cluster.slurm import SMALL, Slurm, a_cluster, a_node_set, unique
from tests.cluster.workers import in_service, kill
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools import paths

MANY = int(os.environ.get("WORKERS", "256"))
TIMES = 4
FEW = MANY // TIMES

VERSION = "26.05"
"""Slurm 24.11 has no nodes of the state EXTERNAL."""

JOIN_SECONDS = 1800
"""The controllers of Kubernetes make ten pods a second: they have 20 calls a second, two for every pod."""

UP, AGAIN, PREVIEW, ROLLING, STATUS, SCALE_IN = (
    "up",
    "up without a change",
    "preview of a scale-in",
    "rolling update",
    "status",
    "scale-in",
)

pytestmark = [pytest.mark.cluster, pytest.mark.soak, pytest.mark.alone, pytest.mark.timeout(7200)]


@dataclass(frozen=True)
class Cost:
    """Cost of an act."""

    seconds: float
    calls: int
    """Calls to the API server, without deletions and commands in pods."""
    deletions: int
    commands: int
    """Commands in the pods, all of them Slurm's."""
    received: int
    """Bytes of answers, compressed."""
    peak_kib: int
    """Most memory that all processes of the act had resident together."""

    def __str__(self) -> str:
        """Return a row of a table."""
        return (
            f"{self.seconds:8.1f} s {self.calls:6} calls {self.deletions:6} deletions {self.commands:4} commands "
            f"{self.received / 1e6:8.1f} MB {self.peak_kib / 1024:6.0f} MiB"
        )


class Acts:
    """What is done with a cluster of simulated workers, with the costs."""

    def __init__(self, slurm: Slurm, traffic: Traffic) -> None:
        self._slurm = slurm
        self._traffic = traffic

    def up(self, *, operation: str = "up", join: int = 0) -> Cost:
        """Deploy, or preview, what is described; `join` nodes join once all pods are ready."""
        self._traffic.take()
        process = self._slurm.start_up({"KUBECONFIG": str(self._traffic.kubeconfig)}, operation=operation)
        return self._cost(process, join)

    def status(self) -> Cost:
        """Show the cluster's status."""
        self._traffic.take()
        process = subprocess.Popen(
            [sys.executable, "-m", "soperator_pulumi.cli", "status", "-n", self._slurm.namespace],
            cwd=paths.ROOT,
            env={**os.environ, "KUBECONFIG": str(self._traffic.kubeconfig)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return self._cost(process)

    def _cost(self, process: "subprocess.Popen[str]", join: int = 0) -> Cost:
        """Wait for the end of a process that leads a session, and return what it took since its start."""
        began, peak_kib, joins = time.monotonic(), 0, join > 0
        try:
            while process.poll() is None:
                peak_kib = max(peak_kib, resident_kib(process.pid))
                if joins and self._ready_pods("cpu") == join and self._ready_pods("controller"):
                    nodes = f"nodename=cpu-[0-{join - 1}]"
                    self._slurm.scontrol("create", nodes, "state=external", "feature=cpu", "cpus=2")
                    joins = False
                time.sleep(0.3)
        finally:
            kill(process)
            _, said = process.communicate()
        seconds = time.monotonic() - began
        assert process.returncode == 0, said
        requests, received = self._traffic.take()
        calls = requests.total() - requests["DELETE"] - requests[EXEC]
        return Cost(seconds, calls, requests["DELETE"], requests[EXEC], received, peak_kib)

    def _ready_pods(self, stateful_set: str) -> int:
        found = self._slurm.kubernetes.run(
            "get", "statefulset", stateful_set, "-n", self._slurm.namespace, "--ignore-not-found", "--output=json"
        )
        return int(json.loads(found)["status"].get("readyReplicas", 0)) if found else 0


def resident_kib(session: int) -> int:
    """Return the resident memory of all processes of a session; what they share counts for every one."""
    pages = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            fields = stat.read_text().rpartition(")")[2].split()
            pages += int(fields[21]) if int(fields[3]) == session else 0
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


def costs(slurm: Slurm, traffic: Traffic, workers: int) -> Iterator[tuple[str, Cost]]:
    """Yield what is done with a node set, in its order, with its cost."""
    acts, node_set = Acts(slurm, traffic), slurm.cluster["node_sets"][0]
    yield UP, acts.up(join=workers)
    assert len(in_service(slurm)) == workers
    yield AGAIN, acts.up()
    yield STATUS, acts.status()
    node_set["replicas"] = workers // 2
    yield PREVIEW, acts.up(operation="preview")
    node_set["replicas"] = workers
    node_set["pod_resources"] = {**SMALL, "requests": {"cpu": "5m", "memory": "17Mi"}}
    yield ROLLING, acts.up()
    assert len(in_service(slurm)) == workers
    node_set["replicas"] = workers // 2
    yield SCALE_IN, acts.up()
    assert len(in_service(slurm)) == workers // 2


@dataclass(frozen=True)
class Measured:
    """Costs with a number of workers."""

    of: dict[str, Cost]
    """Costs of acts, by their names."""
    page_bytes: int
    """Size of the exporter's page."""
    exporter_kib: int
    """Most resident memory of the exporter."""
    slurmctld_kib: int


def measured(kubernetes: Kubernetes, folder: Path, machine: SimulatedMachine, workers: int) -> Measured:
    """Return the costs with so many workers on a simulated machine, and print them."""
    own = a_node_set(
        "cpu",
        replicas=workers,
        pod_resources={**SMALL, "requests": {"cpu": "5m", "memory": "16Mi"}},
        ready_timeout_seconds=JOIN_SECONDS,
        rolling_update={"max_unavailable": "25%"},
        **machine.scheduling,
    )
    slurm = Slurm(
        kubernetes,
        folder,
        a_cluster(
            name=unique("simulated"),
            slurm={"version": VERSION, "constrain": "none"},
            node_sets=[own],
            metrics={"interval": "10s", "allowed_namespaces": [], "pod_resources": SMALL},
        ),
    )
    try:
        with counted(kubernetes.kubeconfig, kubernetes.target.context, folder) as traffic:
            found: dict[str, Cost] = {}
            pages: list[int] = []
            for act, cost in costs(slurm, traffic, workers):
                found[act] = cost
                sys.stdout.write(f"{workers:5} workers {act:22} {cost}\n")
                if act == STATUS:
                    wait_until(lambda: scraped(slurm).get("slurm_nodes") == workers, "the exporter knows all nodes")
                    pages.append(len(exposition(slurm)))
            memory = peak_kib(slurm, "metrics-0", "exporter"), peak_kib(slurm, "controller-0", "slurmctld")
            sys.stdout.write(f"{workers:5} workers page {pages[0]} bytes, exporter and slurmctld {memory} KiB\n")
            return Measured(found, pages[0], *memory)
    finally:
        slurm.destroy()


def peak_kib(slurm: Slurm, pod: str, container: str) -> int:
    """Return the most resident memory that a process of a container has had."""
    lines = slurm.exec(pod, container, "sh", "-c", "cat /proc/[0-9]*/status").splitlines()
    return max(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


@pytest.fixture(scope="module")
def by_workers(kubernetes: Kubernetes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Measured, Measured]]:
    """Costs with few workers, and with four times as many."""
    kubernetes.load_images(VERSION)
    with simulated_machine(kubernetes, tmp_path_factory.mktemp("kwok")) as machine:
        few, many = (
            measured(kubernetes, tmp_path_factory.mktemp(f"workers-{workers}"), machine, workers)
            for workers in (FEW, MANY)
        )
        yield few, many


WITHOUT_WAIT = (AGAIN, STATUS, PREVIEW)
WITH_WAIT = (UP, ROLLING, SCALE_IN)

LONGER_NAMES = 1.1

BY_CHANCE = 2
"""Resources that read at the same time share an answer of slurmctld."""

CALLS_A_SECOND = 15
"""Most calls and commands of an act that waits, on average."""


@pytest.mark.parametrize("act", WITHOUT_WAIT)
def test_what_does_not_wait_asks_slurm_no_more_often_for_many_workers(
    by_workers: tuple[Measured, Measured], act: str
) -> None:
    few, many = (measured.of[act] for measured in by_workers)

    assert many.commands <= few.commands + BY_CHANCE
    assert many.calls <= few.calls * TIMES
    assert many.deletions == few.deletions == 0
    assert many.received <= few.received * TIMES * LONGER_NAMES


@pytest.mark.parametrize("act", WITH_WAIT)
def test_what_waits_asks_no_more_often_in_a_second(by_workers: tuple[Measured, Measured], act: str) -> None:
    few, many = (measured.of[act] for measured in by_workers)

    assert (many.calls + many.commands) / many.seconds <= CALLS_A_SECOND
    assert many.received / many.seconds <= few.received / few.seconds * TIMES * LONGER_NAMES
    assert many.deletions <= few.deletions * TIMES


def test_no_process_needs_memory_that_grows_faster_than_the_workers(by_workers: tuple[Measured, Measured]) -> None:
    few, many = by_workers

    for act, cost in many.of.items():
        assert cost.peak_kib <= few.of[act].peak_kib * TIMES, act
    assert many.page_bytes <= few.page_bytes * TIMES * LONGER_NAMES
    assert many.exporter_kib <= few.exporter_kib * TIMES
    assert many.slurmctld_kib <= few.slurmctld_kib * TIMES
