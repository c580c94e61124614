"""Pods without machines: kwok keeps a Node without a kubelet ready, and reports the pods on it as running."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from kubernetes import client
from kubernetes.client.exceptions import ApiException
from kubernetes.watch import Watch

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
)
"""Files of kwok's module: a Node and pods are ready at once.

Without its stage of deleted pods: kwok deletes by name alone, and a busy kwok (0.8) is so late that it deletes the pod
that a StatefulSet has made in the meantime, over and over: 256 pods became 4,500 in ten minutes (measured). `_pods_end`
takes its place.
"""

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
        with _running(kubernetes, folder, name), _pods_end(kubernetes, name):
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


@contextmanager
def _pods_end(kubernetes: Kubernetes, node: str) -> Iterator[None]:
    """Have deleted pods of the Node be gone at once, while the body runs."""
    watch = Watch()

    def end_deleted() -> None:
        on_node = {"field_selector": f"spec.nodeName={node}"}
        for event in watch.stream(kubernetes.core.list_pod_for_all_namespaces, **on_node):
            metadata = event["object"].metadata
            if event["type"] == "DELETED" or metadata.deletion_timestamp is None:
                continue
            this_one = client.V1DeleteOptions(
                grace_period_seconds=0, preconditions=client.V1Preconditions(uid=metadata.uid)
            )
            with suppress(ApiException):  # it is gone already
                kubernetes.core.delete_namespaced_pod(metadata.name, metadata.namespace, body=this_one)

    Thread(target=end_deleted, daemon=True).start()
    try:
        yield
    finally:
        watch.stop()


def _stages() -> Iterator[Path]:
    lines = golang.run(BINARY.module, "mod", "download", "-json", _MODULE, what="finding kwok's stages")
    folder = Path(json.loads("\n".join(lines))["Dir"])
    for stage in _STAGES:
        yield folder / "kustomize/stage" / f"{stage}.yaml"


def _is_ready(kubernetes: Kubernetes, node: str) -> bool:
    ready = '{.status.conditions[?(@.type=="Ready")].status}'
    return kubernetes.run("get", "node", node, f"--output=jsonpath={ready}") == "True"
