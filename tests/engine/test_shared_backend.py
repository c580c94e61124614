"""States in a bucket that several machines share: the CLI works on them, the local engine refuses."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.engine.conftest import kill
from tests.engine.engines import PROGRAM
from tests.waiting import wait_until
from tools import engine as engines
from tools import paths
from tools.console import UserError
from tools.engine import CliDeployer, DeployError, StepOp, Target

pytestmark = pytest.mark.engine

BUCKET = "my-states"
BEGIN, RECOVER = re.findall(r"```sh\n(.*?)```", (paths.ROOT / "docs" / "state.md").read_text(), re.DOTALL)
"""Commands of the page: to begin with a bucket, and to recover from a killed run."""


class Team:
    """Machines that share a project, a bucket of S3 for its states, and the passphrase of these."""

    def __init__(self, server: str, folder: Path) -> None:
        self.folder = folder
        self.project = shutil.copytree(PROGRAM, folder / "project")
        self.passphrase = folder / ".config" / "pulumi" / "passphrase"
        self.passphrase.parent.mkdir(parents=True)
        self.passphrase.write_text("of the whole team")
        self.backend = f"s3://{BUCKET}?endpoint={server}&s3ForcePathStyle=true&region=eu-central-1"
        self._client: Any = boto3.client("s3", endpoint_url=server, region_name="us-east-1")
        self._client.create_bucket(Bucket=BUCKET)
        (folder / "things").mkdir()

    def target(self, stack: str, machine: str, **properties: str) -> Target:
        """A stack of one thing, as it is deployed from a machine."""
        properties = {"folder": str(self.folder / "things"), **properties}
        options = {"additional_secret_outputs": ["made"]}
        thing = {"name": stack, "type": "Thing", "properties": properties, "options": options}
        config = {"declared:resources": [thing], "declared:exports": {"key": {"from": f"{stack}.made"}}}
        return Target(project=self.project, stack=stack, state=self.folder / machine, config=config)

    def deployer(self, stack: str, machine: str, **properties: str) -> CliDeployer:
        return CliDeployer(self.target(stack, machine, **properties), lambda _: None)

    def start(self, stack: str, machine: str, **properties: str) -> "subprocess.Popen[str]":
        """Begin an `up` that ends when `hold-update-<stack>` is gone, and wait until it is at work."""
        (self.folder / "things" / f"hold-update-{stack}").touch()
        target = self.target(stack, machine, **properties)
        given = {"engine": "pulumi", "operation": "up", "stack": stack, "state": str(target.state)}
        given["project"] = str(self.project)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.engine.run", json.dumps({**given, "config": target.config})],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        log = self.folder / "things" / "log"
        wait_until(lambda: f"holding update {stack}" in log.read_text(), "the update has begun")
        return process

    def shell(self, commands: str) -> None:
        """Run commands of the page as a person does, in the project's folder."""
        commands = commands.replace("s3://my-states?region=eu-central-1", self.backend)
        environment = {**os.environ, "HOME": str(self.folder), "PULUMI_HOME": str(self.folder / "pulumi-home")}
        subprocess.run(["sh", "-e", "-c", commands], env=environment, cwd=self.project, check=True)

    def objects(self, prefix: str) -> list[str]:
        listed = self._client.list_objects_v2(Bucket=BUCKET, Prefix=f".pulumi/{prefix}")
        return [content["Key"] for content in listed.get("Contents", [])]

    def content(self, key: str) -> str:
        return bytes(self._client.get_object(Bucket=BUCKET, Key=key)["Body"].read()).decode()


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[Team]:
    caplog.set_level("WARNING", "werkzeug")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        team = Team(f"http://{host}:{port}", tmp_path)
        monkeypatch.setenv("PULUMI_BACKEND_URL", team.backend)
        monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", str(team.passphrase))
        yield team
    finally:
        server.stop()


def cli(team: Team) -> None:
    the_page_s_commands_make_a_stack_whose_file_has_what_all_need(team)
    two_stacks_are_in_the_bucket_and_their_secrets_encrypted(team)
    another_machine_finds_them_as_they_are(team)
    process = team.start("prod", "ann", size="2")
    a_run_at_work_is_left_alone(team)
    kill(process)
    a_killed_run_leaves_its_lock_which_a_person_frees(team)
    what_it_has_left_is_resolved(team)


def the_page_s_commands_make_a_stack_whose_file_has_what_all_need(team: Team) -> None:
    team.shell(BEGIN)
    assert "encryptionsalt: " in (team.project / "Pulumi.prod.yaml").read_text()


def two_stacks_are_in_the_bucket_and_their_secrets_encrypted(team: Team) -> None:
    for stack in ("dev", "prod"):
        team.deployer(stack, "ann", size="1").up()

    states = [key for key in team.objects("stacks/declared/") if key.endswith(".json")]
    assert [Path(key).stem for key in states] == ["dev", "prod"]
    assert all(f"{Path(key).stem}-made" not in team.content(key) for key in states)


def another_machine_finds_them_as_they_are(team: Team) -> None:
    assert team.deployer("prod", "bob").outputs() == {"key": "prod-made"}
    assert team.deployer("prod", "bob", size="1").preview().changed == ()


def a_run_at_work_is_left_alone(team: Team) -> None:
    with pytest.raises(UserError, match=r"operations under way: updating prod.*`pulumi cancel --stack prod`"):
        team.deployer("prod", "bob", size="3").up()
    with pytest.raises(DeployError, match=r"another run is at work on stack prod: process \d+ of .*`pulumi cancel"):
        team.deployer("prod", "bob", size="3").refresh()
    assert team.deployer("dev", "bob", size="1").up().changed == (), "another stack has a lock of its own"


def a_killed_run_leaves_its_lock_which_a_person_frees(team: Team) -> None:
    (team.folder / "things" / "hold-update-prod").unlink()
    assert len(team.objects("locks/organization/declared/prod/")) == 1
    with pytest.raises(DeployError, match="another run is at work"):
        team.deployer("prod", "bob", size="2").refresh()

    team.shell(RECOVER.splitlines()[0])

    assert team.objects("locks/") == []


def what_it_has_left_is_resolved(team: Team) -> None:
    assert RECOVER.splitlines()[1:] == ["make refresh STACK=prod", "make up STACK=prod"]
    team.deployer("prod", "bob", size="2").refresh()
    assert team.deployer("prod", "bob", size="2").up().names(StepOp.UPDATE) == {"prod"}
    assert team.deployer("prod", "ann", size="2").preview().changed == ()


def local(team: Team) -> None:
    with pytest.raises(UserError, match=r"PULUMI_BACKEND_URL is set.* Install the Pulumi CLI, or unset the variable"):
        engines.choose(PROGRAM, "dev", team.folder / "ann")


STORIES: dict[str, Callable[[Team], None]] = {"pulumi": cli, "local": local}


def test_machines_that_share_a_bucket_share_its_states_and_locks(
    engine: str, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "local":
        monkeypatch.setenv("PATH", "/usr/bin:/bin")
    STORIES[engine](team)
