"""Stacks of this repository, its recipes and the example in the pages violate no policy of their environments."""

import functools
import json
import re
import shutil
from pathlib import Path

import pytest

from soperator_pulumi.policy.recorded import Judgement, judge
from soperator_pulumi.stack import program
from soperator_pulumi.testing import Deployment, deploy
from stacks import this_machine
from tests.rendered.cluster.clusters import IMAGES, provided
from tools import paths
from tools.engine import Target, project

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKFcZ4bq2dE6NcAZQ0yBLBwXVGQpCq3m2V1rW9o1l2xk me"
STACKS = sorted(file.name.split(".")[1] for file in (paths.ROOT / "stacks").glob("Pulumi.*.yaml"))
RECIPES = sorted((paths.ROOT / "stacks" / "recipes").glob("*.yaml"))
TRIALS = [file for file in RECIPES if file.stem != "kind"]
"""Recipes of platforms that may serve people later."""

NEEDED_IN_PROD = {"accounting-dumps", "alert-rules", "long-checks"}
"""Policies of prod that a recipe leaves for later."""


def judged(folder: Path, stack: str, **policy: str) -> Judgement:
    """Judge a stack of a project, with these changes of its `soperator:policy`."""
    config = project.load(Target(project=folder, stack=stack, state=folder)).config
    given = {**json.loads(config.get("soperator:policy", "{}")), **policy}
    return judge(deployed(*config.items()), policy=given, stack=stack, variables={})


@functools.cache
def deployed(*config: tuple[str, str]) -> Deployment:
    return deploy(lambda: program.run(this_machine.complete), config=dict(config), outputs=provided)


def a_project(folder: Path, stack: str, content: str) -> Path:
    """Return a project like ours with this stack alone."""
    (folder / "stacks").mkdir()
    shutil.copy(paths.ROOT / "Pulumi.yaml", folder)
    (folder / "stacks" / f"Pulumi.{stack}.yaml").write_text(content)
    return folder


@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_violates_no_policy(stack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.images.references", lambda **_: IMAGES)
    monkeypatch.setattr("tools.ssh.public_key", lambda: KEY)

    found = judged(paths.ROOT, stack)

    assert found.failures == ()
    assert found.remediations == (), "what is corrected is corrected in the program"


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda file: file.stem)
def test_a_recipe_that_is_taken_as_it_stands_violates_no_policy(recipe: Path, tmp_path: Path) -> None:
    found = judged(a_project(tmp_path, "mine", recipe.read_text()), "mine")

    assert found.failures == ()
    assert found.remediations == ()


@pytest.mark.parametrize("recipe", TRIALS, ids=lambda file: file.stem)
def test_the_page_has_all_that_a_recipe_needs_to_become_prod(recipe: Path, tmp_path: Path) -> None:
    found = judged(a_project(tmp_path, "mine", recipe.read_text()), "mine", environment="prod")

    assert {failure.partition(":")[0] for failure in found.failures} == NEEDED_IN_PROD
    page = (paths.ROOT / "docs" / "kubernetes.md").read_text()
    assert all(f"(`{policy}`)" in page for policy in NEEDED_IN_PROD)


def test_the_example_of_a_stack_violates_no_policy_of_prod(tmp_path: Path) -> None:
    (content,) = re.findall(r"```yaml\n(.*?)```", (paths.ROOT / "docs" / "your-cluster.md").read_text(), re.DOTALL)

    found = judged(a_project(tmp_path, "prod", content), "prod")

    assert found.failures == ()
    assert found.remediations == ()


@pytest.mark.parametrize("stack", [stack for stack in STACKS if stack != "local"])
def test_a_stack_names_its_registries_and_its_quota_of_gpus(stack: str, tmp_path: Path) -> None:
    config = project.load(Target(project=paths.ROOT, stack=stack, state=tmp_path)).config
    settings = json.loads(config["soperator:policy"])["settings"]

    assert settings["pinned-images"]["registries"] == ["registry.example.com"]
    assert "limit" in settings["gpu-quota"]
