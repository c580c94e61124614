"""The page on long checks: its table, its example, its reason."""

import json
import re

import yaml

from long_checks.job_reading import Reading
from long_checks.long_settings import parse_long
from long_checks.measuring import judge
from soperator_pulumi.render.long_checks import enabled_checks, long_check_files
from soperator_pulumi.spec.long_checks import LONG_DEFAULTS, LongCheck
from tests.rendered.cluster.clusters import a_node_set
from tests.strategies import a_spec
from tools.docs import long_page

PAGE = long_page.FILE.read_text()


def test_the_table_of_checks_is_that_of_the_sources() -> None:
    assert long_page.text() == PAGE, "run `make docs`"
    assert re.findall(r"(?m)^\| `(\w+)` \| .*\|$", PAGE) == [*LONG_DEFAULTS]


def test_the_example_is_valid_and_gives_settings_that_the_program_takes() -> None:
    text, *_ = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    spec = a_spec(health=yaml.safe_load(text)["config"]["soperator:cluster"]["health"])
    files = {name: parse_long(content) for name, content in long_check_files(spec).items()}

    assert [*enabled_checks(spec)] == [LongCheck(name.removesuffix(".json")) for name in files]
    ring = files["ring_bandwidth.json"]
    assert (ring.size, ring.arguments) == (8, {"mib": 64, "seconds": 10})
    assert {node_set_limits.together for node_set_limits in ring.node_sets.values()} == {1.1}
    assert json.loads(long_check_files(spec)["storage_bandwidth.json"])["check"] == "storage_bandwidth"


def test_the_example_of_an_image_gives_it_to_the_jobs() -> None:
    _, text, _ = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    gpus = a_node_set(gpus={"count": 8, "type": "h100"})
    spec = a_spec(node_sets=[gpus], **yaml.safe_load(text)["config"]["soperator:cluster"])
    (file,) = [parse_long(content) for content in long_check_files(spec).values()]

    assert file.image == "registry.example.com/team/nccl-tests:2.16.6"


def test_the_shown_reason_is_a_default() -> None:
    (shown,) = re.findall(r"`health ring_bandwidth: (.*?)`", PAGE)

    assert judge(Reading(0.02), 0.1, "GB/s") == (False, shown)


def test_the_example_of_new_nodes_verifies_them() -> None:
    *_, text = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    spec = a_spec(health=yaml.safe_load(text)["config"]["soperator:cluster"]["health"])
    (file,) = [parse_long(content) for content in long_check_files(spec).values()]

    assert {tuple(node_set_limits.first) for node_set_limits in file.node_sets.values()} == {("memory_bandwidth",)}
