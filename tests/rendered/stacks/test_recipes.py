"""A stack's file for each platform: taken as a stack, and deployed under mocks."""

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from soperator_pulumi.stack import program
from soperator_pulumi.testing import Deployment, deploy
from tools import paths
from tools.engine import Target, project

RECIPES = sorted((paths.ROOT / "stacks" / "recipes").glob("*.yaml"))
PLATFORMS = [file.stem for file in RECIPES]
PAGE = (paths.ROOT / "docs" / "kubernetes.md").read_text()


@cache
def deployed(folder: Path, platform: str) -> Deployment:
    """The recipe as a stack of a project like ours."""
    (folder / "stacks").mkdir()
    shutil.copy(paths.ROOT / "Pulumi.yaml", folder)
    shutil.copy(paths.ROOT / "stacks" / "recipes" / f"{platform}.yaml", folder / "stacks" / "Pulumi.mine.yaml")
    target = Target(project=folder, stack="mine", state=folder)
    return deploy(program.run, config=project.load(target).config)


@pytest.fixture(scope="module", params=PLATFORMS)
def recipe(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Deployment]:
    return request.param, deployed(tmp_path_factory.mktemp(request.param), request.param)


def claim(deployment: Deployment, suffix: str) -> Any:
    (found,) = [
        resource for resource in deployment.resources("PersistentVolumeClaim") if resource.name.endswith(suffix)
    ]
    return found.inputs["spec"]


def test_there_is_a_recipe_of_each_platform_that_the_page_describes() -> None:
    assert {heading.lower() for heading in re.findall(r"(?m)^## (\w+)$", PAGE)} == set(PLATFORMS)
    assert all(f"stacks/recipes/{platform}.yaml" in PAGE for platform in PLATFORMS)


def test_a_recipe_deploys_with_shared_storage_that_its_page_has(recipe: tuple[str, Deployment]) -> None:
    _, deployment = recipe
    jail, state = claim(deployment, "-jail"), claim(deployment, "-slurmctld-state")

    assert jail["accessModes"] == ["ReadWriteMany"]
    assert state["accessModes"] == ["ReadWriteOnce"]
    if "volumeName" in jail:
        (volume,) = deployment.resources(":PersistentVolume")
        assert jail["volumeName"] == volume.inputs["metadata"]["name"]
        assert not jail["storageClassName"], "no class provisions it"
    else:
        assert f"`{jail['storageClassName']}`" in PAGE
    assert state.get("storageClassName") != jail["storageClassName"]


def test_a_recipe_opens_logins_to_named_addresses_alone(recipe: tuple[str, Deployment]) -> None:
    platform, deployment = recipe
    (service,) = [
        resource for resource in deployment.resources("core/v1:Service") if resource.name.endswith("-login-service")
    ]
    kinds = {"kind": "ClusterIP", "k3s": "NodePort"}

    assert service.inputs["spec"]["type"] == kinds.get(platform, "LoadBalancer")
    assert "0.0.0.0/0" not in str(service.inputs)
    if service.inputs["spec"]["type"] == "LoadBalancer":
        assert service.inputs["spec"]["loadBalancerSourceRanges"]


def test_a_recipe_keeps_the_data_of_a_claim_that_is_deleted(recipe: tuple[str, Deployment]) -> None:
    _, deployment = recipe
    made = deployment.resources(":PersistentVolume") + deployment.resources(":StorageClass")
    policies = [
        resource.inputs.get("reclaimPolicy") or resource.inputs["spec"]["persistentVolumeReclaimPolicy"]
        for resource in made
    ]
    assert policies in ([], ["Retain"])


def test_the_commands_that_take_a_recipe_leave_a_stack_whose_schema_is_there(tmp_path: Path) -> None:
    (commands,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    shutil.copytree(paths.ROOT / "stacks", tmp_path / "stacks")
    subprocess.run(["sh", "-e", "-c", commands], cwd=tmp_path, check=True)

    taken = tmp_path / "stacks" / "Pulumi.mine.yaml"
    schema = taken.read_text().partition("\n")[0].partition("$schema=")[2]
    assert (taken.parent / schema).samefile(tmp_path / "stacks" / "schema.json")
