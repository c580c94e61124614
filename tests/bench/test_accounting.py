"""Cost of accounting to those who submit and ask: a cluster with a database next to one without, in turns."""

import os
import statistics
from collections.abc import Iterator

import pytest

from tests.bench.ratios import Goal, report, seconds
from tests.bench.sizes import size
from tests.cluster.slurm import JAIL, QUICK, SMALL, Slurm, a_cluster, a_jail, a_node_set, bring_images, unique
from tests.conftest import Kubernetes
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster

ROUNDS = size(8, 1)
JOBS = size(50, 2)
"""Number of jobs that one round submits."""

ACCOUNTING = {
    "database": {"own": {"pod_resources": SMALL, "storage": {"size_gib": 1}}},
    "slurmdbd": {"pod_resources": SMALL},
}

SUBMIT = f"i=0; while [ $i -lt {JOBS} ]; do sbatch --quiet --output=/dev/null --wrap=true; i=$((i + 1)); done"


@pytest.fixture(scope="module")
def clusters(kubernetes: Kubernetes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Slurm, Slurm]]:
    """A cluster with accounting and one without."""
    bring_images(kubernetes)
    made: list[Slurm] = []
    for accounting in (ACCOUNTING, "none"):
        node_sets = [a_node_set("cpu", cpus=8)]
        slurm = {"constrain": "none", "extra": {**QUICK, "MinJobAge": "3600"}}
        parts = {"jail": a_jail(JAIL), "node_sets": node_sets, "slurm": slurm, "accounting": accounting}
        described = a_cluster(name=unique("bench"), **parts)
        made.append(Slurm(kubernetes, tmp_path_factory.mktemp("bench"), described))
        made[-1].up()
    with_accounting, without = made
    yield with_accounting, without
    for item in made:
        item.destroy()


def until_idle(slurm: Slurm) -> None:
    wait_until(lambda: not slurm.ssh("squeue --noheader").stdout, what="no job is left", timeout_seconds=300)


def processor_seconds(slurm: Slurm) -> float:
    """Return what slurmdbd and its database have worked so far."""
    ticks = 0
    for pod, container in (("accounting-0", "slurmdbd"), ("database-0", "mariadb")):
        stat = slurm.exec(pod, container, "sh", "-c", "cat /proc/[0-9]*/stat 2>/dev/null || true")
        ticks += sum(int(word) for line in stat.splitlines() for word in line.rpartition(")")[2].split()[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


def test_sbatch_with_accounting_against_sbatch_without(clusters: tuple[Slurm, Slurm]) -> None:
    with_accounting, without = clusters
    ours, theirs, recording = [], [], []
    for _ in range(ROUNDS):
        before = processor_seconds(with_accounting)
        ours.append(seconds(lambda: with_accounting.ssh(SUBMIT)))
        recording.append(processor_seconds(with_accounting) - before)
        until_idle(with_accounting)
        theirs.append(seconds(lambda: without.ssh(SUBMIT)))
        until_idle(without)

    limit = 1 + statistics.median(recording) / (os.cpu_count() or 1) / statistics.median(theirs)
    reason = "slurmdbd and its database record jobs meanwhile, on the cores that submit and start them"
    report(f"{JOBS} calls of sbatch with accounting", ours, theirs, "without", Goal(1.2, limit, reason))


def test_sacct_of_done_jobs_against_squeue_where_slurmctld_still_has_them(clusters: tuple[Slurm, Slurm]) -> None:
    asks = ("sacct --noheader --allocations --starttime=now-1hours", "squeue --noheader --states=all")
    times: tuple[list[float], list[float]] = ([], [])
    for slurm, ask in zip(clusters, asks, strict=True):
        slurm.ssh(SUBMIT)
        until_idle(slurm)
        wait_until(lambda: len(slurm.ssh(ask).stdout.splitlines()) >= JOBS, what=f"{ask} lists the jobs")  # noqa: B023
    for _ in range(ROUNDS):
        for slurm, ask, taken in zip(clusters, asks, times, strict=True):
            taken.append(seconds(lambda: slurm.ssh(ask)))  # noqa: B023 - called at once

    report("sacct with accounting", *times, "squeue without", Goal(2.0))
