"""A machine that ends without a word under a running job: what Slurm and Kubernetes do, and what a hand does."""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.cluster.isolated import Machine, machine
from tests.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

WORKER = "cpu-1"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


@dataclass(frozen=True)
class Trial:
    """The stack `local` over machines, with all pods on n1 but a worker on n2."""

    box: Machine

    def user(self, command: str) -> str:
        """Run a command as a user who is logged in."""
        done = self.box.run(sys.executable, "-m", "tools.ssh", command)
        assert done.returncode == 0, done.stdout
        return done.stdout.strip()

    def pod(self, name: str) -> dict[str, str]:
        """Return uid and machine of a pod, and whether it is ready or being deleted."""
        listed = json.loads(self.box.kubectl("-n", "slurm", "get", "pods", "--output=json"))["items"]
        for pod in listed:
            if pod["metadata"]["name"] == name:
                ready = {each["type"]: each["status"] for each in pod["status"].get("conditions", [])}.get("Ready", "")
                deleted = pod["metadata"].get("deletionTimestamp", "")
                return {
                    "uid": pod["metadata"]["uid"],
                    "node": pod["spec"].get("nodeName", ""),
                    "ready": ready,
                    "deleted": deleted,
                }
        return {"uid": "", "node": "", "ready": "", "deleted": ""}

    def place(self, pod: str, machine: str) -> None:
        """Move a pod to a machine."""
        others = [node for node in ("n1", "n2", "n3") if node != machine]
        self.box.kubectl("uncordon", machine)
        self.box.kubectl("cordon", *others)
        self.box.kubectl("-n", "slurm", "delete", "pod", pod, "--ignore-not-found")
        placed = {"node": machine, "ready": "True", "deleted": ""}
        wait_until(lambda: placed.items() <= self.pod(pod).items(), f"{pod} is on {machine}")
        self.box.kubectl("uncordon", *others)

    def job(self, number: str) -> tuple[str, str]:
        """Return state and number of requeues of a job."""
        state, restarts = self.user(f"squeue -h -j {number} -O State:20,RestartCnt:9").split()
        return state, restarts


@pytest.fixture(scope="module")
def trial() -> Iterator[Trial]:
    with machine() as box:
        box.kubernetes("up", "--machines", "3")
        box.kubectl("cordon", "n2", "n3")
        done = box.run(sys.executable, "-m", "tools.up", timeout_seconds=900)
        assert done.returncode == 0, done.stdout
        trial = Trial(box)
        trial.place(WORKER, "n2")
        yield trial


def test_a_job_of_a_dead_machine_is_requeued_and_its_node_comes_back_elsewhere_by_one_taint(trial: Trial) -> None:
    wait_until(lambda: "idle" in trial.user(f"sinfo -hn {WORKER} -o %t").split(), "the worker has joined")
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
