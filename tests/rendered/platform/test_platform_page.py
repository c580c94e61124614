"""The page on the platform: its stack deploys, its program runs, its tables and its error are those of the sources."""

import json
import re
from typing import Any

import pytest
import yaml

from soperator_pulumi.errors import SpecError
from soperator_pulumi.platform import CHARTS, parse_platform
from soperator_pulumi.platform.chart_values import known_keys, unknown_keys
from soperator_pulumi.platform.charts import CHART_OF_PART, Chart
from soperator_pulumi.platform.requirements import requirements
from soperator_pulumi.spec.platform.platform_spec import PARTS
from soperator_pulumi.stack import program
from soperator_pulumi.testing import Deployment, deploy
from tests.rendered.cluster.clusters import a_spec
from tests.strategies import IMAGES, a_cluster
from tools import paths

PAGE = (paths.ROOT / "docs" / "platform.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def rows(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, each with its cells."""
    lines = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0].splitlines()
    cells = [[word.strip() for word in line.strip("|").split(" | ")] for line in lines if line.startswith("| ")]
    return cells[1:]


def run(**config: Any) -> Deployment:
    values = {"soperator:defaults": {"images": IMAGES}, **config}
    return deploy(program.run, config={key: json.dumps(value) for key, value in values.items()})


def test_the_stack_of_the_page_deploys_with_a_cluster_and_without() -> None:
    (block,) = blocks("yaml")
    described = yaml.safe_load(block)["config"]
    alone = run(**described)
    assert alone.exports["gpu_resource"] == "nvidia.com/gpu"
    assert alone.exports["rdma_resources"] == ["rdma/hca"]
    assert alone.resources(":SlurmCluster") == ()
    both = run(**described, **{"soperator:cluster": a_cluster()})
    waited = {awaited.name for awaited in both.waits_for(both.one("hpc-namespace"))}
    assert {resource.name for resource in alone.resources("Release")} <= waited


def test_the_program_of_the_page_runs() -> None:
    (block,) = blocks("python")
    deployment = deploy(lambda: exec(compile(block, "platform.md", "exec"), {"description": a_spec()}))  # noqa: S102
    waited = {awaited.name for awaited in deployment.waits_for(deployment.one("hpc-namespace"))}
    assert {"platform-kube-prometheus-stack", "platform-gpu-operator"} <= waited


def test_the_error_is_the_one_that_is_printed() -> None:
    (block,) = blocks("text")
    with pytest.raises(SpecError) as caught:
        parse_platform({"gpu_operator": {"values": {"driver": {"enbled": False}}}})
    assert str(caught.value) == block.strip()


def test_the_table_of_charts_is_that_of_the_sources() -> None:
    listed = [tuple(row) for row in rows("Charts")][: len(CHARTS)]
    assert listed == [(chart.name, chart.version, f"`{chart.repository}`", str(chart.definitions)) for chart in CHARTS]


def test_every_kind_of_definitions_is_explained() -> None:
    explained = {row[0] for row in rows("Charts")[len(CHARTS) + 1 :]}
    assert explained == {str(chart.definitions) for chart in CHARTS}


def test_the_lowest_versions_are_those_that_are_checked() -> None:
    needed = {
        requirement.part: requirement.minimum
        for requirement in requirements(parse_platform({part: {"exists": True} for part in PARTS}))
    }
    assert {row[0]: row[1].split()[0] for row in rows("Installed already")} == needed


@pytest.mark.parametrize("chart", [*CHART_OF_PART.values()], ids=lambda item: item.name)
def test_settings_and_images_on_the_page_are_keys_of_their_chart(chart: Chart) -> None:
    sections = ("Built-in settings", "Without the internet")
    found = [path for section in sections for path in paths_of(section, chart.name)]
    assert found
    for path in found:
        values: Any = {}
        for key in reversed(path.split(".")):
            values = {key: values}
        assert [*unknown_keys(values, known_keys(chart.known_keys), chart.name)] == []


def paths_of(section: str, chart: str) -> list[str]:
    """The keys of a chart that the table of a section names, `driver.enabled: false` without the value."""
    current, found = "", []
    for row in rows(section):
        current = row[0] or current
        if current == chart and not row[1].startswith(("NicClusterPolicy", "`…")):
            found += [item.partition(":")[0] for item in re.findall(r"`([\w.-]+(?:: [\w\"]+)?)`", row[1])]
    return [item for item in found if item not in {"repository", "false"}]


def test_the_commands_that_fetch_charts_name_those_of_the_table() -> None:
    (block,) = (block for block in blocks("sh") if "helm pull" in block)
    by_name = {chart.name: chart for chart in CHARTS}
    for line in block.strip().splitlines():
        name, version = re.findall(r"helm pull (?:\S*/)?([\w-]+) .*--version (\S+)", line)[0]
        assert by_name[name].version == version
        assert by_name[name].repository in line
