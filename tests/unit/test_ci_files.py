"""Workflow files for users: valid, of few rights, and made of the commands that the other tests run."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools import paths

CI = paths.ROOT / "ci"
WORKFLOWS = sorted((CI / "github" / "workflows").glob("*.yml"))
PREPARE = CI / "github" / "actions" / "prepare" / "action.yml"
GITLAB = CI / "gitlab" / "gitlab-ci.yml"
COMMANDS = {
    "preview": 'make --silent rendered-review STACK="$STACK" BASE=HEAD^1',
    "live-preview": 'make --silent review STACK="$STACK" POLICY=policy',
    "deploy": 'make up STACK="$STACK" POLICY=policy',
    "drift": 'make --silent drift STACK="$STACK"',
}


def loaded(file: Path) -> dict[str, Any]:
    """Return a file's content. The key `on` is no boolean here."""
    text = re.sub(r"(?m)^on:", '"on":', file.read_text())
    return dict(yaml.safe_load(text))


def jobs(file: Path) -> dict[str, dict[str, Any]]:
    return dict(loaded(file)["jobs"])


def steps(file: Path) -> list[dict[str, Any]]:
    return [step for job in jobs(file).values() for step in job["steps"]]


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-workflows", WORKFLOWS),
        ("custom.github-workflows-require-timeout", WORKFLOWS),
        ("vendor.github-actions", [PREPARE]),
        ("vendor.gitlab-ci", [GITLAB]),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_the_files_are_valid(schema: str, files: list[Path]) -> None:
    transform = ["--data-transform", "gitlab-ci"] if schema == "vendor.gitlab-ci" else []
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *transform, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_each_workflow_runs_the_command_of_its_name() -> None:
    assert {file.stem for file in WORKFLOWS} == COMMANDS.keys()
    for file in WORKFLOWS:
        commands = [line.strip() for step in steps(file) for line in step.get("run", "").splitlines()]
        run = [line.partition(" >> ")[0] for line in commands if line.startswith("make ")]
        assert run == [COMMANDS[file.stem]]


def test_gitlab_runs_the_same_commands() -> None:
    described = loaded(GITLAB)
    run = {name: described[name]["script"][-1] for name in ("preview", "live-preview", "drift", ".deploy")}
    base = COMMANDS["preview"].replace("HEAD^1", '"$CI_MERGE_REQUEST_DIFF_BASE_SHA"')
    assert run == {
        "preview": f"{base} > review.md",
        "live-preview": f"{COMMANDS['live-preview']} > review.md",
        "drift": COMMANDS["drift"],
        ".deploy": COMMANDS["deploy"],
    }


def test_every_command_is_a_target_of_make() -> None:
    targets = set(re.findall(r"(?m)^([\w./-]+):", (paths.ROOT / "Makefile").read_text()))
    text = "".join(file.read_text() for file in (*WORKFLOWS, PREPARE, GITLAB))
    called = set(re.findall(r"make (?:--silent )?([\w./-]+)", text))
    assert called == {"rendered-review", "review", "up", "drift", ".venv/.installed"}
    assert called <= targets


def test_the_page_s_commands_put_the_files_where_they_are_looked_for(tmp_path: Path) -> None:
    page = (paths.ROOT / "docs" / "ci.md").read_text()
    (tmp_path / "ci").symlink_to(CI)
    for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL):
        subprocess.run(["sh", "-e", "-c", block], cwd=tmp_path, check=True)
    copied = tmp_path / ".github"
    assert sorted(path.name for path in (copied / "workflows").iterdir()) == [file.name for file in WORKFLOWS]
    for folder in re.findall(r"uses: \./(.*)", "".join(file.read_text() for file in WORKFLOWS)):
        assert (tmp_path / folder / "action.yml").exists()
    assert (tmp_path / ".gitlab-ci.yml").read_text() == GITLAB.read_text()
    targets = set(re.findall(r"(?m)^([\w./-]+):", (paths.ROOT / "Makefile").read_text()))
    assert {"rendered-review", "review", "up", "drift", "refresh"} <= set(re.findall(r"make ([\w-]+)", page)) <= targets


