"""A node set of a hundred workers: they join, run steps, are renewed, leave, and come back, and idle ones are quiet.

`WORKERS=6` has fewer, which shows that the tests work. With `-s`, pytest prints what was measured.
"""

import copy
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cluster.plain_steps import Roots
from tests.cluster.processor_time import processor_time
from tests.cluster.slurm import JAIL, SMALL, Slurm, a_cluster, a_jail, a_node_set, deployed, unique
from tests.cluster.workers import ended_well, in_service, job_on, pods, put_back, scale, started_up
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools import paths

WORKERS = int(os.environ.get("WORKERS", "100"))
JOIN_SECONDS = 900
"""A hundred took 215 s on two cores."""

MEASURED_SECONDS = 120
"""Two rounds of health checks."""

STARTS = {"slurmd": 30, "munged": 8}
"""Most processes and threads that start in an idle worker's containers in a minute: 21 and 3 were measured. A probe
that runs a program every ten seconds would start a hundred."""

MILLICORES = 9.0
"""Most that an idle worker takes, with its share of the kubelet and the runtime."""

SECOND_HALF = 2.0
"""Most seconds in which the second half of the workers joins, for a second of the first half."""

WITH_PLUGIN = 1.5
"""Most seconds of a step with the plugin, for a second of one without."""

MEETING = "--mpi=pmi2 python3 pmi2.py"
STEPS = {"hostname": "alone", MEETING: "MPI's start"}
"""Steps that are compared: tasks alone, and tasks that meet as an MPI library's do."""

PAIRS = 3
"""Pairs of steps that are compared with each other."""

STREAM = """
rm -rf stream && mkdir stream && cd stream || exit
while [ ! -e stop ]; do
    for seconds in 10 60 30 120; do
        wrapped="sleep $seconds; echo \\$SLURM_JOB_ID >> done"
        sbatch --parsable --exclusive -o /dev/null --wrap "$wrapped" >> submitted || echo >> refused
        sleep 0.2
    done
    while [ ! -e stop ] && [ "$(squeue -h -t PD | wc -l)" -gt 5 ]; do sleep 1; done
done
touch ended
"""
"""Submits jobs of mixed lengths, which have a node for themselves, until it is told to stop: some always wait."""

LONGEST_JOB_SECONDS = 120

pytestmark = [pytest.mark.cluster, pytest.mark.soak, pytest.mark.alone, pytest.mark.timeout(1800)]


@dataclass
class LargeSlurm(Slurm):
    """A cluster of many workers."""

    joined: list[float] = field(default_factory=list, init=False)
    """Seconds from the first worker's pod until a worker was ready, for all workers, in this order."""


@pytest.fixture(scope="module")
def large_cluster(
    kubernetes: Kubernetes, built_images: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LargeSlurm]:
    """A cluster of many workers with health checks."""
    tiny = {**SMALL, "requests": {"cpu": "5m", "memory": "16Mi"}}
    own = a_node_set(
        "cpu",
        replicas=WORKERS,
        pod_resources=tiny,
        ready_timeout_seconds=JOIN_SECONDS,
        rolling_update={"max_unavailable": "25%"},
    )
    cluster = a_cluster(name=unique("large"), node_sets=[own], jail=a_jail(JAIL), health={})
    with deployed(LargeSlurm(kubernetes, tmp_path_factory.mktemp("large"), cluster)) as slurm:
        slurm.joined = sorted(seconds_until_ready(slurm))
        yield slurm


def seconds_until_ready(slurm: Slurm) -> Iterator[float]:
    """Yield the seconds from the first pod's creation until a pod was ready, which it is once it has joined."""
    every = pods(slurm).values()
    first = min(pod.metadata.creation_timestamp for pod in every)
    for pod in every:
        (ready,) = (condition for condition in pod.status.conditions if condition.type == "Ready")
        yield (ready.last_transition_time - first).total_seconds()


@pytest.fixture
def large(large_cluster: LargeSlurm) -> LargeSlurm:
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


def test_all_join_at_the_first_try_and_a_step_runs_on_all(large: LargeSlurm) -> None:
    assert in_service(large) == names()
    assert {*large.ssh(f"srun -N{WORKERS} hostname", timeout_seconds=600).stdout.split()} == names()


