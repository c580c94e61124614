"""Clusters to deploy under mocks."""

import base64
import functools
import json
from collections.abc import Mapping
from typing import Any

from soperator_pulumi import SlurmCluster
from soperator_pulumi.testing import Deployment, deploy

IMAGES = {name: f"registry.example/{name}:1" for name in ("controller", "worker", "login", "munge")}
SEED = bytes(range(32))
HOST_KEY_SEED = base64.b64encode(SEED).decode()


def a_spec(**overrides: Any) -> dict[str, Any]:
    """A valid description; the keys that a test is about replace those of it."""
    return {
        "images": IMAGES,
        "node_sets": [{"name": "cpu", "replicas": 2, "cpus": 4, "memory_gib": 8}],
        "users": [{"name": "alice", "uid": 2001}],
        **overrides,
    }


def provided(type_: str, _name: str, _inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """What providers add to the inputs."""
    if type_.endswith(":RandomBytes"):
        return {"base64": HOST_KEY_SEED}
    if type_.endswith(":Prerequisites"):
        return {"ssh_host_public_key": "ssh-ed25519 OWN", "ssh_host_fingerprint": "SHA256:own"}
    return {}


def a_deployment(**overrides: Any) -> Deployment:
    """Deploy one cluster. A deployment cannot be changed, so one of each is enough."""
    return _deployed(json.dumps(overrides, sort_keys=True))


@functools.cache
def _deployed(overrides: str) -> Deployment:
    return deploy(lambda: SlurmCluster("hpc", a_spec(**json.loads(overrides))), outputs=provided)


def pod_of(deployment: Deployment, stateful_set: str) -> dict[str, Any]:
    """The pod's specification in the StatefulSet of this logical name."""
    pod: dict[str, Any] = deployment.one(stateful_set, "StatefulSet").inputs["spec"]["template"]["spec"]
    return pod


def containers_of(pod: Mapping[str, Any]) -> dict[str, Any]:
    """All containers of a pod by their names."""
    return {each["name"]: each for each in [*pod["initContainers"], *pod["containers"]]}


PODS = ("hpc-controller", "hpc-login", "hpc-cpu")
