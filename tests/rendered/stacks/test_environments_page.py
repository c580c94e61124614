"""The page on environments: its stacks deploy, its error is the one that is printed, its commands run."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from soperator_pulumi.stack import program, stack_config
from soperator_pulumi.stack.stack_config import StackConfigError
from soperator_pulumi.testing import Deployment, deploy
from tests.strategies import IMAGES, a_cluster
from tools import paths
from tools.docs import stack_schema

PAGE = (paths.ROOT / "docs" / "environments.md").read_text()
SEVERAL, REFERRING = (yaml.safe_load(block)["config"] for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
OTHERS = {
    "organization/platform/prod": {"kubeconfig": "apiVersion: v1\n"},
    "organization/storage/prod": {"storage_class": "fast-rwx", "datasets": "datasets"},
}


def run(config: dict[str, Any]) -> Deployment:
    values = {"soperator:defaults": {"images": IMAGES}, **config}
    return deploy(program.run, config={key: json.dumps(value) for key, value in values.items()}, stacks=OTHERS)


def test_several_clusters_of_a_stack_are_deployed_with_the_outputs_that_are_listed() -> None:
    deployment = run(SEVERAL)

    (listed,) = re.findall(r"(?m)^\| `soperator:cluster` \| (`namespace`.*) \|$", PAGE)
    assert deployment.exports["clusters"].keys() == {"vision", "language"}
    for exports in deployment.exports["clusters"].values():
        assert {*exports, "login_pool_endpoints"} == set(re.findall(r"`(\w+)`", listed)), "they have no pools"
    assert deployment.one("language-namespace").inputs["metadata"]["name"] == "language"


def test_values_of_other_stacks_reach_the_cluster() -> None:
    deployment = run(REFERRING)

    assert deployment.one("hpc-jail", "PersistentVolumeClaim").inputs["spec"]["storageClassName"] == "fast-rwx"
    assert "datasets" in str(deployment.one("hpc-login", "StatefulSet").inputs["spec"]["template"]["spec"]["volumes"])
    assert deployment.one("hpc-kubernetes").inputs["kubeconfig"].value == "apiVersion: v1\n"


def test_a_cluster_that_gets_a_key_of_its_own_stays_the_same_resources() -> None:
    def urns(config: dict[str, Any]) -> set[tuple[str, str, str]]:
        return {(resource.type, resource.parent, resource.name) for resource in run(config).recorded}

    assert urns({"soperator:cluster": a_cluster()}) == urns({"soperator:clusters": {"hpc": a_cluster(name=None)}})


@pytest.mark.parametrize("config", [SEVERAL, REFERRING], ids=["several", "referring"])
def test_the_stacks_of_the_page_are_valid_for_editors(config: dict[str, Any]) -> None:
    assert Draft7Validator(stack_schema.schema()).is_valid({"config": config})


def test_the_error_is_the_one_that_is_printed() -> None:
    (block,) = re.findall(r"```text\n(.*?)\n```", PAGE, re.DOTALL)
    clusters = {"blue": a_cluster(node_sets=[{"name": "cpu", "memory_gib": 8}])}
    defaults = {"slurm": {"extra": {"KillWiat": 30}}}
    with pytest.raises(StackConfigError) as caught:
        run({"soperator:clusters": clusters, "soperator:defaults": defaults, "soperator:kubconfig": "x"})
    assert str(caught.value).replace("stack test", "stack prod") == block


def test_every_key_of_a_stack_is_on_the_page() -> None:
    table = PAGE.split("## Keys of a stack")[1].split("\n\n")[1]
    assert {*re.findall(r"`(soperator:\w+)`", table)} == {*stack_config.KEYS}


def test_every_stack_here_is_on_the_page() -> None:
    table = PAGE.split("| stack |")[1].split("\n\n")[0]
    stacks = {file.name.split(".")[1] for file in (paths.ROOT / "stacks").glob("Pulumi.*.yaml")}
    assert set(re.findall(r"(?m)^\| `(\w+)`", table)) == stacks


def test_the_check_without_an_editor_passes() -> None:
    (command,) = re.findall(r"(?m)^(check-jsonschema .*)$", PAGE)
    program_ = Path(sys.executable).with_name("check-jsonschema")
    done = subprocess.run(
        ["sh", "-c", command.replace("check-jsonschema", shlex.quote(str(program_)), 1)],
        cwd=paths.ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
