"""The stacks' files, as the Pulumi CLI takes and changes them."""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tools import paths

FILES = sorted((paths.ROOT / "stacks").glob("Pulumi.*.yaml"))
EXAMPLES = sorted((paths.ROOT / "examples").rglob("Pulumi*.yaml"))
RECIPES = sorted((paths.ROOT / "stacks" / "recipes").glob("*.yaml"))
SITES = sorted((paths.ROOT / "stacks" / "sites").glob("*.yaml"))
PAGES = [paths.ROOT / "README.md", *sorted((paths.ROOT / "docs").glob("*.md"))]

KEPT = re.compile(r"null|true|false|-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?")
"""Values that are no text, in the one form that the CLI writes."""

NOT_TEXT = re.compile(
    r"""
    ~|Null|NULL|True|TRUE|False|FALSE|<<
    |[yYnN]|[yY]es|YES|[nN]o|NO|[oO]n|ON|[oO]ff|OFF
    |[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)
    |[-+]?0[xX][0-9a-fA-F_]+|[-+]?0[bBoO]?[0-7_]+
    |[-+]?(\.[0-9_]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?
    |[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?
    |[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?
    """,
    re.VERBOSE,
)
"""Texts that Go's yaml.v3, the writer of the CLI, quotes everywhere: its `resolve`, `isOldBool` and `isBase60Float`."""


def written_otherwise(text: str) -> Iterator[str]:
    """Yield the plain values that the CLI changes when it adds a line to a file, each after the number of its line.

    yaml.v3 quotes every text with a colon within `{}` and `[]` (`yaml_emitter_analyze_scalar`).
    """
    flow_depth = 0
    for event in yaml.parse(text):
        match event:
            case yaml.CollectionStartEvent():
                flow_depth += bool(flow_depth or event.flow_style)
            case yaml.CollectionEndEvent():
                flow_depth = max(0, flow_depth - 1)
            case yaml.ScalarEvent(value=value, start_mark=yaml.Mark(line=line)) if event.implicit[0]:
                changed = NOT_TEXT.fullmatch(value) and not KEPT.fullmatch(value)
                if changed or (flow_depth and (":" in value or not value)):
                    yield f"{line + 1}: {value}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_stack_s_file_holds_no_anchor_which_the_cli_would_write_out_when_it_adds_a_line(file: Path) -> None:
    events = [*yaml.parse(file.read_text())]
    assert not [event for event in events if isinstance(event, yaml.AliasEvent)]
    assert not [event for event in events if getattr(event, "anchor", None)]


@pytest.mark.parametrize(
    "file", [*FILES, *EXAMPLES, *RECIPES, *SITES], ids=lambda file: str(file.relative_to(paths.ROOT))
)
def test_the_cli_keeps_every_value_of_a_file_as_it_is_written(file: Path) -> None:
    assert [*written_otherwise(file.read_text())] == []


@pytest.mark.parametrize("file", [*FILES, *EXAMPLES], ids=lambda file: str(file.relative_to(paths.ROOT)))
def test_a_value_of_the_configuration_that_has_no_parts_is_a_text_as_the_cli_writes_it(file: Path) -> None:
    config = yaml.safe_load(file.read_text()).get("config", {})
    assert {key: value for key, value in config.items() if not isinstance(value, str | dict | list)} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_shows_yaml_as_the_cli_writes_it(page: Path) -> None:
    blocks = re.findall(r"(?ms)^ *```yaml\n(.*?)^ *```", page.read_text())
    assert [text for block in blocks for text in written_otherwise(textwrap.dedent(block))] == []


@pytest.mark.parametrize(
    "value",
    [
        *("7-00:00:00", "registry.example.com/root:1", "12:30:00", "2026-11-01", "2026-11-01 10:00:00"),
        *("0755", "0o755", "0x1F", "1_000", "1e3", "1.50", "+5", ".inf", "yes", "off", "y", "True", "~"),
    ],
)
def test_a_value_that_the_cli_would_quote_or_change_is_found(value: str) -> None:
    assert [*written_otherwise(f"a: {{b: {value}, c: 10.0.0.0/8, d: 24.11, e: 8d, f: '{value}'}}")] == [f"1: {value}"]


def test_a_time_limit_is_plain_outside_of_a_mapping_on_one_line() -> None:
    assert [*written_otherwise("MaxTime: 7-00:00:00\nimage: registry.example.com/root:1\nspare: 12:30:00")] == [
        "3: 12:30:00"
    ]


def test_there_is_a_stack_of_each_environment() -> None:
    assert {file.name.split(".")[1] for file in FILES} == {"local", "dev", "staging", "prod"}
