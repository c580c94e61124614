"""docs/placement.md shows node sets and settings that the package takes."""

import re

import pytest
import yaml

from soperator_pulumi.spec.cluster import parse_cluster
from tests.strategies import a_cluster
from tools import paths

PAGE = (paths.ROOT / "docs" / "placement.md").read_text()
BLOCKS = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]


@pytest.mark.parametrize("node_sets", [block["node_sets"] for block in BLOCKS if "all" not in str(block)], ids=str)
def test_every_node_set_with_numbers_has_a_layout(node_sets: list[dict[str, object]]) -> None:
    (node_set,) = parse_cluster(a_cluster(node_sets=node_sets), where="docs/placement.md").node_sets

    assert node_set.layout


def test_every_layout_of_the_table_is_one() -> None:
    rows = re.findall(r"\| `cpus: (\d+)`, (\d+), (\d+), (\d+) \|", PAGE)

    assert len(rows) == 3
    for cpus, sockets, cores, threads in rows:
        assert int(cpus) == int(sockets) * int(cores) * int(threads)


def test_every_setting_can_stand_in_the_spec() -> None:
    settings = [
        setting.split(": ") for setting in re.findall(r"(?m)^\| `(\w+: .*?)` \|", PAGE) if "cpus" not in setting
    ]

    assert len(settings) == 5
    for key, value in settings:
        parse_cluster(a_cluster(slurm={"extra": {key: value}}))
