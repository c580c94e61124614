"""Long checks on real nodes: the CronJobs' runs, the slow node of a group, and its way back. Behind SOAK=1: a cluster
of its own, and minutes of measuring."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.long_check_runs import LongRun, ended_run, events, run_of, start_run
from tests.cluster.slurm import Slurm, a_cluster, a_node_set, deployed, unique
from tests.cluster.workers import SlurmNode, nodes
from tests.conftest import Kubernetes
from tests.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.soak, pytest.mark.alone]

RING = "ring_bandwidth"
MEMORY = "memory_bandwidth"
NODES = ["cpu-0", "cpu-1", "cpu-2", "cpu-3"]
ALONE = "far-0"
"""A node outside of the default partition. One node is no ring."""

LIMIT = 0.1
"""In GB/s. On two cores four nodes had 0.24, two 0.6, and both with a slowed one 0.02 to 0.05."""


@dataclass(frozen=True)
class Joined:
    """The cluster, and its nodes as they joined."""

    slurm: Slurm
    nodes: dict[str, SlurmNode]
    verified: LongRun


@pytest.fixture(scope="module")
def joined(kubernetes: Kubernetes, built_images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Joined]:
    """Four nodes and one more, verified when they are new. The ring of the four is checked on demand."""
    small: dict[str, Any] = {"arguments": {"mib": 8, "seconds": 2}, "schedule": "0 0 1 1 *", "every": "1s"}
    checks = {
        RING: {**small, "group": 4, "limit": LIMIT, "start_within": "30s"},
        MEMORY: {**small, "arguments": {"mib": 16, "seconds": 0.1}, "limit": 0},
    }
    cluster = a_cluster(
        name=unique("long"),
        node_sets=[a_node_set("cpu", replicas=4), a_node_set("far", partitions=["far"])],
        health={"enabled": False, "long_checks": checks, "verify_new_nodes": True},
    )
    with deployed(Slurm(kubernetes, tmp_path_factory.mktemp("long"), cluster)) as made:
        new = nodes(made)
        yield Joined(made, new, run_of(made, MEMORY, "new"))


@pytest.fixture(scope="module")
def slurm(joined: Joined) -> Slurm:
    """The cluster."""
    return joined.slurm


def test_new_nodes_join_drained_and_a_run_puts_them_into_service(joined: Joined) -> None:
    assert {name: node.reason for name, node in joined.nodes.items() if node.drained} == dict.fromkeys(
        [*NODES, ALONE], "health: not verified"
    )
    undrained = sorted(event["node"] for event in events(joined.verified) if event["event"] == "undrained")
    assert undrained == [*NODES, ALONE], joined.verified.log


@contextmanager
def slowed(slurm: Slurm, node: str) -> Iterator[None]:
    """Give a node's pod a fiftieth of a CPU."""
    uid = slurm.api.read_namespaced_pod(node, slurm.namespace).metadata.uid
    groups = [path for path in Path("/sys/fs/cgroup").glob(f"**/kubepods*/**/*pod*{uid}*") if path.is_dir()]
    v1 = [(path / "cpu.cfs_quota_us", "2000", "-1") for path in groups]
    v2 = [(path / "cpu.max", "2000 100000", "max 100000") for path in groups]
    found = [row for row in [*v1, *v2] if row[0].exists()]
    assert found, groups
    file, slow, whole = found[0]
    file.write_text(slow)
    try:
        yield
    finally:
        file.write_text(whole)


def reports(slurm: Slurm) -> dict[str, Any]:
    """Return the last result of each node, as a job of a user reads it in the jail."""
    shown = slurm.ssh(f"cat /home/soperator-health/reports/{RING}/last.json").stdout
    found: dict[str, Any] = json.loads(shown)["nodes"]
    return found


def test_a_group_that_is_healthy_passes_and_its_report_is_in_the_jail(slurm: Slurm) -> None:
    run = run_of(slurm, RING, "healthy")

    assert run.succeeded, run.log
    (measured,) = events(run)
    assert measured["result"] == "passed"
    assert measured["nodes"] == NODES
    found = reports(slurm)
    assert {name: value["passed"] for name, value in found.items()} == dict.fromkeys(NODES, True)
    assert all(item["value"] > LIMIT for item in found.values())


def test_no_user_forges_a_report_or_an_output(slurm: Slurm) -> None:
    folder = "/home/soperator-health"
    for place in ("", f"/reports/{RING}", f"/output/{RING}", "/output", "/reports"):
        assert slurm.ssh(f"touch {folder}{place}/forged", check=False).returncode != 0, place
    assert slurm.ssh(f"echo >> {folder}/reports/{RING}/last.json", check=False).returncode != 0


