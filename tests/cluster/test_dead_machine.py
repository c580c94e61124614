"""A machine that ends without a word under a running job: what Slurm and Kubernetes do, and what a hand does."""

import time
from collections.abc import Iterator

import pytest

from tests.cluster.several_machines import MACHINES, SeveralMachines, several_machines
from tests.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

WORKER = "cpu-1"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


@pytest.fixture(scope="module")
def stack() -> Iterator[SeveralMachines]:
    with several_machines(WORKER, on="n2") as made:
        yield made


@pytest.fixture
def trial(stack: SeveralMachines) -> SeveralMachines:
    """The stack without jobs, with all machines running and its pods in their places, whatever the last test left."""
    stack.box.kubernetes("machine-start", "--number", "2")
    if OUT_OF_SERVICE in stack.box.kubectl("get", "node", "n2", "-o", "jsonpath={.spec.taints[*].key}"):
        stack.box.kubectl("taint", "node", "n2", f"{OUT_OF_SERVICE}-")
    stack.box.kubectl("uncordon", *MACHINES)
    stack.place("login-0", "n1")
    stack.place("accounting-0", "n1")
    stack.user("scancel --me")  # a worker that is moved waits for its jobs
    stack.place(WORKER, "n2")
    wait_until(lambda: stack.user("squeue -h --me") == "", "no job is left")
    wait_until(lambda: stack.state(WORKER) == "idle", "the worker takes jobs")
    return stack


def test_a_job_of_a_dead_machine_is_requeued_and_its_node_comes_back_elsewhere_by_one_taint(
    trial: SeveralMachines,
) -> None:
    job = trial.user(f"sbatch --parsable -w {WORKER} --wrap 'sleep 3600'")
    wait_until(lambda: trial.job(job) == ("RUNNING", "0"), "the job runs")
    before = trial.pod(WORKER)

    killed_at = time.monotonic()
    trial.box.kubernetes("machine-kill", "--number", "2")
    wait_until(lambda: trial.job(job) == ("PENDING", "1"), "the job is requeued", timeout_seconds=400)
    assert 60 < time.monotonic() - killed_at < 300  # SlurmdTimeout is 120 s; slurmctld looks every 40 s or so
    stuck = trial.pod(WORKER)
    assert (stuck["uid"], stuck["node"]) == (before["uid"], "n2")  # no hand, no new pod

    trial.box.kubectl("taint", "node", "n2", f"{OUT_OF_SERVICE}=nodeshutdown:NoExecute")
    wait_until(lambda: trial.pod(WORKER)["uid"] not in {"", before["uid"]}, "a new pod", timeout_seconds=60)
    wait_until(lambda: trial.job(job)[0] == "RUNNING", "the job runs on the new node", timeout_seconds=400)
    assert trial.pod(WORKER)["node"] in {"n1", "n3"}

    trial.box.kubernetes("machine-start", "--number", "2")
    trial.box.kubectl("taint", "node", "n2", f"{OUT_OF_SERVICE}-")
    trial.place("login-0", "n2")
    assert trial.job(job)[0] == "RUNNING"


def test_slurmctld_works_on_without_the_machine_of_slurmdbd_and_sends_its_records_once_there_is_another(
    trial: SeveralMachines,
) -> None:
    trial.place("accounting-0", "n2")
    trial.place(WORKER, "n3")
    wait_until(lambda: trial.state(WORKER) == "idle", "the worker has joined")
    job = trial.user(f"sbatch --parsable -w {WORKER} --wrap 'sleep 5'")
    wait_until(lambda: trial.user(f"sacct -nXj {job} -o state%20") == "COMPLETED", "records arrive")

    trial.box.kubernetes("machine-kill", "--number", "2")
    job = trial.user(f"sbatch --parsable -w {WORKER} --wrap 'sleep 5'")  # the first words without an answer
    wait_until(lambda: not trial.user(f"squeue -hj {job} -o %A 2>&1 || true").isdecimal(), "the job has ended")
    trial.box.kubectl("-n", "slurm", "delete", "pod", WORKER)
    wait_until(lambda: trial.state(WORKER) == "idle", "a node joins, and answers", timeout_seconds=150)

    trial.box.kubectl("taint", "node", "n2", f"{OUT_OF_SERVICE}=nodeshutdown:NoExecute")
    recorded = f"sacct -nXj {job} -o state%20 2>&1 || true"
    wait_until(lambda: trial.user(recorded) == "COMPLETED", "the record arrives", timeout_seconds=200)
