"""Code that no one has reviewed reaches no credential in CI, and no text of it becomes a program's."""

import copy
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import yaml

from tests.unit.test_ci_files import CI, GITLAB, PREPARE, WORKFLOWS, loaded

MAIN = {"branches": ["main"]}
TRUSTED = {"push", "schedule", "workflow_dispatch"}
"""Events whose workflow is that of `main`: its environments admit no other branch."""

HOSTED = "ubuntu-24.04"
DEFAULT_BRANCH = "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH"
CREDENTIALS = re.compile(r"KUBECONFIG|PULUMI_(?!VERSION)|AWS_|SECRET|TOKEN|PASSPHRASE|PASSWORD")
RESERVED = {"stages", "default", "variables", "workflow", "include"}
"""Keys of GitLab's file that are no jobs."""


def github_leaks(workflow: Mapping[str, Any]) -> Iterator[str]:
    """Yield each way by which unreviewed code reaches a credential in a workflow of GitHub."""
    events = workflow["on"]
    unreviewed = "pull_request" in events
    yield from (f"the event {event} runs with the rights of main" for event in {*events} - {"pull_request"} - TRUSTED)
    if "push" in events and (events["push"] or {}).get("branches") != MAIN["branches"]:
        yield "a push to any branch runs it"
    if unreviewed and {*events} != {"pull_request"}:
        yield "a pull request shares a workflow with other events"
    if "secrets" in json.dumps({key: value for key, value in workflow.items() if key != "jobs"}):
        yield "all jobs have a secret"
    for name, job in workflow["jobs"].items():
        rights = {**(workflow.get("permissions") or {"all": "write"}), **job.get("permissions", {})}
        if rights != {"contents": "read"}:
            yield f"{name} may do more than read: {rights}"
        text = json.dumps(job)
        if unreviewed:
            yield from _of_unreviewed(name, job, text)
        elif "secrets" in text and "environment" not in job:
            yield f"{name} has a secret of the whole repository"


def _of_unreviewed(name: str, job: Mapping[str, Any], text: str) -> Iterator[str]:
    if re.search(r"secrets|github\.token|\bvars\b", text) or "environment" in job:
        yield f"{name} is given a credential"
    if job.get("runs-on") != HOSTED:
        yield f"{name} runs on a machine that others use"
    if "./" in " ".join(step.get("uses", "") for step in job.get("steps", [])) or "cache" in text:
        yield f"{name} leaves files for other jobs"


def gitlab_leaks(described: Mapping[str, Any]) -> Iterator[str]:
    """Yield each way by which unreviewed code reaches a credential in a file of GitLab."""
    if CREDENTIALS.search(json.dumps(described.get("variables"))) or "cache" in described.get("default", {}):
        yield "all jobs have a credential or a cache"
    for name in described.keys() - RESERVED:
        job = _whole(described, name)
        conditions = [rule.get("if", "") for rule in job.get("rules", [])] or [""]
        if name.startswith(".") or all(
            DEFAULT_BRANCH in condition and "||" not in condition for condition in conditions
        ):
            continue
        needs = {"environment", "secrets", "id_tokens", "cache", "identity", "resource_group"} & job.keys()
        if needs or CREDENTIALS.search(json.dumps(job)):
            yield f"{name} is given a credential or a cache: {sorted(needs)}"


