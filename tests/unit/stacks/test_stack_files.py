"""The stacks' files, as the Pulumi CLI takes and changes them."""

from pathlib import Path

import pytest
import yaml

from tools import paths

FILES = sorted((paths.ROOT / "stacks").glob("Pulumi.*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_stack_s_file_holds_no_anchor_which_the_cli_would_write_out_when_it_adds_a_line(file: Path) -> None:
    events = [*yaml.parse(file.read_text())]
    assert not [event for event in events if isinstance(event, yaml.AliasEvent)]
    assert not [event for event in events if getattr(event, "anchor", None)]


def test_there_is_a_stack_of_each_environment() -> None:
    assert {file.name.split(".")[1] for file in FILES} == {"local", "dev", "staging", "prod"}