def test_both_deploy_the_same_stacks_in_the_same_order() -> None:
    stacks = {tuple(job["strategy"]["matrix"]["stack"]) for file in WORKFLOWS for job in jobs(file).values()}
    described = loaded(GITLAB)
    parallel = {
        tuple(described[name]["parallel"]["matrix"][0]["STACK"]) for name in ("preview", "live-preview", "drift")
    }
    deployed = tuple(value["variables"]["STACK"] for name, value in described.items() if name.startswith("deploy-"))
    assert stacks == parallel == {deployed}
    assert all((paths.ROOT / "stacks" / f"Pulumi.{stack}.yaml").exists() for stack in deployed)


def test_actions_are_pinned_by_commit_and_name_their_version() -> None:
    used = re.findall(r"uses: (.*)", "".join(file.read_text() for file in (*WORKFLOWS, PREPARE)))
    others = [item for item in used if not item.startswith("./")]
    assert len(others) == 7
    assert [
        other for other in others if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+.*", other)
    ] == []


def test_workflows_have_no_more_rights_than_they_use() -> None:
    for file in WORKFLOWS:
        assert loaded(file)["permissions"] == {"contents": "read"}
        assert [job for job in jobs(file).values() if "permissions" in job] == []
        (checkout,) = [step for step in steps(file) if step.get("uses", "").startswith("actions/checkout@")]
        assert checkout["with"]["persist-credentials"] is False


def test_secrets_reach_commands_by_the_environment_alone() -> None:
    for file in (*WORKFLOWS, PREPARE):
        scripts = loaded(file)["runs"]["steps"] if file == PREPARE else steps(file)
        for step in scripts:
            assert "secrets." not in json.dumps([step.get("with"), step.get("env")])


def test_deployments_wait_for_approval_and_for_each_other() -> None:
    (up,) = jobs(CI / "github" / "workflows" / "deploy.yml").values()
    assert up["environment"] == "${{ matrix.stack }}"
    assert up["strategy"]["max-parallel"] == 1
    assert up["strategy"]["fail-fast"]
    (drift,) = jobs(CI / "github" / "workflows" / "drift.yml").values()
    assert up["concurrency"] == {"group": "stack-${{ matrix.stack }}", "cancel-in-progress": False}
    assert drift["concurrency"]["group"] != up["concurrency"]["group"], "one that waits would be cancelled"
    described = loaded(GITLAB)
    assert described["deploy-prod"]["needs"] == ["deploy-staging"]
    assert [rule.get("when") for rule in described["deploy-prod"]["rules"]] == ["manual"]
    assert described[".deploy"]["resource_group"] == described["drift"]["resource_group"] == "stack-$STACK"


def test_the_page_has_the_longest_wait_of_each_stack_that_is_deployed() -> None:
    (up,) = jobs(CI / "github" / "workflows" / "deploy.yml").values()
    stacks = up["strategy"]["matrix"]["stack"]
    page = (paths.ROOT / "docs" / "ci.md").read_text()
    rows = dict(re.findall(r"(?m)^\| `(\w+)` \| (\d+d) \|$", page))

    assert rows == {stack: longest_wait(stack) for stack in stacks}


def longest_wait(stack: str) -> str:
    """Return the longest `max_wait` of a stack's drains, in days."""
    described = yaml.safe_load((paths.ROOT / "stacks" / f"Pulumi.{stack}.yaml").read_text())
    node_sets = described["config"]["soperator:cluster"]["node_sets"]
    waits: list[str] = [item["drain"]["max_wait"] for item in node_sets]
    return max(waits, key=lambda days: int(days.removesuffix("d")))


def test_the_installed_versions_are_those_that_the_package_takes() -> None:
    texts = [PREPARE.read_text(), GITLAB.read_text()]
    (version,) = {version for text in texts for version in re.findall(r"(?i)pulumi[-_]version: \"?([\d.]+)", text)}
    minimum = re.search(r'"pulumi>=3\.(\d+),<4"', (paths.ROOT / "pyproject.toml").read_text())
    assert minimum
    assert int(version.split(".")[1]) >= int(minimum[1])
    assert 'python-version: "3.11"' in texts[0]
    assert 'python-version: "3.11"' in (CI / "github" / "workflows" / "preview.yml").read_text()
    assert "image: python:3.11" in texts[1]