def test_the_slow_node_of_a_group_is_found_drained_and_comes_back_when_it_is_fast(slurm: Slurm) -> None:
    with slowed(slurm, "cpu-2"):
        run = run_of(slurm, RING, "slow")
        assert run.succeeded, run.log
        (drained,) = [event for event in events(run) if event["event"] == "drained"]
        assert drained["node"] == "cpu-2"
        assert [name for name, node in nodes(slurm).items() if node.drained] == ["cpu-2"]
        assert re.fullmatch(rf"health {RING}: [0-9.]+ GB/s, allowed {LIMIT} GB/s", nodes(slurm)["cpu-2"].reason)
        assert reports(slurm)["cpu-2"]["passed"] is False

        still = run_of(slurm, RING, "still-slow")
        assert [event["node"] for event in events(still) if event["event"] == "not verified"] == ["cpu-2"], still.log
        assert nodes(slurm)["cpu-2"].drained

    back = run_of(slurm, RING, "fast")
    assert [event["node"] for event in events(back) if event["event"] == "undrained"] == ["cpu-2"], back.log
    assert not nodes(slurm)["cpu-2"].drained
    assert "No reservations" in slurm.scontrol("show", "reservations")
    slurm.ssh("srun -w cpu-2 true")


def test_two_runs_never_overlap(slurm: Slurm) -> None:
    """The lock is held on another node, through the volume that both share."""
    run_of(slurm, RING, "first")  # has the folder made
    lock = f"/home/soperator-health/reports/{RING}/lock"
    held = f"setsid flock {lock} sh -c 'echo $PPID > /run/slurm/held; sleep 600' > /dev/null 2>&1 &"
    slurm.exec("cpu-0", "slurmd", "sh", "-c", held)
    wait_until(lambda: "held" in slurm.exec("cpu-0", "slurmd", "ls", "/run/slurm"), what="the lock is held")
    try:
        assert [event["event"] for event in events(run_of(slurm, RING, "second"))] == ["skipped"]
    finally:
        slurm.exec("cpu-0", "slurmd", "sh", "-c", "kill -- -$(ps -o pgid= -p $(cat /run/slurm/held) | tr -d ' ')")
    assert [event["event"] for event in events(run_of(slurm, RING, "third"))] == ["measured"]


def test_a_full_queue_does_not_pile_up(slurm: Slurm) -> None:
    """A user's job has each node before the check's jobs start; they leave the queue by themselves."""
    run_of(slurm, RING, "before")
    jobs = [slurm.submit("sleep 600", options=f"-w {name} --exclusive -o /dev/null") for name in NODES]
    try:
        for job in jobs:
            slurm.wait_for_job(job, "RUNNING")
        for name in ("full-1", "full-2"):
            assert run_of(slurm, RING, name).succeeded
        assert {job["JobName"] for job in slurm.jobs() if job["JobState"] in {"PENDING", "RUNNING"}} == {"wrap"}
    finally:
        slurm.exec("controller-0", "slurmctld", "scancel", *map(str, jobs))


def test_a_run_that_is_killed_in_a_test_leaves_the_node_closed_and_the_next_one_repairs(slurm: Slurm) -> None:
    wait_until(lambda: all(slurm.node_state(name).startswith("IDLE") for name in NODES), what="all nodes are idle")
    slurm.scontrol("update", "nodename=cpu-1", "state=drain", f"reason=health {RING}: 0 GB/s, allowed 1 GB/s")
    start_run(slurm, RING, "killed")
    wait_until(lambda: RING in slurm.scontrol("show", "reservations"), what="the node is being tested")
    wait_until(lambda: not nodes(slurm)["cpu-1"].drained, what="the node is undrained for the test")
    pods = slurm.api.list_namespaced_pod(slurm.namespace, label_selector="batch.kubernetes.io/job-name=killed").items
    slurm.exec(pods[0].metadata.name, "long-check", "pkill", "-9", "long-check")
    assert not ended_run(slurm, "killed").succeeded

    users = slurm.submit("true", options="-w cpu-1 -o /dev/null")
    assert slurm.job(users)["JobState"] == "PENDING"
    repaired = run_of(slurm, RING, "repaired")
    assert {"repaired", "undrained"} <= {event["event"] for event in events(repaired)}, repaired.log
    slurm.wait_for_job(users, "COMPLETED")


def test_the_history_of_a_cron_job_is_bounded(slurm: Slurm) -> None:
    for name in ("kept-1", "kept-2"):
        run_of(slurm, RING, name)

    def succeeded() -> list[str]:
        ours = ("get", "jobs", "--selector", "app.kubernetes.io/component=health-checks", "--output", "json")
        jobs = json.loads(slurm.kubernetes.run(*ours, "--namespace", slurm.namespace))["items"]
        return [
            job["metadata"]["name"]
            for job in jobs
            if job["status"].get("succeeded")
            and job["metadata"]["ownerReferences"][0]["name"] == "health-ring-bandwidth"
        ]

    wait_until(lambda: len(succeeded()) <= 1, what="old runs are gone")
