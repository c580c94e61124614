"""`soperator`: its commands, their help, and errors without a traceback."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from soperator_pulumi import __version__, cli
from tools import paths

PAGE = (paths.ROOT / "docs" / "command-line.md").read_text()


def run(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the command in a process of its own, as a shell does."""
    command = [sys.executable, "-m", "soperator_pulumi.cli", *words]
    settings = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(paths.ROOT), **environment}
    return subprocess.run(command, env=settings, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_an_example_that_its_parser_takes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = cli.load(name)
    with pytest.raises(SystemExit) as ended:
        cli.main([name, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert "example:\n  " in shown
    assert {0, 2} <= command.statuses.keys()
    assert all(f"  {status}  {meaning}" in shown for status, meaning in command.statuses.items())
    (line,) = re.findall(r"soperator [^|>)\"]+", command.example.format(name=name))
    cli.parser_of(name, command).parse_args(shlex.split(line)[2:])


def test_help_loads_neither_pulumi_nor_the_client_of_kubernetes() -> None:
    code = (
        "import sys; from soperator_pulumi import cli\ntry: cli.main([])\nfinally: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=paths.ROOT, capture_output=True, text=True, check=False)
    assert "soperator COMMAND" in done.stdout
    assert not {"pulumi", "kubernetes", "pydantic", "yaml"} & {*done.stderr.split()}


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"soperator {__version__}\n"


@pytest.mark.parametrize(("name", "hint"), [("statsu", 'Did you mean "status"?'), ("xyz", "Commands: preflight, ")])
def test_an_unknown_command_is_answered_with_those_that_there_are(
    name: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([name])
    assert ended.value.code == cli.EXIT_WRONG_USE
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["render", "missing.yaml"],
        ["preflight", "missing.yaml"],
        ["convert", "missing.yaml"],
        ["status", "-n", "hpc", "--kubeconfig", "missing"],
        ["nodes", "explain", "-n", "hpc", "--kubeconfig", "missing", "cpu-0"],
        ["ssh", "-n", "hpc", "--kubeconfig", "missing"],
        ["dumps", "list", "-n", "hpc", "--kubeconfig", "missing"],
        ["policy", "explain", "host-path"],
    ],
    ids=lambda words: words[0],
)
def test_a_mistake_is_reported_without_a_traceback(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) in {1, 2}
    shown = capsys.readouterr()
    assert shown.err.startswith("error: ")
    assert shown.out == ""


def test_a_reader_that_has_seen_enough_ends_the_command() -> None:
    line = f"{shlex.quote(sys.executable)} -m soperator_pulumi.cli completion bash | head -1"
    done = subprocess.run(["sh", "-c", line], cwd=paths.ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_without_pulumi_a_message_says_where_it_is_and_what_else_there_is(tmp_path: Path) -> None:
    done = run("up", "--stack", "prod", PATH=str(tmp_path))
    assert done.returncode == cli.EXIT_WRONG_USE
    assert "there is no `pulumi` on PATH" in done.stderr
    assert "make up" in done.stderr


@pytest.mark.parametrize("name", ["preview", "up", "refresh", "destroy"])
def test_pulumi_gets_the_stack_and_its_own_arguments_and_decides_the_exit_status(name: str, tmp_path: Path) -> None:
    fake = tmp_path / "pulumi"
    fake.write_text('#!/bin/sh\nfor word in "$@"; do echo "[$word]"; done\nexit 3\n')
    fake.chmod(0o755)
    done = run(name, "--stack", "prod", "--", "--yes", "--message", "two\nlines", PATH=f"{tmp_path}:/usr/bin:/bin")
    assert done.stdout == f"[{name}]\n[--stack]\n[prod]\n[--yes]\n[--message]\n[two\nlines]\n"
    assert done.returncode == 3


def test_the_page_has_a_row_for_each_command_and_its_examples_are_taken() -> None:
    rows = re.findall(r"(?m)^\| `(\w+)[^|]*` \|", PAGE)
    assert rows == [*cli.COMMANDS]
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL):
        for line in block.splitlines():
            _, name, *words = shlex.split(line.partition(" #")[0])
            cli.parser_of(name, cli.load(name)).parse_args(words)
