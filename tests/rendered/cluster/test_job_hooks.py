"""Hooks of jobs in the objects of a cluster: files of a ConfigMap, and a directory of the machines if it is given."""

import json
from typing import Any

from soperator_pulumi.render import layout
from soperator_pulumi.testing import Deployment
from tests.rendered.cluster.clusters import a_deployment, a_node_set, containers_of, mounts_of, pod_of, volume_of

MAPPING = "/var/lib/dcgm-exporter/job-mapping"
GPUS = a_node_set(name="gpu", gpus={"count": 8})
SETS = [a_node_set(), GPUS]


def gpu_jobs(deployment: Deployment, node_set: str) -> dict[str, Any] | None:
    """Return the volume that dcgm-exporter reads, in the pods of a node set."""
    pod = pod_of(deployment, f"hpc-{node_set}")
    mount = mounts_of(containers_of(pod)["slurmd"]).get(layout.GPU_JOBS)
    return None if mount is None else volume_of(pod, mount)


def test_the_files_of_hooks_are_in_the_config_map_of_the_health_checks() -> None:
    hooks = {"epilog": {"note": {"script": "true\n"}}}
    files = a_deployment(hooks=hooks).one("hpc-health").inputs["files"]

    assert [item["name"] for item in json.loads(files["job_hooks.json"])["epilog"]] == ["note", "processes_ended"]
    assert files["epilog-note.sh"] == "true\n"
    assert "cpu.json" in files
    assert "job_hooks.json" not in a_deployment().one("hpc-health").inputs["files"]


def test_pods_with_whole_gpus_alone_mount_the_directory_of_dcgm_exporter_and_only_where_it_is_given() -> None:
    given = a_deployment(node_sets=SETS, hooks={"job_mapping": MAPPING})

    assert gpu_jobs(given, "gpu") == {"hostPath": {"path": MAPPING, "type": "DirectoryOrCreate"}}
    assert gpu_jobs(given, "cpu") is None
    assert gpu_jobs(a_deployment(node_sets=SETS, hooks={}), "gpu") is None


def test_no_job_sees_the_directory_of_dcgm_exporter() -> None:
    (slurmd,) = (
        containers_of(pod_of(a_deployment(node_sets=SETS, hooks={"job_mapping": MAPPING}), "hpc-gpu"))["slurmd"],
    )

    assert f"volume={layout.GPU_JOBS}" in slurmd["command"]
    assert not [item for item in slurmd["command"] if item.startswith(("bind=", "own=")) and layout.GPU_JOBS in item]


def test_built_in_hooks_change_no_pod_of_a_cluster_that_has_none() -> None:
    hooked = pod_of(a_deployment(node_sets=SETS, hooks={}), "hpc-gpu")

    assert hooked == pod_of(a_deployment(node_sets=SETS), "hpc-gpu")
