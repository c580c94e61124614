"""Backends of states: settings that reach the CLI, and refusals before and after it."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools import paths
from tools.console import UserError
from tools.engine import CliDeployer, DeployError, Target
from tools.engine.cli import recovery

S3 = "s3://state?endpoint=http://127.0.0.1:9&s3ForcePathStyle=true&region=eu-central-1"
LOCKED = """\
error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or delete the lock \
file with `pulumi cancel`.
  s3://state/.pulumi/locks/organization/p/prod/0.json: created by ann@runner-7 (pid 41) at 2026-11-22T20:00:00Z"""
PENDING = {
    "version": 3,
    "deployment": {
        "resources": [],
        "pending_operations": [
            {"type": "creating", "resource": {"urn": "urn:pulumi:prod::p::kubernetes:core/v1:Service::hpc-login"}}
        ],
    },
}


class StandIn:
    """A `pulumi` on PATH that writes down how it is called, and answers as it is told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._answers = folder / "answers"
        self._answers.mkdir()
        self.answer("version", "v3.260.0")
        self.answer("stack-export", '{"version": 3, "deployment": {}}')
        self.answer("stack-output", "{}")
        self.fail("stack-select", "error: no stack named 'prod' found")
        program = folder / "pulumi"
        program.write_text(f"""\
#!/bin/sh
test "$1" = --non-interactive && shift
env | grep ^PULUMI_ >> {folder}/variables
echo "$*" >> {folder}/calls
case "$*" in "stack init"*) rm {self._answers}/stack-select*;; esac
for words in {self._answers}/*; do
    name=$(basename $words | tr - ' ')
    case "$* " in "$name "*) test -e $words.fails && {{ cat $words.fails >&2; exit 255; }}; cat $words; exit 0;; esac
done
""")
        program.chmod(0o755)

    def answer(self, command: str, text: str) -> None:
        (self._answers / command).write_text(text)

    def fail(self, command: str, text: str) -> None:
        self.answer(command, "")
        (self._answers / f"{command}.fails").write_text(text)

    def calls(self, command: str) -> list[str]:
        lines = (self.folder / "calls").read_text().splitlines()
        return [line for line in lines if line.startswith(command)]

    def variables(self) -> set[str]:
        return set((self.folder / "variables").read_text().splitlines())


@pytest.fixture
def pulumi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    for name in [name for name in os.environ if name.startswith("PULUMI_")]:
        monkeypatch.delenv(name)
    (tmp_path / "bin").mkdir()
    stand_in = StandIn(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return stand_in


def deployer(folder: Path, **settings: Any) -> CliDeployer:
    """The deployer of a stack with these settings next to its configuration."""
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump({"name": "p", "runtime": "python"}))
    (folder / "Pulumi.prod.yaml").write_text(yaml.safe_dump({**settings, "config": {"p:a": 1}}))
    return CliDeployer(Target(project=folder, stack="prod", state=folder / "state"), lambda _: None)


def test_without_a_backend_of_the_user_s_the_state_is_in_the_folder_with_a_passphrase_of_its_own(
    pulumi: StandIn, tmp_path: Path
) -> None:
    deployer(tmp_path).outputs()

    assert f"PULUMI_BACKEND_URL=file://{tmp_path}/state/pulumi" in pulumi.variables()
    assert f"PULUMI_CONFIG_PASSPHRASE_FILE={tmp_path}/state/passphrase" in pulumi.variables()


def test_a_backend_of_the_user_s_is_taken_with_the_user_s_passphrase_alone(
    pulumi: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", S3)
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "of all")
    deployer(tmp_path).outputs()

    assert {f"PULUMI_BACKEND_URL={S3}", "PULUMI_CONFIG_PASSPHRASE=of all"} <= pulumi.variables()
    assert not any(variable.startswith("PULUMI_CONFIG_PASSPHRASE_FILE") for variable in pulumi.variables())


def test_a_backend_of_several_machines_needs_secrets_of_all_of_them(
    pulumi: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", S3)
    with pytest.raises(
        UserError, match=r"PULUMI_CONFIG_PASSPHRASE or .* in Pulumi.prod.yaml: `secretsprovider: awskms"
    ):
        deployer(tmp_path).outputs()
    assert not (pulumi.folder / "calls").exists()


def test_the_secrets_provider_of_a_stack_is_that_of_its_state(
    pulumi: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", S3)
    key = "awskms://alias/pulumi?region=eu-central-1"
    deployer(tmp_path, secretsprovider=key, encryptedkey="abc").outputs()

    assert [call for call in pulumi.calls("stack init") if f"--secrets-provider {key}" in call]
    config = yaml.safe_load((tmp_path / "state/pulumi-project/p/prod/config.yaml").read_text())
    assert (config["secretsprovider"], config["encryptedkey"]) == (key, "abc")


def test_pulumi_cloud_encrypts_by_itself(pulumi: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", "https://api.pulumi.com")
    deployer(tmp_path).outputs()

    assert pulumi.calls("stack output")


def test_a_lock_of_another_run_is_named_with_its_holder_and_with_the_command_that_frees_it(
    pulumi: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", S3)
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "of all")
    pulumi.fail("up", LOCKED)
    with pytest.raises(DeployError) as caught:
        deployer(tmp_path).up()

    assert str(caught.value) == (
        "up failed:\nanother run is at work on stack prod: process 41 of ann@runner-7, since 2026-11-22T20:00:00Z. "
        "Rerun when it has ended. If it was killed, free its lock: `pulumi cancel --stack prod`; then "
        "`make refresh STACK=prod` resolves what it has left."
    )


def test_operations_under_way_in_a_backend_of_several_machines_are_left_to_a_person(
    pulumi: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run may be at work elsewhere."""
    monkeypatch.setenv("PULUMI_BACKEND_URL", S3)
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "of all")
    pulumi.answer("stack-export", json.dumps(PENDING))
    with pytest.raises(
        UserError, match=r"under way: creating hpc-login\. .*`pulumi cancel --stack prod`, then `make ref"
    ):
        deployer(tmp_path).up()

    assert pulumi.calls("stack import") == []
    assert pulumi.calls("up") == []


def test_the_refusal_is_the_one_on_the_page() -> None:
    (block,) = re.findall(r"```text\n(.*?)\n```", (paths.ROOT / "docs" / "state.md").read_text(), re.DOTALL)
    lock = LOCKED.replace("ann@runner-7 (pid 41)", "ann@build-7 (pid 4711)")
    assert recovery.lock_of_another(lock, "prod") == block
    assert recovery.lock_of_another("error: no such stack", "prod") is None
