"""Examples of docs/jail.md: the package takes them, and the jail's programs do as shown."""

import re

import pytest
import yaml

from jail_tools.switching import changes
from soperator_pulumi.spec.cluster import parse_cluster
from tools import paths

PAGE = (paths.ROOT / "docs" / "jail.md").read_text()
YOUR_CLUSTER = (paths.ROOT / "docs" / "your-cluster.md").read_text()


def examples() -> list[str]:
    """Return all blocks of a stack's configuration."""
    return re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("example", examples())
def test_every_example_can_stand_in_a_stack(example: str) -> None:
    stack = re.findall(r"```yaml\n(.*?)```", YOUR_CLUSTER, re.DOTALL)[0]
    cluster = yaml.safe_load(stack)["config"]["soperator:cluster"]
    others = yaml.safe_load(example)
    said = others.pop("jail")
    cluster |= {**others, "jail": {"source": {"image": "debian:13"}, **said}}

    jail = parse_cluster(cluster, where="docs/jail.md").jail

    assert said.keys() <= jail.model_fields_set


def test_every_path_that_is_not_compared_is_named() -> None:
    section = PAGE.split("These are neither compared nor carried over:\n", 1)[1].split("\n## ", 1)[0]

    assert set(re.findall(r"`([^`]+)`", section)) == changes.LEFT_OUT | changes.LEFT_OUT_NAMES


def test_every_message_that_is_explained_is_one() -> None:
    """Each phrase between the parts that vary stands in the source."""
    sources = [paths.ROOT / "images/jail-tools/jail_tools", paths.ROOT / "soperator_pulumi/lifecycle"]
    said = "".join(path.read_text() for source in sources for path in source.rglob("*.py"))
    spoken = re.sub(r'"\s*\n\s*f?"', "", said)
    table = PAGE.split("## When something is wrong", 1)[1]
    messages = re.findall(r"(?m)^\| `([^`]+)` \|", table)

    assert messages
    for message in messages:
        for phrase in filter(None, (part.strip(" ,.") for part in message.split("..."))):
            assert phrase in spoken, phrase
