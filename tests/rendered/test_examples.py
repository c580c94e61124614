"""Every example, deployed under mocks as its folder has it."""

import functools
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

import soperator_pulumi
from soperator_pulumi.testing import Deployment, deploy
from tests.examples import FOLDER, PYTHON, Example, example

STORAGE_STACK = "organization/hpc-storage/test"
PLATFORM_STACK = "organization/hpc-platform/test"
OTHER_STACKS = {
    STORAGE_STACK: {
        "namespace": "hpc-test",
        "jail": "jail",
        "state": "slurmctld-state",
        "database": "database",
    },
    PLATFORM_STACK: {"storage_class": "shared-rwx"},
}
CONFIG: dict[str, dict[str, Any]] = {"larger-program": {"soperator:kubeconfig": "apiVersion: v1\nclusters: []\n"}}
"""Values that an example leaves to its user."""


@functools.cache
def deployed(which: Example) -> Deployment:
    """Deploy an example. A deployment cannot be changed, so one of each is enough."""
    return deployed_beside(which, OTHER_STACKS)


def deployed_beside(
    which: Example, stacks: Mapping[str, Mapping[str, Any]], config: Mapping[str, Mapping[str, Any]] = CONFIG
) -> Deployment:
    return deploy(
        lambda: runpy.run_path(str(which.folder), run_name="__main__"),
        config=which.texts(**config.get(which.name, {})),
        stacks=stacks,
    )


@pytest.mark.parametrize("which", PYTHON, ids=lambda item: item.name)
def test_an_example_deploys_as_it_stands(which: Example) -> None:
    deployment = deployed(which)
    assert deployment.recorded
    assert deployment.exports


def test_the_minimal_program_makes_one_cluster_of_two_nodes() -> None:
    deployment = deployed(example("minimal"))
    assert [resource.name for resource in deployment.resources(":SlurmCluster")] == ["hpc"]
    assert deployment.one("hpc-cpu", "StatefulSet").inputs["spec"]["replicas"] == 2


def test_two_clusters_share_nothing_but_the_description() -> None:
    deployment = deployed(example("two-clusters"))
    assert [resource.name for resource in deployment.resources(":SlurmCluster")] == ["research-test", "teaching-test"]
    objects = [resource for resource in deployment.recorded if resource.type.startswith("kubernetes:")]
    for object_ in objects:
        cluster = object_.name.rpartition("-test")[0]
        assert object_.inputs["metadata"].get("namespace", object_.inputs["metadata"]["name"]) == f"{cluster}-test"
        others = {other.name.rpartition("-test")[0] for other in deployment.waits_for(object_)}
        assert others <= {cluster}


def test_the_larger_program_s_own_namespace_and_volumes_outlive_the_cluster() -> None:
    deployment = deployed(example("larger-program"))
    claims = {("PersistentVolumeClaim", name) for name in ("root-and-homes", "datasets")}
    own = {("Namespace", "research"), *claims}
    for kind, name in own:
        found = deployment.one(name, kind)
        assert found.parent == ""
    workers = deployment.one("hpc-cpu", "StatefulSet")
    assert own <= {(awaited.type.rpartition(":")[2], awaited.name) for awaited in deployment.waits_for(workers)}
    assert "hpc-namespace" not in {resource.name for resource in deployment.recorded}


def test_the_larger_program_s_provider_deploys_every_object() -> None:
    deployment = deployed(example("larger-program"))
    objects = [resource for resource in deployment.recorded if resource.type.startswith("kubernetes:")]
    assert {object_.request.provider.rpartition("::")[0].rpartition("::")[2] for object_ in objects} == {"research"}


def test_the_cluster_mounts_the_volumes_of_the_other_stack() -> None:
    stacks = {STORAGE_STACK: {"namespace": "n", "jail": "a", "state": "b", "database": "c"}}
    deployment = deployed_beside(example("storage-and-cluster/cluster"), stacks)
    assert not deployment.resources("PersistentVolumeClaim")
    for name, claim in (("hpc-controller", "b"), ("hpc-accounting-database", "c")):
        volumes = deployment.one(name, "StatefulSet").inputs["spec"]["template"]["spec"]["volumes"]
        claims = {
            volume["persistentVolumeClaim"]["claimName"] for volume in volumes if "persistentVolumeClaim" in volume
        }
        assert claim in claims


def test_the_storage_stack_exports_what_the_cluster_stack_requires() -> None:
    exports = deployed(example("storage-and-cluster/storage")).exports
    assert exports == {
        "namespace": "hpc-test",
        "jail": "jail",
        "state": "slurmctld-state",
        "database": "database",
    }
    assert (
        deployed_beside(example("storage-and-cluster/cluster"), {STORAGE_STACK: exports}).exports["namespace"]
        == "hpc-test"
    )


def test_the_cluster_takes_what_the_platform_of_the_other_stack_offers() -> None:
    platform = deployed(example("platform-and-cluster/platform"))
    assert platform.exports["gpu_resource"] == "nvidia.com/gpu"
    assert platform.exports["rdma_resources"] == ["rdma/hca"]
    assert platform.exports["parts"] == sorted(
        example("platform-and-cluster/platform").config()["hpc-platform:platform"].keys()
        - {"kubernetes", "storage_class"}
    )
    cluster = deployed_beside(example("platform-and-cluster/cluster"), {PLATFORM_STACK: platform.exports})
    claim: Any = cluster.one("hpc-jail", "PersistentVolumeClaim").inputs["spec"]
    assert claim["storageClassName"] == platform.exports["storage_class"] == "shared-rwx"


def test_the_configuration_adds_nodes_with_gpus_of_the_platform_of_the_other_stack() -> None:
    """The node set is the one that the stack's file has as a comment."""
    which = example("platform-and-cluster/cluster")
    commented = re.findall(r"(?m)^  # (soperator:gpu-nodes:|  .*)$", which.stack_file().read_text())
    platform = deployed(example("platform-and-cluster/platform"))
    described = {**CONFIG, which.name: yaml.safe_load("\n".join(commented))}
    cluster = deployed_beside(which, {PLATFORM_STACK: platform.exports}, described)
    pod = cluster.one("hpc-gpu", "StatefulSet").inputs["spec"]["template"]["spec"]
    (slurmd,) = (container for container in pod["containers"] if container["name"] == "slurmd")
    assert {platform.exports["gpu_resource"], *platform.exports["rdma_resources"]} <= slurmd["resources"][
        "limits"
    ].keys()
    assert pod["runtimeClassName"] == platform.exports["runtime_class"]


def test_the_tests_of_the_program_with_tests_pass_in_its_own_folder(tmp_path: Path) -> None:
    folder = tmp_path / "testing"
    shutil.copytree(example("testing").folder, folder)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout


@pytest.mark.parametrize("which", PYTHON, ids=lambda item: item.name)
def test_an_example_installs_this_version_of_the_package(which: Example) -> None:
    lines = (which.folder / "requirements.txt").read_text().splitlines()
    required = {requirement.name: requirement for requirement in map(Requirement, lines)}
    if any("soperator_pulumi" in file.read_text() for file in which.folder.glob("*.py")):
        assert required["soperator-pulumi"].specifier.contains(soperator_pulumi.__version__)
    else:
        assert required.keys() == {"pulumi", "pulumi-kubernetes"}


def test_the_list_of_examples_has_each_folder() -> None:
    listed = re.findall(r"(?m)^\| \[([\w-]+)\]", (FOLDER / "README.md").read_text())
    assert sorted(listed) == sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
