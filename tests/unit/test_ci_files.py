"""Workflow files for users: valid, of few rights, and made of the commands that the other tests run."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from tools import paths, review

CI = paths.ROOT / "ci"
WORKFLOWS = sorted((CI / "github" / "workflows").glob("*.yml"))
PREPARE = CI / "github" / "actions" / "prepare" / "action.yml"
GITLAB = CI / "gitlab" / "gitlab-ci.yml"
COMMANDS = {
    "preview": 'make --silent review STACK="$STACK" POLICY=policy > review.md',
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
        run = [line.partition(" | ")[0] for line in commands if line.startswith("make ")]
        assert run == [COMMANDS[file.stem]]


def test_gitlab_runs_the_same_commands() -> None:
    described = loaded(GITLAB)
    assert {name: described[name]["script"] for name in ("preview", "drift", ".deploy")} == {
        "preview": [COMMANDS["preview"].replace("review.md", '"review-$STACK.md"')],
        "drift": [COMMANDS["drift"]],
        ".deploy": [COMMANDS["deploy"]],
    }


def test_every_command_is_a_target_of_make() -> None:
    targets = set(re.findall(r"(?m)^([\w./]+):", (paths.ROOT / "Makefile").read_text()))
    text = "".join(file.read_text() for file in (*WORKFLOWS, PREPARE, GITLAB))
    called = set(re.findall(r"make (?:--silent )?([\w./]+)", text))
    assert {"review", "up", "drift", ".venv/.installed"} == called - {"and"}
    assert called - {"and"} <= targets


def test_the_page_s_commands_put_the_files_where_they_are_looked_for(tmp_path: Path) -> None:
    page = (paths.ROOT / "docs" / "ci.md").read_text()
    (tmp_path / "ci").symlink_to(CI)
    for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL):
        subprocess.run(["sh", "-e", "-c", block], cwd=tmp_path, check=True)
    copied = tmp_path / ".github"
    assert sorted(each.name for each in (copied / "workflows").iterdir()) == [file.name for file in WORKFLOWS]
    for folder in re.findall(r"uses: \./(.*)", "".join(file.read_text() for file in WORKFLOWS)):
        assert (tmp_path / folder / "action.yml").exists()
    assert (tmp_path / ".gitlab-ci.yml").read_text() == GITLAB.read_text()
    targets = set(re.findall(r"(?m)^([\w./]+):", (paths.ROOT / "Makefile").read_text()))
    assert {"review", "up", "drift", "refresh"} <= set(re.findall(r"make ([\w-]+)", page)) <= targets


def test_both_deploy_the_same_stacks_in_the_same_order() -> None:
    stacks = {tuple(job["strategy"]["matrix"]["stack"]) for file in WORKFLOWS for job in jobs(file).values()}
    described = loaded(GITLAB)
    parallel = {tuple(described[name]["parallel"]["matrix"][0]["STACK"]) for name in ("preview", "drift")}
    deployed = tuple(each["variables"]["STACK"] for name, each in described.items() if name.startswith("deploy-"))
    assert stacks == parallel == {deployed}
    assert all((paths.ROOT / "stacks" / f"Pulumi.{stack}.yaml").exists() for stack in deployed)


def test_actions_are_pinned_by_commit_and_name_their_version() -> None:
    used = re.findall(r"uses: (.*)", "".join(file.read_text() for file in (*WORKFLOWS, PREPARE)))
    others = [each for each in used if not each.startswith("./")]
    assert len(others) == 5
    assert [each for each in others if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+.*", each)] == []


def test_workflows_have_no_more_rights_than_they_use() -> None:
    for file in WORKFLOWS:
        assert loaded(file)["permissions"] == {"contents": "read"}
        for job in jobs(file).values():
            more = {"contents": "read", "pull-requests": "write"} if file.stem == "preview" else None
            assert job.get("permissions") == more
        (checkout,) = [step for step in steps(file) if step.get("uses", "").startswith("actions/checkout@")]
        assert checkout["with"] == {"persist-credentials": False}


def test_secrets_reach_commands_by_the_environment_alone() -> None:
    for file in (*WORKFLOWS, PREPARE):
        scripts = loaded(file)["runs"]["steps"] if file == PREPARE else steps(file)
        for step in scripts:
            assert "${{" not in step.get("run", "")
            assert "secrets." not in json.dumps([step.get("with"), step.get("env")])


def test_a_fork_s_program_sees_no_credentials() -> None:
    assert "pull_request_target" not in "".join(file.read_text() for file in WORKFLOWS)
    (job,) = jobs(CI / "github" / "workflows" / "preview.yml").values()
    assert job["if"] == "github.event.pull_request.head.repo.full_name == github.repository"
    described = loaded(GITLAB)
    (rule,) = described[".of-this-project"]["rules"]
    assert rule["if"].endswith("&& $CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID")
    assert all(".of-this-project" in described[name]["extends"] for name in ("preview", "comment"))


def test_no_code_of_a_merge_request_runs_beside_the_token_that_comments() -> None:
    described = loaded(GITLAB)
    assert "GITLAB_TOKEN" not in json.dumps({name: each for name, each in described.items() if name != "comment"})
    assert described["comment"]["variables"] == {"GIT_STRATEGY": "none"}
    assert "ref=$CI_DEFAULT_BRANCH" in described["comment"]["script"][0]
    assert described["comment"]["environment"]["name"] != described["preview"]["environment"]["name"]


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
    waits: list[str] = [each["drain"]["max_wait"] for each in node_sets]
    return max(waits, key=lambda days: int(days.removesuffix("d")))


def test_the_installed_versions_are_those_that_the_package_takes() -> None:
    texts = [PREPARE.read_text(), GITLAB.read_text()]
    (version,) = {version for text in texts for version in re.findall(r"(?i)pulumi[-_]version: \"?([\d.]+)", text)}
    minimum = re.search(r'"pulumi>=3\.(\d+),<4"', (paths.ROOT / "pyproject.toml").read_text())
    assert minimum
    assert int(version.split(".")[1]) >= int(minimum[1])
    assert 'python-version: "3.11"' in texts[0]
    assert "image: python:3.11" in texts[1]


# Comments -------------------------------------------------------------------------------------------------------------


def a_gh(folder: Path, former: str) -> dict[str, str]:
    """Put a `gh` on PATH that lists one comment and writes down what it is called with."""
    program = folder / "bin" / "gh"
    program.parent.mkdir()
    log = folder / "log"
    program.write_text(f'#!/bin/sh\necho "$*" >> {log}\ncase "$*" in *--paginate*) echo "{former}" ;; esac\n')
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    return {"PATH": path, "GITHUB_REPOSITORY": "acme/hpc", "NUMBER": "7"}


@pytest.mark.parametrize(
    ("former", "call"),
    [
        ("", "api --method POST repos/acme/hpc/issues/7/comments --field body=@review.md"),
        ("4711", "api --method PATCH repos/acme/hpc/issues/comments/4711 --field body=@review.md"),
    ],
    ids=["the first one", "again"],
)
def test_github_gets_one_comment_for_each_stack(tmp_path: Path, former: str, call: str) -> None:
    (tmp_path / "review.md").write_text(f"{review.mark('prod')}\n\n## Preview\n")
    done = comment_on_github(tmp_path, a_gh(tmp_path, former))
    assert done.returncode == 0, done.stderr
    asked, told = (tmp_path / "log").read_text().splitlines()
    assert f'startswith("{review.mark("prod")}")' in asked
    assert told == call


def test_github_gets_no_comment_where_there_is_no_page(tmp_path: Path) -> None:
    (tmp_path / "review.md").touch()
    assert comment_on_github(tmp_path, a_gh(tmp_path, "")).returncode == 0
    assert not (tmp_path / "log").exists()


def comment_on_github(folder: Path, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run the workflow's step as a runner does."""
    (step,) = [step for step in steps(CI / "github" / "workflows" / "preview.yml") if step.get("name") == "Comment"]
    return subprocess.run(
        ["bash", "-e", "-c", step["run"]], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


class _Notes(BaseHTTPRequestHandler):
    """The notes of a merge request, a hundred a page, and what was written to them."""

    notes: list[dict[str, Any]]
    written: list[tuple[str, str, dict[str, Any]]]

    def do_GET(self) -> None:
        assert self.headers["PRIVATE-TOKEN"] == "glpat-x"
        page = int(re.findall(r"&page=(\d+)", self.path)[0])
        self._answer(self.notes[(page - 1) * 100 : page * 100])

    def do_POST(self) -> None:
        self._write()

    def do_PUT(self) -> None:
        self._write()

    def _write(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.written.append((self.command, self.path, body))
        self._answer({})

    def _answer(self, content: object) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def log_message(self, *_: object) -> None:
        """Nothing: a test's output is for the test."""


@pytest.fixture
def gitlab() -> Iterator[HTTPServer]:
    _Notes.notes, _Notes.written = [], []
    with HTTPServer(("127.0.0.1", 0), _Notes) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def note_on_gitlab(server: HTTPServer, page: Path) -> "subprocess.CompletedProcess[str]":
    environment = {
        "CI_API_V4_URL": f"http://127.0.0.1:{server.server_port}/api/v4",
        "CI_PROJECT_ID": "3",
        "CI_MERGE_REQUEST_IID": "7",
        "GITLAB_TOKEN": "glpat-x",
    }
    command = [sys.executable, str(CI / "gitlab" / "comment.py"), str(page)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_gitlab_gets_a_note_and_then_the_same_one_again(gitlab: HTTPServer, tmp_path: Path) -> None:
    page = tmp_path / "review.md"
    page.write_text(f"{review.mark('prod')}\n\nnew\n")
    notes = "/api/v4/projects/3/merge_requests/7/notes"
    assert note_on_gitlab(gitlab, page).returncode == 0
    _Notes.notes = [{"id": number, "body": "talk"} for number in range(150)]
    _Notes.notes[120] = {"id": 120, "body": f"{review.mark('prod')}\n\nold"}
    assert note_on_gitlab(gitlab, page).returncode == 0
    assert _Notes.written == [
        ("POST", notes, {"body": page.read_text()}),
        ("PUT", f"{notes}/120", {"body": page.read_text()}),
    ]


def test_gitlab_gets_no_note_where_there_is_no_page(gitlab: HTTPServer, tmp_path: Path) -> None:
    page = tmp_path / "review.md"
    page.touch()
    done = note_on_gitlab(gitlab, page)
    assert done.returncode == 1
    assert "There is no page" in done.stderr
    assert _Notes.written == []
