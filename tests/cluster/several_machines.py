"""The stack `local` over three machines of an embedded Kubernetes of its own, in which machines may die."""

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.isolated import Machine, machine
from tests.waiting import wait_until

MACHINES = ("n1", "n2", "n3")


@dataclass(frozen=True)
class SeveralMachines:
    """The stack, and the machine that holds its machines."""

    box: Machine

    def shell(self, script: str) -> str:
        """Run a script as an admin who has kubectl and `soperator`, and return what it prints."""
        return self.box.sh(self._by_admin(script))

    def start(self, script: str, timeout_seconds: int = 400) -> "subprocess.Popen[str]":
        """Start a script as such an admin, with its output in one pipe. It has status 124 if it ends by the timeout."""
        return self.box.start("timeout", str(timeout_seconds), "sh", "-c", self._by_admin(script))

    def _by_admin(self, script: str) -> str:
        paths = (self.box.kube.bin_dir, Path(sys.executable).parent)
        settings = f"PATH={':'.join(map(str, paths))}:$PATH KUBECONFIG={shlex.quote(str(self.box.kube.kubeconfig))}"
        return f"set -e; export {settings}\n{script}"

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
                ready = {
                    condition["type"]: condition["status"] for condition in pod["status"].get("conditions", [])
                }.get("Ready", "")
                deleted = pod["metadata"].get("deletionTimestamp", "")
                return {
                    "uid": pod["metadata"]["uid"],
                    "node": pod["spec"].get("nodeName", ""),
                    "ready": ready,
                    "deleted": deleted,
                }
        return {"uid": "", "node": "", "ready": "", "deleted": ""}

    def place(self, pod: str, machine: str) -> None:
        """Move a pod to a machine. One that is ready there stays."""
        placed = {"node": machine, "ready": "True", "deleted": ""}
        if placed.items() <= self.pod(pod).items():
            return
        others = [node for node in MACHINES if node != machine]
        self.box.kubectl("uncordon", machine)
        self.box.kubectl("cordon", *others)
        self.box.kubectl("-n", "slurm", "delete", "pod", pod, "--ignore-not-found")
        wait_until(lambda: placed.items() <= self.pod(pod).items(), f"{pod} is on {machine}")
        self.box.kubectl("uncordon", *others)

    def job(self, number: str) -> tuple[str, str]:
        """Return state and number of requeues of a job."""
        state, restarts = self.user(f"squeue -h -j {number} -O State:20,RestartCnt:9").split()
        return state, restarts

    def state(self, node: str) -> str:
        """Return the state of a Slurm node as `sinfo` abbreviates it."""
        return self.user(f"sinfo -hn {node} -o %t")


@contextmanager
def several_machines(worker: str, on: str) -> Iterator[SeveralMachines]:
    """Give the stack with all pods on n1, but for one worker on another machine, for the time of the body."""
    with machine() as box:
        box.kubernetes("up", "--machines", str(len(MACHINES)))
        box.kubectl("cordon", *MACHINES[1:])
        done = box.run(sys.executable, "-m", "tools.up", timeout_seconds=900)
        assert done.returncode == 0, done.stdout
        made = SeveralMachines(box)
        made.place(worker, on)
        wait_until(lambda: made.state(worker) == "idle", "the worker has joined")
        yield made
