"""Clusters to deploy under mocks."""

import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from soperator_pulumi import SlurmCluster
from soperator_pulumi.testing import Deployment, deploy

IMAGES = {
    name: f"registry.example/{name}:1"
    for name in (
        "controller",
        "worker",
        "login",
        "accounting",
        "database",
        "rest",
        "exporter",
        "munge",
        "jail_tools",
        "jail",
    )
}
API_SERVERS = ["10.96.0.1/32", "192.0.2.9/32"]
PASSWORD = "generated"
SEED = hashlib.sha256(PASSWORD.encode()).digest()
"""Seed of the generated host key."""


def a_spec(**overrides: Any) -> dict[str, Any]:
    """A valid description; the keys that a test is about replace those of it."""
    return {
        "images": IMAGES,
        "node_sets": [a_node_set()],
        "users": [{"name": "alice", "uid": 2001}],
        "accounting": "none",
        **overrides,
    }


def a_node_set(**changes: object) -> dict[str, Any]:
    """Return the description of the one node set of `a_spec` with the given keys changed."""
    return {"name": "cpu", "replicas": 2, "cpus": 4, "memory_gib": 8, **changes}


def provided(type_: str, _name: str, _inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Outputs that providers add to the inputs."""
    if type_.endswith(":RandomPassword"):
        return {"result": PASSWORD}
    if type_.endswith(":Prerequisites"):
        own = {"ssh_host_public_key": "ssh-ed25519 OWN", "ssh_host_fingerprint": "SHA256:own"}
        return {**own, "api_servers": API_SERVERS}
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


def worker_pods(*changes: Mapping[str, object]) -> list[dict[str, Any]]:
    """Pods of node sets with these changes, all of one cluster: to deploy one for each takes longer."""
    names = [f"cpu{number}" for number in range(len(changes))]
    node_sets = [a_node_set(name=name, **change) for name, change in zip(names, changes, strict=True)]
    return [pod_of(a_deployment(node_sets=node_sets), f"hpc-{name}") for name in names]


def populate_pod(deployment: Deployment) -> dict[str, Any]:
    """The specification of the pod that fills the jail."""
    (job,) = deployment.resources(":Job")
    pod: dict[str, Any] = job.inputs["spec"]["template"]["spec"]
    return pod


def switch_pod(deployment: Deployment) -> dict[str, Any]:
    """The specification of the pod that switches trees."""
    pod: dict[str, Any] = deployment.one("hpc-active-tree").inputs["template"]["spec"]
    return pod


def all_pods(deployment: Deployment) -> dict[str, dict[str, Any]]:
    """The specifications of all pods of a cluster, by what they are for."""
    sets = {
        resource.inputs["metadata"]["name"]: resource.inputs["spec"]["template"]["spec"]
        for resource in deployment.resources(":StatefulSet")
    }
    return {**sets, "populate": populate_pod(deployment), "switch": switch_pod(deployment)}


def containers_of(pod: Mapping[str, Any]) -> dict[str, Any]:
    """All containers of a pod by their names."""
    return {
        init_container["name"]: init_container
        for init_container in [*pod.get("initContainers", []), *pod["containers"]]
    }


def mounts_of(container: Mapping[str, Any]) -> dict[str, Any]:
    """A container's mounts by their paths."""
    return {mount["mountPath"]: mount for mount in container["volumeMounts"]}


def capabilities_of(container: Mapping[str, Any]) -> set[str]:
    """Capabilities of root in a container."""
    return set(container["securityContext"]["capabilities"].get("add", []))


def volume_of(pod: Mapping[str, Any], mount: Mapping[str, Any]) -> dict[str, Any]:
    """The volume of a mount, without its name."""
    found = next(volume for volume in pod["volumes"] if volume["name"] == mount["name"])
    return {key: value for key, value in found.items() if key != "name"}


PODS = ("hpc-controller", "hpc-login", "hpc-cpu")
"""StatefulSets of the pods in which Slurm runs."""