def test_the_second_half_of_the_workers_joins_as_quickly_as_the_first(large: LargeSlurm) -> None:
    half, last = large.joined[WORKERS // 2 - 1], large.joined[-1]
    tenths = [large.joined[max(0, WORKERS * tenth // 10 - 1)] for tenth in range(1, 11)]
    sys.stdout.write(f"\nseconds until a tenth, two tenths, ... of {WORKERS} workers were ready: {tenths}\n")

    assert last - half <= half * SECOND_HALF


def seconds_of(slurm: Slurm, command: str) -> float:
    """Return how long a command of a user takes on the login node."""
    timed = f"bash -c 'began=$EPOCHREALTIME; {command} > /dev/null || exit; echo $began $EPOCHREALTIME'"
    began, ended = map(float, slurm.ssh(timed, timeout_seconds=600).stdout.split())
    return ended - began


@pytest.mark.parametrize("step", STEPS, ids=STEPS.get)
def test_a_step_on_all_takes_little_longer_with_the_plugin(large: LargeSlurm, step: str) -> None:
    large.ssh("cat > pmi2.py", stdin=Path(paths.ROOT, "tests/cluster/jail_pmi2.py").read_text())
    command = f"srun -N{WORKERS} {step}"
    roots = Roots(large)
    taken: dict[bool, list[float]] = {True: [], False: []}
    seen: dict[bool, str] = {}
    with roots.open_to_users():
        for pair in range(PAIRS):
            for used in (True, False) if pair % 2 else (False, True):
                roots.use_plugin(used)
                seen[used] = large.ssh("srun -N1 cat /etc/os-release").stdout
                taken[used].append(seconds_of(large, command))
    sys.stdout.write(f"\n{command}: {taken[True]} s with the plugin, {taken[False]} s without\n")

    assert seen[True] != seen[False], "both ran on the same root"
    assert statistics.median(taken[True]) <= statistics.median(taken[False]) * WITH_PLUGIN


def test_tasks_on_all_meet_by_pmi2(large: LargeSlurm) -> None:
    large.ssh("cat > pmi2.py", stdin=Path(paths.ROOT, "tests/cluster/jail_pmi2.py").read_text())

    said = large.ssh(f"srun -N{WORKERS} {MEETING}", timeout_seconds=600).stdout

    assert [{*line.split()[5:]} for line in said.splitlines()] == [names()] * WORKERS


def test_idle_workers_start_few_programs_and_take_few_millicores(large: LargeSlurm) -> None:
    measured = [(node, container) for node in sorted(names())[:3] for container in STARTS]
    wait_until(lambda: {large.node_state(node) for node in names()} == {"IDLE+DYNAMIC_NORM"}, "they are idle")
    uids = {pod.metadata.uid for pod in pods(large).values()}
    for node, container in measured:
        starts(large, node, container)  # its shell starts
    before, time_before = {place: starts(large, *place) for place in measured}, processor_time(uids)
    began = time.monotonic()
    time.sleep(MEASURED_SECONDS)
    seconds, used = time.monotonic() - began, processor_time(uids).since(time_before)
    # One is that of the question.
    found = {place: (starts(large, *place) - before[place] - 1) / (seconds / 60) for place in measured}
    load = used.millicores(len(uids), seconds)
    sys.stdout.write(f"\nmillicores of an idle worker, {load.total:.1f} in all: {load}; starts a minute: {found}\n")

    assert {place: count for place, count in found.items() if not 0 <= count <= STARTS[place[1]]} == {}
    assert load.total <= MILLICORES


def renewed_in(slurm: Slurm, megabytes: int) -> tuple[float, int]:
    """Renew all workers with another request of memory; return the seconds, and the most that were out of service."""
    slurm.cluster["node_sets"][0]["pod_resources"]["requests"]["memory"] = f"{megabytes}Mi"
    began, most_away = time.monotonic(), 0
    with started_up(slurm) as up:
        while up.poll() is None:
            most_away = max(most_away, WORKERS - len(in_service(slurm)))
            time.sleep(1)  # a look is a command of slurmctld's pod
        assert up.returncode == 0, up.communicate()[1]
    return time.monotonic() - began, most_away


def test_a_rolling_update_loses_no_job_of_a_steady_stream_and_takes_little_longer_than_its_bound(
    large: LargeSlurm,
) -> None:
    """The bound is the update of idle workers, and the longest job."""
    alone, _ = renewed_in(large, 17)
    large.ssh("cat > stream.sh && (sh stream.sh > stream.log 2>&1 < /dev/null &)", stdin=STREAM)
    wait_until(lambda: large.ssh("cat stream/done", check=False).stdout != "", "the first job of the stream has ended")

    try:
        taken, most_away = renewed_in(large, 18)
    finally:
        large.ssh("touch stream/stop")
    wait_until(lambda: large.ssh("ls stream/ended", check=False).returncode == 0, "the stream has ended")
    wait_until(
        lambda: large.ssh("squeue -h").stdout == "",
        "the last jobs of the stream have ended",
        timeout_seconds=240 + LONGEST_JOB_SECONDS,
    )
    submitted = large.ssh("cat stream/submitted").stdout.split()
    sys.stdout.write(
        f"\nrolling update of {WORKERS}: {alone:.0f} s without jobs, {taken:.0f} s with {len(submitted)} jobs, "
        f"at most {most_away} out of service\n"
    )

    assert large.ssh("cat stream/refused", check=False).stdout == ""
    assert Counter(large.ssh("cat stream/done").stdout.split()) == Counter(submitted)
    assert most_away <= max(1, WORKERS // 4)
    assert taken <= (alone + LONGEST_JOB_SECONDS) * 1.2


def test_all_are_back_after_the_controllers_pod_was_deleted(large: LargeSlurm) -> None:
    job = job_on(large, "cpu-0", "sleep 60")
    (before,) = pods(large, "controller").values()

    large.api.delete_namespaced_pod("controller-0", large.namespace)

    wait_until(
        lambda: before.metadata.uid not in {pod.metadata.uid for pod in pods(large, "controller").values()},
        "the old pod is gone",
        timeout_seconds=120,
    )
    wait_until(lambda: bool(pods(large, "controller")), "a new pod", timeout_seconds=120)
    large.kubernetes.run("wait", "pod/controller-0", "-n", large.namespace, "--for=condition=Ready", "--timeout=110s")
    wait_until(lambda: in_service(large) == names(), "all are in service", timeout_seconds=300)
    large.wait_for_job(job, "COMPLETED")
    assert ended_well(large, job)


def test_most_leave_while_jobs_run_on_the_others(large: LargeSlurm) -> None:
    stay = max(2, WORKERS // 10)
    jobs = [job_on(large, node, "sleep 20") for node in sorted(names(stay))[:2]]

    scale(large, stay)

    assert in_service(large) == names(stay)
    for job in jobs:
        large.wait_for_job(job, "COMPLETED")
        assert ended_well(large, job)
