"""The pods that fill and verify a jail's trees, run on claims of their own: as the populate Job runs them."""

import json
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.slurm import JAIL
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools import images

TREE = "0123456789ab"
PYTHON = ["/.jail-tools/bin/python3", "-I", "-m", "jail_tools"]
POPULATE = ["populate", "--jail", "/.jail", "--tree", TREE, "--source", "image:test", "--root", "/"]
VERIFY = ["verify", "--jail", "/.jail", "--tree", TREE]

CONTEXT = {
    "runAsUser": 0,
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"], "add": ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETFCAP"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}

EYE = "eye"
"""The pod by which tests look into claims."""


@dataclass(frozen=True)
class Ended:
    """Fate of a pod."""

    code: int
    log: str
    message: str
    """Last words of the pod, which Kubernetes keeps."""


@dataclass
class Populating:
    """A namespace with claims, and pods that work on them."""

    kubernetes: Kubernetes
    namespace: str
    _count: int = field(default=0, init=False)

    @property
    def api(self) -> Any:  # the client's models say that every field may be None
        return self.kubernetes.core

    def claim(self) -> str:
        """Make a claim and return its name."""
        self._count += 1
        name = f"jail-{self._count}"
        spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
        self.api.create_namespaced_persistent_volume_claim(self.namespace, {"metadata": {"name": name}, "spec": spec})
        return name

    def start(self, volume: dict[str, Any], arguments: list[str]) -> str:
        """Start a pod that runs a command of jail_tools in the source image, and return its name."""
        self._count += 1
        name = f"pod-{self._count}"
        tools = {"name": "tools", "mountPath": "/.jail-tools"}
        install = {
            "name": "install",
            "image": images.references()["jail_tools"],
            "command": [*PYTHON, "install", "/target"],
            "securityContext": CONTEXT,
            "volumeMounts": [{**tools, "mountPath": "/target"}],
        }
        main = {
            "name": "populate",
            "image": JAIL.reference,
            "command": [*PYTHON, *arguments],
            "securityContext": CONTEXT,
            "volumeMounts": [{**tools, "readOnly": True}, {"name": "jail", "mountPath": "/.jail"}],
        }
        spec = {
            "restartPolicy": "Never",
            "initContainers": [install],
            "containers": [main],
            "volumes": [{"name": "tools", "emptyDir": {}}, {"name": "jail", **volume}],
        }
        self.api.create_namespaced_pod(self.namespace, {"metadata": {"name": name}, "spec": spec})
        return name

    def phase(self, pod: str) -> str:
        return str(self.api.read_namespaced_pod(pod, self.namespace).status.phase)

    def wait_until_running(self, pod: str) -> None:
        """Wait until the command has begun, or is over."""
        wait_until(lambda: self.phase(pod) != "Pending", what=f"{pod} has begun")

    def kill(self, pod: str) -> None:
        """Kill a pod's processes at once, as a loss of power would, and take the pod away."""
        uid = self.api.read_namespaced_pod(pod, self.namespace).metadata.uid
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if f"pod{uid}" in (process / "cgroup").read_text():
                    os.kill(int(process.name), signal.SIGKILL)
            except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
                continue
        self.api.delete_namespaced_pod(pod, self.namespace, grace_period_seconds=0)

    def end(self, pod: str) -> Ended:
        """Wait until a pod has ended, and remove it."""
        wait_until(lambda: self.phase(pod) in {"Succeeded", "Failed"}, what=f"{pod} has ended", timeout_seconds=180)
        (status,) = self.api.read_namespaced_pod(pod, self.namespace).status.container_statuses
        log = self.api.read_namespaced_pod_log(pod, self.namespace, container="populate")
        self.api.delete_namespaced_pod(pod, self.namespace, grace_period_seconds=0)
        return Ended(status.state.terminated.exit_code, log, status.state.terminated.message or "")

    def run(self, volume: dict[str, Any], arguments: list[str]) -> Ended:
        """Run a command of jail_tools to its end."""
        return self.end(self.start(volume, arguments))

    def look(self, claim: str, script: str) -> str:
        """Run a shell script as root with the claim at /claim, and return what it prints."""
        self._count += 1
        name = f"{EYE}-{self._count}"
        container = {
            "name": "eye",
            "image": JAIL.reference,
            "command": ["sh", "-ec", script],
            "volumeMounts": [{"name": "jail", "mountPath": "/claim"}],
        }
        spec = {"restartPolicy": "Never", "containers": [container], "volumes": [{"name": "jail", **volume(claim)}]}
        self.api.create_namespaced_pod(self.namespace, {"metadata": {"name": name}, "spec": spec})
        wait_until(lambda: self.phase(name) in {"Succeeded", "Failed"}, what=f"{name} has ended")
        log = str(self.api.read_namespaced_pod_log(name, self.namespace))
        assert self.phase(name) == "Succeeded", log
        self.api.delete_namespaced_pod(name, self.namespace, grace_period_seconds=0)
        return log


def volume(claim: str) -> dict[str, Any]:
    """Return a claim as a volume of a pod."""
    return {"persistentVolumeClaim": {"claimName": claim}}


def last_numbers(ended: Ended) -> dict[str, float]:
    """Return the numbers of files, bytes and seconds with which a populate ends."""
    line = next(line for line in reversed(ended.log.splitlines()) if line.startswith("{"))
    numbers: dict[str, float] = json.loads(line)
    return numbers
