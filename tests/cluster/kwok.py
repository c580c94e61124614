"""Pods without machines: kwok keeps a Node without a kubelet ready, and reports the pods on it as running."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.slurm import unique
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools.kube import binaries, golang
from tools.kube.binaries import Binary

_MODULE = "sigs.k8s.io/kwok"
BINARY = Binary("kwok", _MODULE, package=f"{_MODULE}/cmd/kwok", module=Path(__file__).parent / "kwok_go")

SIMULATED = "kwok.x-k8s.io/node"
"""Label and annotation of simulated Nodes, by which kwok finds its own, and taint that keeps other pods away."""

_STAGES = (
    "node/fast/node-initialize",
    "node/heartbeat-with-lease/node-heartbeat-with-lease",
    "pod/fast/pod-ready",
    "pod/fast/pod-delete",
)
"""Files of kwok's module: a Node and pods are ready at once, and a deleted pod is gone at once."""

_CAPACITY = {"cpu": "100k", "memory": "1Pi", "ephemeral-storage": "1Pi", "pods": "100k"}


@dataclass(frozen=True)
class SimulatedMachine:
    """A Node without a kubelet, on which any number of pods fits."""

    name: str

    @property
    def scheduling(self) -> dict[str, object]:
        """Fields of a node set whose pods are to be there."""
        return {
            "node_selector": {"kubernetes.io/hostname": self.name},
            "tolerations": [{"key": SIMULATED, "operator": "Exists"}],
        }


@contextmanager
def simulated_machine(kubernetes: Kubernetes, folder: Path) -> Iterator[SimulatedMachine]:
    """Have a simulated machine while the body runs. Its pods must be gone before the end.

    A Namespace owns the Node, so that the Node of a killed run goes with the namespaces of that run.
    """
    binaries.build(BINARY)
    name = unique("simulated-machine")
    kubernetes.run("create", "namespace", name)
    uid = kubernetes.run("get", "namespace", name, "--output=jsonpath={.metadata.uid}")
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": name, "uid": uid}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {SIMULATED: name},
            "labels": {SIMULATED: name, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
            "ownerReferences": [owner],
        },
        "spec": {"taints": [{"key": SIMULATED, "value": name, "effect": "NoSchedule"}]},
        "status": {"allocatable": _CAPACITY, "capacity": _CAPACITY},
    }
    try:
        kubernetes.run("create", "--filename=-", stdin=json.dumps(node))
        with _running(kubernetes, folder, name):
            wait_until(lambda: _is_ready(kubernetes, name), "the simulated machine is ready")
            yield SimulatedMachine(name)
    finally:
        kubernetes.run("delete", "node", name, "--ignore-not-found")
        kubernetes.throw_away(name)


@contextmanager
def _running(kubernetes: Kubernetes, folder: Path, node: str) -> Iterator[None]:
    """Run kwok for the Node that has this name in its annotation."""
    (folder / "stages.yaml").write_text("---\n".join(path.read_text() for path in _stages()))
    command = [
        str(BINARY.installed / BINARY.name),
        f"--kubeconfig={kubernetes.kubeconfig}",
        f"--config={folder / 'stages.yaml'}",
        "--manage-all-nodes=false",
        f"--manage-nodes-with-annotation-selector={SIMULATED}={node}",
        "--node-lease-duration-seconds=40",  # without it, the Node is taken for dead after a minute
        "--node-ip=198.18.0.1",  # of RFC 2544: for benchmarks
        "--cidr=198.18.0.1/15",
    ]
    with (folder / "kwok.log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            yield
        finally:
            process.terminate()


def _stages() -> Iterator[Path]:
    lines = golang.run(BINARY.module, "mod", "download", "-json", _MODULE, what="finding kwok's stages")
    folder = Path(json.loads("\n".join(lines))["Dir"])
    for stage in _STAGES:
        yield folder / "kustomize/stage" / f"{stage}.yaml"


def _is_ready(kubernetes: Kubernetes, node: str) -> bool:
    ready = '{.status.conditions[?(@.type=="Ready")].status}'
    return kubernetes.run("get", "node", node, f"--output=jsonpath={ready}") == "True"
