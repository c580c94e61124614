"""docs/accounting-backup.md: its fields, its commands and the names in it are those of the code."""

import argparse
import re
import shlex

import pytest
import yaml

from soperator_pulumi import cli
from soperator_pulumi.cli import dumps
from soperator_pulumi.operations.configuration.concealed import changed_keys
from soperator_pulumi.operations.database import restore
from soperator_pulumi.render import layout
from soperator_pulumi.spec.accounting import AccountingSpec
from tools import paths

PAGE = (paths.ROOT / "docs" / "accounting-backup.md").read_text()
COMMANDS = re.findall(r"soperator dumps [^`\n]+", PAGE)


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_fields_are_those_of_accounting() -> None:
    given = [yaml.safe_load(block)["config"]["soperator:cluster"]["accounting"] for block in blocks("yaml")]
    password, dump = (AccountingSpec.model_validate(item) for item in given)
    assert password.own is not None
    assert password.own.password_version == 2
    assert dump.dump is not None
    assert dump.dump == type(dump.dump)(), "the page shows the defaults"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_are_taken(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    carried_out = []

    def carry_out(given: argparse.Namespace, _kube: object) -> int:
        carried_out.append(given.command)
        return 0

    monkeypatch.setattr(dumps, "Cluster", lambda _access: None)
    monkeypatch.setattr(dumps, "carry_out", carry_out)
    assert cli.main(shlex.split(command)[1:]) == 0
    assert carried_out == [command.split()[2]]


def test_every_command_is_on_the_page() -> None:
    assert {command.split()[2] for command in COMMANDS} == {"list", "make", "restore", "forget"}


def test_the_preview_is_what_is_shown() -> None:
    (shown,) = blocks("text")
    old, new = ({"slurmdbd.conf": f"StoragePass={password}\n"} for password in ("a", "b"))
    assert shown.splitlines()[1:] == [*changed_keys("slurmdbd-config", old, new)]


def test_names_of_objects_are_those_of_the_code() -> None:
    for name in (restore.REPLACED, layout.DUMP_COMPONENT, layout.DUMPS_CLAIM):
        assert f"`{name}`" in PAGE
