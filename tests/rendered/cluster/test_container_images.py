"""Shared images: the Job that fills their store, and the mounts with which jobs have it."""

from typing import Any

from tests.rendered.cluster.clusters import (
    a_deployment,
    a_node_set,
    capabilities_of,
    containers_of,
    mounts_of,
    pod_of,
    volume_of,
)

STORE = "/var/lib/soperator/images"
WITH_IMAGES = {"images": ["ubuntu:24.04", "nvcr.io/nvidia/pytorch:26.09-py3"], "images_secret": "registry"}


def publishing_pod(containers: dict[str, Any]) -> dict[str, Any]:
    job = a_deployment(containers=containers).one("hpc-container-images-publish", "Job")
    pod: dict[str, Any] = job.inputs["spec"]["template"]["spec"]
    return pod


def test_a_job_without_a_capability_brings_the_images_with_the_secrets_credentials() -> None:
    pod = publishing_pod(WITH_IMAGES)
    publish = containers_of(pod)["publish"]

    assert publish["command"][-3:] == ["/usr/lib/soperator/containers/publish-images", *WITH_IMAGES["images"]]
    assert capabilities_of(publish) == set()
    assert volume_of(pod, mounts_of(publish)["/run/credentials"]) == {
        "secret": {
            "secretName": "registry",
            "items": [{"key": ".dockerconfigjson", "path": "config.json"}],
            "defaultMode": 0o400,
        }
    }
    assert mounts_of(publish)[STORE]["subPath"] == "container-images"


def test_the_job_is_there_without_images_to_remove_those_of_a_former_spec() -> None:
    assert containers_of(publishing_pod({}))["publish"]["command"][-1].endswith("/publish-images")


def test_jobs_have_the_store_read_only_before_there_are_images() -> None:
    assert pod_of(a_deployment(containers={}), "hpc-cpu") == pod_of(a_deployment(containers=WITH_IMAGES), "hpc-cpu")
    slurmd = containers_of(pod_of(a_deployment(containers={}), "hpc-cpu"))["slurmd"]

    assert mounts_of(slurmd)[STORE]["readOnly"]
    assert f"bind={STORE}:ro" in slurmd["command"]


def test_without_containers_there_is_no_job_and_no_store() -> None:
    deployment = a_deployment()

    assert not [item for item in deployment.recorded if "container-images" in item.name]
    assert STORE not in mounts_of(containers_of(pod_of(deployment, "hpc-cpu"))["slurmd"])


DISK = "/var/lib/soperator/local-images"


def test_node_sets_with_a_disk_have_it_for_copies_with_the_mode_of_tmp() -> None:
    local = {"host_path": "/mnt/local/images", "node_sets": ["cpu"]}
    deployment = a_deployment(containers={"local": local})
    pod = pod_of(deployment, "hpc-cpu")
    slurmd = containers_of(pod)["slurmd"]
    (prepare,) = [container for container in pod["initContainers"] if container["name"] == "prepare"]

    assert volume_of(pod, mounts_of(slurmd)[DISK]) == {"hostPath": {"path": "/mnt/local/images", "type": "Directory"}}
    assert {f"bind={DISK}", f"volume={DISK}"} <= {*slurmd["command"]}
    (line,) = [line for line in prepare["command"][-1].splitlines() if DISK in line]
    assert line.startswith("chmod 1777 ")


def test_other_node_sets_have_no_disk_for_copies() -> None:
    node_sets = [a_node_set(name="cpu"), a_node_set(name="gpu")]
    local = {"host_path": "/mnt/local/images", "node_sets": ["gpu"]}
    deployment = a_deployment(containers={"local": local}, node_sets=node_sets)

    assert DISK in mounts_of(containers_of(pod_of(deployment, "hpc-gpu"))["slurmd"])
    without = a_deployment(containers={}, node_sets=node_sets)
    assert pod_of(deployment, "hpc-cpu") == pod_of(without, "hpc-cpu")
