"""Charts in a folder: packed files as `helm pull` saves them, or unpacked folders of their name."""

from collections.abc import Iterator
from pathlib import Path

import yaml

from soperator_pulumi.errors import Problem
from soperator_pulumi.platform.charts import CHART_OF_PART, MARIADB_OPERATOR_CRDS, PROMETHEUS_OPERATOR_CRDS, Chart
from soperator_pulumi.spec.platform.chart_part import ChartPart
from soperator_pulumi.spec.platform.kube_prometheus_stack import KubePrometheusStackSpec
from soperator_pulumi.spec.platform.mariadb_operator import MariadbOperatorSpec
from soperator_pulumi.spec.platform.platform_spec import PARTS, PlatformSpec


def chart_in_folder(folder: str, chart: Chart, version: str) -> str:
    """Return the path of a chart in a folder.

    The path starts with `./` or `/`: without such a file, Helm reads `a/b` as the chart b of the repository a.
    """
    unpacked = Path(folder) / chart.name
    path = str(unpacked if unpacked.exists() else Path(folder) / f"{chart.name}-{version}.tgz")
    return path if path.startswith(("/", "../")) else f"./{path}"


def folder_problems(spec: PlatformSpec) -> Iterator[Problem]:
    """Yield a problem for every missing chart, with the command that fetches it."""
    for name in PARTS:
        part = spec.part(name)
        if part is None or part.exists or part.source is None or part.source.folder is None:
            continue
        path = "source.folder" if part.source == spec.source else f"{name}.source.folder"
        for chart, version in _charts_of(name, part):
            if text := _problem(part.source.folder, chart, version):
                yield Problem(path, text)


def _charts_of(name: str, part: ChartPart) -> Iterator[tuple[Chart, str]]:
    chart = CHART_OF_PART[name]
    if isinstance(part, KubePrometheusStackSpec):
        yield PROMETHEUS_OPERATOR_CRDS, part.definitions_version or PROMETHEUS_OPERATOR_CRDS.version
    if isinstance(part, MariadbOperatorSpec):
        yield MARIADB_OPERATOR_CRDS, part.version or MARIADB_OPERATOR_CRDS.version
    yield chart, part.version or chart.version


def _problem(folder: str, chart: Chart, version: str) -> str:
    """Return what is wrong with a chart in a folder; empty if nothing is."""
    path = Path(chart_in_folder(folder, chart, version))
    if path.is_dir():
        there = _version_of(path / "Chart.yaml")
        if there.removeprefix("v") == version.removeprefix("v"):
            return ""
        found = there or "without a version"
        return f"has {chart.name} {found}, needs {version}. Unpack that version: {_pull(chart, version)}"
    return "" if path.exists() else f"has no chart {chart.name} {version}. Fetch it: {_pull(chart, version)}"


def _version_of(file: Path) -> str:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return ""
    return str(content.get("version", "")) if isinstance(content, dict) else ""


def _pull(chart: Chart, version: str) -> str:
    place = chart.repository
    if place.startswith("oci://"):
        return f"helm pull {place}/{chart.name} --version {version}"
    return f"helm pull {chart.name} --repo {place} --version {version}"
