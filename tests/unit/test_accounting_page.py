"""The page on accounting: its descriptions are valid. Its commands and the page's priorities run on a cluster."""

import re

import pytest
import yaml

from soperator_pulumi.spec.cluster import parse_cluster
from tests.strategies import a_cluster
from tools import paths

PAGE = (paths.ROOT / "docs" / "accounting.md").read_text()
BLOCKS = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]


@pytest.mark.parametrize("block", BLOCKS)
def test_a_description_of_the_page_is_valid(block: dict[str, dict[str, dict[str, object]]]) -> None:
    described = block["config"]["soperator:cluster"]
    partitions = [partition["name"] for partition in described.get("partitions", [])]  # type: ignore[attr-defined]
    node_set = {"name": "cpu", "cpus": 4, "memory_gib": 8, "partitions": partitions or ["main"]}
    assert parse_cluster(a_cluster(**{"node_sets": [node_set], **described})).accounting
