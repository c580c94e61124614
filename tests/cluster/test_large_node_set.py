"""A node set of a hundred workers: they join, run a step, leave, and come back, and idle ones start few programs.

`WORKERS=6` has fewer, which shows that the tests work.
"""

import copy
import os
import time
from collections.abc import Iterator

import pytest

from tests.cluster.slurm import SMALL, Slurm, a_cluster, a_node_set, deployed, unique
from tests.cluster.workers import ended_well, in_service, job_on, put_back, scale
from tests.conftest import Kubernetes
from tests.waiting import wait_until

WORKERS = int(os.environ.get("WORKERS", "100"))
JOIN_SECONDS = 900
"""A hundred took 215 s on two cores."""

MEASURED_SECONDS = 120
"""Two rounds of health checks."""

STARTS = {"slurmd": 30, "munged": 8}
"""Most processes and threads that start in an idle worker's containers in a minute: 21 and 3 were measured. A probe
that runs a program every ten seconds would start a hundred."""

pytestmark = [pytest.mark.cluster, pytest.mark.soak, pytest.mark.alone, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def large_cluster(
    kubernetes: Kubernetes, built_images: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Slurm]:
    """A cluster of many workers with health checks."""
    tiny = {**SMALL, "requests": {"cpu": "5m", "memory": "16Mi"}}
    own = a_node_set("cpu", replicas=WORKERS, pod_resources=tiny, ready_timeout_seconds=JOIN_SECONDS)
    cluster = a_cluster(name=unique("large"), node_sets=[own], health={})
    with deployed(Slurm(kubernetes, tmp_path_factory.mktemp("large"), cluster)) as slurm:
        yield slurm


@pytest.fixture
def large(large_cluster: Slurm) -> Slurm:
    """The cluster with all of its workers, which come back here: those of the last test needn't."""
    if large_cluster.cluster["node_sets"][0]["replicas"] != WORKERS:
        described = copy.deepcopy(large_cluster.cluster)
        described["node_sets"][0]["replicas"] = WORKERS
        put_back(large_cluster, described)
    return large_cluster


def names(count: int = WORKERS) -> set[str]:
    return {f"cpu-{ordinal}" for ordinal in range(count)}


def starts(slurm: Slurm, node: str, container: str) -> int:
    """Return the last process id of a container, which its processes and threads get in turn."""
    load = slurm.kubernetes.ask(slurm.namespace, node, container, "cat", "/proc/loadavg")
    return int(load.split()[-1])


def test_all_join_at_the_first_try_and_a_step_runs_on_all(large: Slurm) -> None:
    assert in_service(large) == names()
    assert {*large.ssh(f"srun -N{WORKERS} hostname", timeout_seconds=600).stdout.split()} == names()


def test_idle_workers_start_few_programs(large: Slurm) -> None:
    measured = [(node, container) for node in sorted(names())[:3] for container in STARTS]
    wait_until(lambda: {large.node_state(node) for node, _ in measured} == {"IDLE+DYNAMIC_NORM"}, "they are idle")
    for node, container in measured:
        starts(large, node, container)  # its shell starts
    before = {place: starts(large, *place) for place in measured}
    began = time.monotonic()
    time.sleep(MEASURED_SECONDS)
    minutes = (time.monotonic() - began) / 60
    # One is that of the question.
    found = {place: (starts(large, *place) - before[place] - 1) / minutes for place in measured}

    assert {place: count for place, count in found.items() if not 0 <= count <= STARTS[place[1]]} == {}


def test_all_are_back_after_the_controllers_pod_was_deleted(large: Slurm) -> None:
    job = job_on(large, "cpu-0", "sleep 60")
    pod = large.api.read_namespaced_pod("controller-0", large.namespace).metadata.uid

    large.api.delete_namespaced_pod("controller-0", large.namespace)

    wait_until(
        lambda: large.api.read_namespaced_pod("controller-0", large.namespace).metadata.uid != pod,
        "a new pod",
        timeout_seconds=120,
    )
    large.kubernetes.run("wait", "pod/controller-0", "-n", large.namespace, "--for=condition=Ready", "--timeout=110s")
    wait_until(lambda: in_service(large) == names(), "all are in service", timeout_seconds=300)
    large.wait_for_job(job, "COMPLETED")
    assert ended_well(large, job)


def test_most_leave_while_jobs_run_on_the_others(large: Slurm) -> None:
    stay = max(2, WORKERS // 10)
    jobs = [job_on(large, node, "sleep 20") for node in sorted(names(stay))[:2]]

    scale(large, stay)

    assert in_service(large) == names(stay)
    for job in jobs:
        large.wait_for_job(job, "COMPLETED")
        assert ended_well(large, job)
