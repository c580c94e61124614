"""docs/gpus.md shows what the package takes and prints, and names tests that exist."""

import re

import pytest
import yaml

from soperator_pulumi.policy.registry import POLICIES
from soperator_pulumi.policy.stack_rules import stack_rules
from soperator_pulumi.spec.cluster import parse_cluster
from soperator_pulumi.spec.gpus import GpusSpec
from tests.strategies import a_cluster
from tools import paths

PAGE = (paths.ROOT / "docs" / "gpus.md").read_text()
BLOCKS = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]


@pytest.mark.parametrize("node_sets", [block["node_sets"] for block in BLOCKS if "node_sets" in block], ids=str)
def test_every_node_set_can_stand_in_a_stack(node_sets: list[dict[str, object]]) -> None:
    cluster = parse_cluster(a_cluster(node_sets=node_sets), where="docs/gpus.md")
    assert cluster.node_sets[0].gpus == GpusSpec(count=8, type="h100")


def test_every_kind_of_gpus_is_one() -> None:
    declared = re.findall(r"\| `gpus: ({.*?})` \|", PAGE)
    found = [GpusSpec.model_validate(yaml.safe_load(item)).gres for item in declared]
    assert found == ["gpu:h100:8", "gpu:1g.10gb:56", "gpu:h100:7,gpu:1g.10gb:7", "gpu:l4:4,shard:32", "gpu:mi300x:8"]


def test_the_quota_is_a_setting_of_its_policy() -> None:
    (quota,) = [block["soperator:policy"] for block in BLOCKS if "soperator:policy" in block]
    rules = stack_rules(quota, "staging", POLICIES)
    assert rules.problems == ()


def test_the_reason_of_a_node_that_does_not_join_is_what_the_pod_says() -> None:
    (message,) = re.findall(r"```text\n(.*?)\n```", PAGE)
    script = (paths.ROOT / "images/worker/scripts/gpus.sh").read_text()
    said = re.sub(r'" \\\n\s*"', " ", script)
    for part in re.split(r"GPUs| 7|gpus\.count|: 8", message):
        assert part.strip() in said, part
