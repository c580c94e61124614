"""Fewer replicas, and jobs on the nodes that leave: what each declared policy says happens to them.

One life of a cluster is lived once: four node sets go from three nodes to one, after attempts that are aborted.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.cluster.slurm import Slurm, a_cluster, a_node_set, deployed, unique
from tests.cluster.workers import (
    SlurmNode,
    ended_well,
    ends_by,
    in_service,
    job_on,
    job_placed_on,
    nodes,
    pods,
    said,
    started_up,
)
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools.engine import DeployError

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]  # its fixture lives a whole life

POLICIES: dict[str, dict[str, object]] = {
    "cancelled": {"timeout": "0s", "on_timeout": "cancel"},
    "requeued": {"timeout": "0s", "on_timeout": "requeue", "not_requeueable": "cancel"},
    "waited": {"timeout": "1s", "on_timeout": "wait", "max_wait": "5m"},
    "later": {"wait": False},
}
"""Node sets, each a partition as well, and what becomes of jobs on nodes that leave them."""

ALL = {f"{name}-{ordinal}" for name in POLICIES for ordinal in range(3)}


@dataclass
class Life:
    """Observations."""

    jobs: dict[str, int] = field(default_factory=dict)
    """The job that was submitted to each node."""
    end: str = ""
    """When the time of the job on waited-1 is over."""
    misread: str = ""
    """Output of `up` about a policy for one run that cannot be read."""
    aborted: str = ""
    """Output of `up` when no job had any time."""
    not_requeueable: str = ""
    after_aborts: set[str] = field(default_factory=set)
    """Nodes in service then."""
    running: set[str] = field(default_factory=set)
    """The states of the jobs then."""
    pods: set[str] = field(default_factory=set)
    preview: str = ""
    nodes: dict[str, SlurmNode] = field(default_factory=dict)
    """Nodes of Slurm after the scale-down."""
    states: dict[str, str] = field(default_factory=dict)
    """The states of the jobs after the scale-down, by node."""
    waited_well: bool = False
    """The job that was waited for ended well."""
    nodes_later: set[str] = field(default_factory=set)
    """Nodes of Slurm after one more `up`, when the last job had ended."""
    changed_last: int = -1
    """Number of changes of the last `up`."""


def a_set(name: str) -> dict[str, object]:
    drain = {**POLICIES[name], "grace": "30s"}
    return a_node_set(name, replicas=3, partitions=[name], drain=drain)


@pytest.fixture(scope="module")
def scaled(kubernetes: Kubernetes, built_images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    cluster = a_cluster(name=unique("scaled"), node_sets=[a_set(name) for name in POLICIES])
    with deployed(Slurm(kubernetes, tmp_path_factory.mktemp("scaled"), cluster)) as slurm:
        yield slurm


def describe(slurm: Slurm, *names: str, replicas: int) -> None:
    for node_set in slurm.cluster["node_sets"]:
        if node_set["name"] in names:
            node_set["replicas"] = replicas


def refused(slurm: Slurm, policy: str) -> str:
    """Run an `up` that fails, with a policy for this one run, and return what it said."""
    with pytest.raises(DeployError) as failure:
        slurm.deployer(slurm.for_this_run(policy)).up()
    return str(failure.value)


@pytest.fixture(scope="module")
def life(scaled: Slurm) -> Life:
    """Do it all once; the tests below look at what was seen."""
    slurm, seen = scaled, Life()
    placed = job_placed_on(slurm, "requeued-1", ["requeued-0", "requeued-2"], "-p requeued --requeue")
    seen.jobs = {
        "requeued-1": placed,
        "requeued-2": job_on(slurm, "requeued-2", options="-p requeued --no-requeue"),
        "cancelled-0": job_on(slurm, "cancelled-0", options="-p cancelled"),
        "cancelled-2": job_on(slurm, "cancelled-2", options="-p cancelled"),
        "waited-1": job_on(slurm, "waited-1", "until [ -e end ]; do sleep 0.2; done", "-p waited -t 30 -J training"),
        "later-1": job_on(slurm, "later-1", options="-p later"),
    }
    seen.end = ends_by(slurm, seen.jobs["waited-1"])

    describe(slurm, *POLICIES, replicas=1)
    seen.misread = refused(slurm, "{timeout: soon, on_timeout: pray}")
    seen.aborted = refused(slurm, "{timeout: 1s, on_timeout: abort, wait: true}")
    describe(slurm, "cancelled", "waited", "later", replicas=3)
    seen.not_requeueable = refused(slurm, "{not_requeueable: abort}")
    seen.after_aborts = in_service(slurm)
    seen.running = {slurm.job(job)["JobState"] for job in seen.jobs.values()}
    seen.pods = {name for node_set in POLICIES for name in pods(slurm, node_set)}

    describe(slurm, *POLICIES, replicas=1)
    seen.preview = said(slurm.deployer().preview())
    with started_up(slurm) as up:
        wait_until(lambda: set(nodes(slurm)) & {"cancelled-2", "requeued-2"} == set(), "the others have left")
        assert up.poll() is None, "did not wait for the job on waited-1"
        slurm.ssh("touch end")
        _, words = up.communicate(timeout=120)
    assert up.returncode == 0, words
    seen.waited_well = ended_well(slurm, seen.jobs["waited-1"])
    seen.nodes = nodes(slurm)
    seen.states = {node: slurm.job(job)["JobState"] for node, job in seen.jobs.items()}

    slurm.ssh(f"scancel {seen.jobs['later-1']}")
    slurm.wait_for_job(seen.jobs["later-1"], "CANCELLED")
    slurm.up()
    seen.nodes_later = set(nodes(slurm))
    seen.changed_last = len(slurm.deployer().up().changed)
    return seen


def test_the_preview_lists_the_nodes_that_leave_with_their_jobs(life: Life) -> None:
    training, other = life.jobs["waited-1"], life.jobs["cancelled-2"]

    assert "3 -> 1 node. Leaving: waited-[1-2]" in life.preview
    assert re.search(rf"job {training} \(alice, training\), {life.end}", life.preview)
    assert f"job {other} (alice, wrap), no time limit" in life.preview
    assert "waits up to 0 s, then cancel: the remaining jobs are cancelled" in life.preview


def test_the_preview_says_how_many_nodes_of_lower_ordinals_are_idle(life: Life) -> None:
    assert "Idle nodes with lower ordinals: 1" in life.preview  # waited-0
    assert "Idle nodes with lower ordinals: 0" in life.preview  # cancelled-0 has a job


def test_jobs_that_do_not_end_in_time_abort_it_with_their_names_and_what_to_do(life: Life) -> None:
    assert re.search(rf"job {life.jobs['waited-1']} \(alice, training\), {life.end}", life.aborted)
    assert "SOPERATOR_DRAIN=" in life.aborted


def test_a_job_that_cannot_be_requeued_aborts_it_unless_it_may_be_cancelled(life: Life) -> None:
    assert f"job {life.jobs['requeued-2']}" in life.not_requeueable
    assert "can't be requeued" in life.not_requeueable
    assert life.states["requeued-2"] == "CANCELLED"


def test_after_an_abort_every_node_is_in_service_with_its_job(life: Life) -> None:
    assert life.after_aborts == ALL
    assert life.running == {"RUNNING"}
    assert life.pods == ALL


def test_a_policy_for_one_run_that_cannot_be_read_is_refused_with_all_its_problems(life: Life) -> None:
    for words in ("SOPERATOR_DRAIN", "timeout", "soon", "on_timeout", "pray"):
        assert words in life.misread


def test_a_job_that_is_waited_for_ends_well(life: Life) -> None:
    assert life.waited_well


def test_a_requeued_job_runs_again_on_a_node_that_stays(life: Life, scaled: Slurm) -> None:
    job = life.jobs["requeued-1"]
    assert life.states["requeued-1"] in {"PENDING", "RUNNING"}

    # Slurm itself would let two minutes pass. Where they are over the job runs, and it refuses.
    scaled.exec("controller-0", "slurmctld", "sh", "-c", f"scontrol update jobid={job} starttime=now || true")
    again = scaled.wait_for_job(job, "RUNNING")

    assert (again["NodeList"], again["Restarts"]) == ("requeued-0", "1")


def test_a_cancelled_job_is_gone_and_the_one_on_a_node_that_stays_continues(life: Life) -> None:
    assert (life.states["cancelled-2"], life.states["cancelled-0"]) == ("CANCELLED", "RUNNING")


def test_of_nodes_that_left_no_trace_is_in_slurm(life: Life) -> None:
    assert life.nodes.keys() - {"later-0", "later-1"} == {"cancelled-0", "requeued-0", "waited-0"}
    assert all(node.in_service for name, node in life.nodes.items() if name != "later-1")


def test_an_up_that_is_not_to_wait_leaves_the_busy_drained_and_a_later_one_continues(life: Life) -> None:
    assert {name for name in life.nodes if name.startswith("later")} == {"later-0", "later-1"}
    assert life.nodes["later-1"].drained
    assert life.states["later-1"] == "RUNNING"
    assert {name for name in life.nodes_later if name.startswith("later")} == {"later-0"}
    assert life.changed_last == 0
