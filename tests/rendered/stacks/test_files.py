"""The stacks' files, deployed under mocks as both engines read them."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from soperator_pulumi.stack import program
from soperator_pulumi.testing import Deployment, deploy
from stacks import this_machine
from tools import paths
from tools.engine import Target, project
from tools.images import references

ENVIRONMENTS = ("dev", "staging", "prod")


@cache
def deployed(stack: str) -> Deployment:
    target = Target(project=paths.ROOT, stack=stack, state=Path("/nowhere"))
    return deploy(lambda: program.run(this_machine.complete), config=project.load(target).config)


def images(deployment: Deployment) -> set[str]:
    """The images of all pods."""
    sets = deployment.resources("StatefulSet") + deployment.resources(":Job")
    pods = [resource.inputs["spec"]["template"]["spec"] for resource in sets]
    return {item["image"] for pod in pods for key in ("containers", "initContainers") for item in pod.get(key, [])}


def test_the_defaults_of_the_stacks_name_every_image_that_make_images_prints() -> None:
    defaults = yaml.safe_load((paths.ROOT / "Pulumi.yaml").read_text())["config"]["soperator:defaults"]["default"]

    assert {*defaults["images"]} == {*references("registry.example.com/soperator")} - {"jail"}


@pytest.mark.parametrize("stack", ["staging", "prod"])
def test_programs_of_the_portal_submit_jobs_over_an_encrypted_api(stack: str) -> None:
    api = deployed(stack).one(f"{name_of(stack)}-rest", "StatefulSet").inputs["spec"]["template"]["spec"]

    assert "registry.example.com/soperator/rest:24.11-3" in {container["image"] for container in api["containers"]}
    assert "rest-certificate" in {volume["secret"]["secretName"] for volume in api["volumes"] if "secret" in volume}


def test_the_local_stack_takes_images_and_key_of_this_machine_and_no_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    deployment = deployed("local")

    assert deployment.exports["login_user"] == "demo"
    assert not any("example.com" in image for image in images(deployment))
    assert deployment.one("slurm-login-service").inputs["spec"]["type"] == "ClusterIP"
    assert "make-ssh" in str(deployment.one("slurm-ssh-keys").inputs["files"])


@pytest.mark.parametrize("stack", ENVIRONMENTS)
def test_an_environment_runs_images_of_the_registry_and_knows_the_users_of_all(stack: str) -> None:
    deployment = deployed(stack)

    assert all(image.startswith("registry.example.com/") for image in images(deployment))
    accounts = deployment.one(f"{name_of(stack)}-users").inputs["files"]["passwd"]
    assert all(f"\n{user}:x:" in accounts for user in ("alice", "bob"))
    claim: Any = deployment.one(f"{name_of(stack)}-jail", "PersistentVolumeClaim")
    assert claim.inputs["spec"]["storageClassName"] == "shared-rwx"


def test_what_an_environment_sets_to_null_has_the_default_of_the_specification() -> None:
    assert deployed("dev").one("hpc-dev-login-service").inputs["spec"]["type"] == "ClusterIP"
    assert deployed("prod").one("hpc-login-service").inputs["spec"]["type"] == "LoadBalancer"


def test_production_has_logins_to_spare_and_keeps_its_data() -> None:
    deployment = deployed("prod")

    assert deployment.one("hpc-login", "StatefulSet").inputs["spec"]["replicas"] >= 2
    claims = deployment.resources("PersistentVolumeClaim")
    assert len(claims) == 4  # jail, state, database and dumps
    assert all(claim.request.protect and claim.request.retainOnDelete for claim in claims)


def name_of(stack: str) -> str:
    return "hpc" if stack == "prod" else f"hpc-{stack}"
