"""The project's files, and the engine that is chosen for it."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from pulumi.runtime.proto import resource_pb2

from tools import engine
from tools.console import UserError
from tools.engine import project
from tools.engine.local import resource_registration
from tools.engine.protocol import Target


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "Pulumi.yaml", name="p", runtime="python", stackConfigDir="stacks")
    write(tmp_path, "stacks/Pulumi.dev.yaml", config={"a": 1, "other:b": {"c": [True]}, "p:d": "text"})
    return tmp_path


def write(folder: Path, name: str, /, **content: Any) -> None:
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(yaml.safe_dump(content))


def target(folder: Path, stack: str = "dev", **config: object) -> Target:
    return Target(project=folder, stack=stack, state=folder / "state", config=config)


def test_configuration_has_full_keys_and_texts(folder: Path) -> None:
    found = project.load(target(folder))
    assert found.config == {"p:a": "1", "other:b": '{"c": [true]}', "p:d": "text"}


def test_defaults_come_before_the_stacks_values_and_those_before_the_callers(folder: Path) -> None:
    declared = {"a": {"default": 0}, "e": {"type": "string", "default": "x"}, "f": {"type": "string"}, "g": "plain"}
    write(folder, "Pulumi.yaml", name="p", runtime="python", stackConfigDir="stacks", config=declared)
    found = project.load(target(folder, **{"p:d": "mine"}))
    assert (found.config["p:a"], found.config["p:e"], found.config["p:g"], found.config["p:d"]) == (
        "1",
        "x",
        "plain",
        "mine",
    )
    assert "p:f" not in found.config


def test_values_are_read_as_yaml_1_2_as_pulumi_does(folder: Path) -> None:
    (folder / "stacks" / "Pulumi.dev.yaml").write_text("""\
base: &base {k: 1}
config:
  p:value:
    texts: [12:00:00, yes, no, on, off, 2026-11-21, 1_000, "1", 0x, .]
    numbers: [12, -3, 007, 0o17, 0x1f, 1.5, 1e3, .5]
    switches: [true, False]
    nothing: [null, ~, ]
    empty:
    merged: {<<: *base, l: 2}
""")
    assert json.loads(project.load(target(folder)).config["p:value"]) == {
        "texts": ["12:00:00", "yes", "no", "on", "off", "2026-11-21", "1_000", "1", "0x", "."],
        "numbers": [12, -3, 7, 15, 31, 1.5, 1000.0, 0.5],
        "switches": [True, False],
        "nothing": [None, None],
        "empty": None,
        "merged": {"k": 1, "l": 2},
    }


def test_the_interpreter_is_that_of_the_projects_environment(folder: Path) -> None:
    assert project.load(target(folder)).python == Path(sys.executable)
    write(
        folder,
        "Pulumi.yaml",
        name="p",
        stackConfigDir="stacks",
        runtime={"name": "python", "options": {"virtualenv": "v"}},
    )
    assert project.load(target(folder)).python == Path(sys.executable), "as long as that is not there"
    python = folder / "v" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    assert project.load(target(folder)).python == python


def test_the_program_may_lie_in_a_folder_below(folder: Path) -> None:
    write(folder, "Pulumi.yaml", name="p", runtime="python", main="stacks/")
    write(folder, "Pulumi.dev.yaml", config={})
    assert project.load(target(folder)).program == folder / "stacks"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name: p\nruntime: nodejs", "runtime 'nodejs' is not supported"),
        ("runtime: python", "`name` is missing"),
        ("a: [b", "is not YAML"),
        (f"a: {'[' * 3000}{']' * 3000}", "is not YAML"),
        ("- list", "expected keys and values"),
    ],
)
def test_a_wrong_project_file_is_named_with_what_is_wrong(folder: Path, content: str, message: str) -> None:
    (folder / "Pulumi.yaml").write_text(content)
    with pytest.raises(UserError, match=message) as caught:
        project.load(target(folder))
    assert str(folder / "Pulumi.yaml") in str(caught.value)


def test_a_stack_without_a_file_needs_the_callers_configuration(folder: Path) -> None:
    with pytest.raises(UserError, match=r"Pulumi.none.yaml does not exist"):
        project.load(target(folder, "none"))
    assert project.load(target(folder, "none", **{"p:a": 1})).config == {"p:a": "1"}


def a_command(folder: Path) -> Path:
    command = folder / "bin" / "pulumi"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    return command


def test_the_cli_is_chosen_where_it_is_on_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = a_command(folder)
    monkeypatch.setenv("PATH", str(command.parent))
    deployer, why = engine.choose(folder, "dev", folder / "state")
    assert isinstance(deployer, engine.CliDeployer)
    assert str(command) in why


def test_the_local_engine_is_chosen_where_the_cli_is_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    deployer, why = engine.choose(folder, "dev", folder / "state")
    assert isinstance(deployer, engine.LocalDeployer)
    assert "no `pulumi` on PATH" in why


def test_a_backend_of_the_user_s_is_not_for_the_local_engine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("PULUMI_BACKEND_URL", "s3://state")
    with pytest.raises(UserError, match=r"PULUMI_BACKEND_URL is set.* Install the Pulumi CLI, or unset the variable"):
        engine.choose(folder, "dev", folder / "state")
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{folder}/state/pulumi")
    assert isinstance(engine.choose(folder, "dev", folder / "state")[0], engine.LocalDeployer), "that is `make env`'s"


def test_what_the_local_engine_has_begun_it_continues_with(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(a_command(folder).parent))
    file = folder / "state" / "local" / "p" / "dev.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"resources": [{}]}))
    deployer, why = engine.choose(folder, "dev", folder / "state")
    assert isinstance(deployer, engine.LocalDeployer)
    assert "deployed this stack before" in why


def test_a_plain_cli_is_pointed_at_the_same_state(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PULUMI_")]:
        monkeypatch.delenv(name)
    variables = engine.cli_environment(folder / "state")
    assert variables == {
        "PULUMI_BACKEND_URL": f"file://{folder}/state/pulumi",
        "PULUMI_CONFIG_PASSPHRASE_FILE": f"{folder}/state/passphrase",
    }
    monkeypatch.setenv("PULUMI_BACKEND_URL", "s3://own")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "own")
    assert engine.cli_environment(folder / "state") == {}


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("1h30m", 5400), ("1.5s", 1.5), ("250ms", 0.25), ("", 0)])
def test_timeouts_are_read_as_go_writes_them(text: str, seconds: float) -> None:
    request = resource_pb2.RegisterResourceRequest(type="t", name="n")
    request.customTimeouts.create = text
    assert resource_registration.read_registration(request).timeouts.create == seconds


@pytest.mark.parametrize("text", ["90", "s", "1d", "1h 2m"])
def test_other_timeouts_are_refused(text: str) -> None:
    request = resource_pb2.RegisterResourceRequest(type="t", name="n")
    request.customTimeouts.update = text
    with pytest.raises(UserError, match="is not a duration"):
        resource_registration.read_registration(request)