def _whole(described: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a job with what it extends."""
    job = described[name]
    above = job.get("extends", [])
    parts = [_whole(described, item) for item in ([above] if isinstance(above, str) else above)]
    return {key: value for part in (*parts, job) for key, value in part.items()}


# The files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_unreviewed_code_reaches_no_credential_on_github(file: Any) -> None:
    assert [*github_leaks(loaded(file))] == []


def test_unreviewed_code_reaches_no_credential_on_gitlab() -> None:
    assert [*gitlab_leaks(loaded(GITLAB))] == []


def test_every_credential_is_of_an_environment() -> None:
    """That of a preview after approval, of a comparison, or of a deployment; none is of another stack."""
    named = set()
    for file in WORKFLOWS:
        for job in loaded(file)["jobs"].values():
            named |= {job.get("environment", "")}
    described = loaded(GITLAB)
    for name in described.keys() - RESERVED:
        environment = _whole(described, name).get("environment", {}).get("name", "")
        named |= {environment.replace("$STACK", "${{ matrix.stack }}")}
    kinds = ["", *(f"${{{{ matrix.stack }}}}{suffix}" for suffix in ("", "-drift", "-preview"))]
    assert sorted(named) == kinds


def test_a_live_preview_runs_the_commit_that_was_read_and_not_a_branch_that_moves() -> None:
    job = _job(loaded(CI / "github" / "workflows" / "live-preview.yml"))
    check, checkout, *_ = job["steps"]
    assert checkout["with"] == {"ref": "${{ inputs.commit }}", "persist-credentials": False}
    described = loaded(GITLAB)["live-preview"]
    for script in (check["run"], described["script"][0]):
        assert "[0-9a-f]{40}" in script


@pytest.mark.parametrize(
    ("commit", "status"),
    [("0123456789abcdef0123456789abcdef01234567", 0), ("main", 1), ("0" * 39, 1), ("", 1), ("0" * 40 + "\n; id", 1)],
)
def test_a_name_that_is_no_commit_is_refused(commit: str, status: int) -> None:
    job = _job(loaded(CI / "github" / "workflows" / "live-preview.yml"))
    for script in (job["steps"][0]["run"], loaded(GITLAB)["live-preview"]["script"][0]):
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script], env={**os.environ, "COMMIT": commit}, check=False
        )
        assert (done.returncode != 0) == bool(status)


def test_no_text_of_others_is_part_of_a_program() -> None:
    """Names of branches, titles and inputs come by the environment, where no shell reads them as code."""
    described = yaml.safe_load(PREPARE.read_text())
    steps = [*described["runs"]["steps"], *(step for file in WORKFLOWS for step in _steps(file))]
    assert [step for step in steps if "${{" in step.get("run", "") or "github-script" in step.get("uses", "")] == []
    scripts = [step.get("run", "") for step in steps]
    gitlab = loaded(GITLAB)
    for name in gitlab.keys() - RESERVED:
        scripts += [*gitlab[name].get("before_script", []), *gitlab[name].get("script", [])]
    for script in scripts:
        unquoted = re.sub(r'"[^"]*"', "", script)
        assert not re.search(r"\$\{?(?!PATH|HOME)[A-Z]", unquoted), script
        assert not re.search(r"\beval\b|\bgh api\b|--jq|sh -c|python3? -c", script), script


def _steps(file: Any) -> list[dict[str, Any]]:
    return [step for job in loaded(file)["jobs"].values() for step in job["steps"]]


# Files that hand a credential over are found --------------------------------------------------------------------------


def changed(given: Mapping[str, Any], change: Callable[[Any], object]) -> dict[str, Any]:
    other = copy.deepcopy(dict(given))
    change(other)
    return other


def _job(workflow: Any) -> Any:
    (job,) = workflow["jobs"].values()
    return job


SECRET = {"KEY": "${{ secrets.PULUMI_CONFIG_PASSPHRASE }}"}
OF_A_PULL_REQUEST: dict[str, Callable[[Any], object]] = {
    "a secret of the job": lambda given: _job(given).update(env=SECRET),
    "a secret of a step": lambda given: _job(given)["steps"][-1].update(env=SECRET),
    "a secret of an action": lambda given: _job(given)["steps"].append({"uses": "a/b@c", "with": SECRET}),
    "a secret of all jobs": lambda given: given.update(env=SECRET),
    "every secret": lambda given: _job(given)["steps"].append({"env": {"ALL": "${{ toJSON(secrets) }}"}}),
    "secrets of a called workflow": lambda given: given["jobs"].update(a={"uses": "./b.yml", "secrets": "inherit"}),
    "an environment": lambda given: _job(given).update(environment="prod-preview"),
    "the token": lambda given: _job(given).update(env={"GH_TOKEN": "${{ github.token }}"}),
    "a right to write": lambda given: _job(given).update(permissions={"pull-requests": "write"}),
    "a token of the cloud": lambda given: given.update(permissions={"contents": "read", "id-token": "write"}),
    "the default rights": lambda given: given.pop("permissions"),
    "a runner of one's own": lambda given: _job(given).update({"runs-on": ["self-hosted"]}),
    "a cache": lambda given: _job(given)["steps"].append({"uses": "actions/cache@c"}),
    "the base's rights": lambda given: given["on"].update(pull_request_target={}),
    "a comment's": lambda given: given["on"].update(issue_comment={}),
    "those of the run that follows": lambda given: given["on"].update(workflow_run={"workflows": ["preview"]}),
    "those of a push": lambda given: given["on"].update(push=MAIN),
}


@pytest.mark.parametrize("change", OF_A_PULL_REQUEST.values(), ids=OF_A_PULL_REQUEST.keys())
def test_a_workflow_that_hands_a_credential_to_a_pull_request_is_found(change: Callable[[Any], object]) -> None:
    preview = loaded(CI / "github" / "workflows" / "preview.yml")
    assert [*github_leaks(changed(preview, change))]


@pytest.mark.parametrize(
    "change",
    [
        lambda given: given["on"].update(push=None),
        lambda given: given["on"].update(push={"branches": ["**"]}),
        lambda given: given["on"].update(pull_request=MAIN),
        lambda given: _job(given).pop("environment"),
    ],
)
def test_a_deployment_that_other_branches_start_is_found(change: Callable[[Any], object]) -> None:
    deploy = loaded(CI / "github" / "workflows" / "deploy.yml")
    assert [*github_leaks(changed(deploy, change))]


OF_A_MERGE_REQUEST: dict[str, Callable[[Any], object]] = {
    "an environment": lambda given: given["preview"].update(environment={"name": "prod", "action": "access"}),
    "a variable": lambda given: given["preview"].update(variables={"KEY": "$PULUMI_CONFIG_PASSPHRASE"}),
    "a variable of all": lambda given: given["variables"].update(KEY="$KUBECONFIG"),
    "a use": lambda given: given["preview"]["script"].append('curl --header "$GITLAB_TOKEN"'),
    "a token of the cloud": lambda given: given["preview"].update(id_tokens={"A": {"aud": "b"}}),
    "a secret": lambda given: given["preview"].update(secrets={"A": {"vault": "b"}}),
    "a cache": lambda given: given["preview"].update(cache={"key": "a"}),
    "a cache of all": lambda given: given["default"].update(cache={"key": "a"}),
    "a job it extends": lambda given: given["preview"].update(extends=".deploy"),
    "the comment": lambda given: given.update(
        comment={**given["preview"], "environment": {"name": "comment"}, "script": ["python3 comment.py"]}
    ),
    "a deployment of any branch": lambda given: given["deploy-staging"].pop("rules"),
    "a comparison of any schedule": lambda given: given["drift"].update(
        rules=[{"if": '$CI_PIPELINE_SOURCE == "schedule"'}]
    ),
    "one branch or any": lambda given: given["drift"].update(
        rules=[{"if": f'{DEFAULT_BRANCH} || $CI_PIPELINE_SOURCE == "merge_request_event"'}]
    ),
}


@pytest.mark.parametrize("change", OF_A_MERGE_REQUEST.values(), ids=OF_A_MERGE_REQUEST.keys())
def test_a_file_that_hands_a_credential_to_a_merge_request_is_found(change: Callable[[Any], object]) -> None:
    assert [*gitlab_leaks(changed(loaded(GITLAB), change))]
