"""Descriptions of a platform: a checked spec, or an error with all problems, its charts in folders, and its offers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulumi
import yaml

from soperator_pulumi.errors import Problem, SpecError
from soperator_pulumi.platform.chart_values import known_keys, unknown_keys
from soperator_pulumi.platform.charts import CHART_OF_PART, MARIADB_OPERATOR_CRDS, PROMETHEUS_OPERATOR_CRDS, Chart
from soperator_pulumi.spec.platform.chart_part import ChartPart, ChartSource
from soperator_pulumi.spec.platform.kube_prometheus_stack import KubePrometheusStackSpec
from soperator_pulumi.spec.platform.mariadb_operator import MariadbOperatorSpec
from soperator_pulumi.spec.platform.platform_spec import PARTS, PlatformSpec, platform_problems, settled
from soperator_pulumi.spec.platform.provided import ProvidedSpec
from soperator_pulumi.spec.validation.parse import parse
from soperator_pulumi.spec.validation.partial import known

WHERE = "soperator:platform"
"""Name of the spec in messages."""


class InvalidPlatformError(SpecError, pulumi.RunError):
    """Problems of a platform's description, in one message that Pulumi prints without a traceback."""


def parse_platform(data: object, where: str = WHERE) -> PlatformSpec:
    """Return the spec of a platform, with defaults that depend on its Kubernetes and its parts.

    Example::

        from soperator_pulumi import parse_platform
        from soperator_pulumi.errors import SpecError

        try:
            parse_platform({"gpu_operator": {"values": {"driver": {"enbled": False}}}})
        except SpecError as error:
            problems = [str(problem) for problem in error.problems]

    Args:
        data: A mapping as in a stack's configuration, or a checked spec.
        where: Origin of the data in an error: a configuration key, or a component.

    Raises:
        SpecError: The data has problems; all of them at once.
    """
    try:
        spec = parse(PlatformSpec, data, where, "a platform", _rules)
    except SpecError as error:
        raise InvalidPlatformError(error.where, error.problems) from None
    if found := [*value_problems(spec)]:
        raise InvalidPlatformError(where, found)
    return settled(spec)


def parse_part(name: str, data: object, component: str) -> PlatformSpec:
    """Return the spec of a platform with a single part.

    Args:
        name: Name of the part in the spec of a platform: `gpu_operator`.
        data: Description or checked spec of the part.
        component: Name of the component, for messages.

    Raises:
        SpecError: The data has problems; all of them at once.
    """
    given = {} if data is None else data
    try:
        return parse_platform({name: given}, component)
    except SpecError as error:
        prefix = f"{name}."
        found = [Problem(problem.path.removeprefix(prefix), problem.text) for problem in error.problems]
        raise InvalidPlatformError(component, found) from None


def value_problems(spec: PlatformSpec) -> Iterator[Problem]:
    """Yield the keys in `values` that the charts do not know."""
    for name in PARTS:
        part = spec.part(name)
        if not known(part) or part is None:
            continue
        chart = CHART_OF_PART[name]
        if known(part.values):
            keys = known_keys(chart.known_keys)
            for problem in unknown_keys(part.values, keys, f"{chart.name} {chart.version}"):
                yield Problem(f"{name}.values.{problem.path}", problem.text)


def _rules(spec: PlatformSpec) -> Iterator[Problem]:
    yield from platform_problems(spec)
    yield from value_problems(spec)


def require_charts(spec: PlatformSpec, where: str, part: str = "") -> None:
    """Check that the folders of a spec hold the charts of all parts, before anything is created.

    Args:
        spec: Spec of a platform.
        where: Name of the component, for messages.
        part: The only part of the spec, whose name is left out of paths; empty for a whole platform.

    Raises:
        InvalidPlatformError: Charts are missing, or have another version; the message lists all of them.
    """
    if found := [
        Problem(folder_problem.path.removeprefix(f"{part}."), folder_problem.text)
        for folder_problem in folder_problems(spec)
    ]:
        raise InvalidPlatformError(where, found)


def release_source(chart: Chart, source: ChartSource | None, version: str) -> dict[str, Any]:
    """Return the inputs of a Release that identify its chart: in a repository, a registry or a file."""
    if source is not None and source.folder is not None:
        return {"chart": chart_in_folder(source.folder, chart, version)}
    place = chart.repository if source is None else source.oci or source.repository or chart.repository
    if place.startswith("oci://"):
        return {"chart": f"{place}/{chart.name}", "version": version}
    return {"chart": chart.name, "version": version, "repository_opts": {"repo": place}}


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
            if text := _folder_problem(part.source.folder, chart, version):
                yield Problem(path, text)


def _charts_of(name: str, part: ChartPart) -> Iterator[tuple[Chart, str]]:
    chart = CHART_OF_PART[name]
    if isinstance(part, KubePrometheusStackSpec):
        yield PROMETHEUS_OPERATOR_CRDS, part.definitions_version or PROMETHEUS_OPERATOR_CRDS.version
    if isinstance(part, MariadbOperatorSpec):
        yield MARIADB_OPERATOR_CRDS, part.version or MARIADB_OPERATOR_CRDS.version
    yield chart, part.version or chart.version


def _folder_problem(folder: str, chart: Chart, version: str) -> str:
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


def provided_by(spec: PlatformSpec) -> ProvidedSpec:
    """Return what a platform offers to clusters."""
    gpus, network = spec.gpu_operator, spec.network_operator
    return ProvidedSpec(
        gpu_resource=None if gpus is None else gpus.resource,
        runtime_class=None if gpus is None else gpus.runtime_class,
        rdma_resources=() if network is None else network.resources,
        kube_prometheus_stack=spec.kube_prometheus_stack is not None,
        mariadb_operator=spec.mariadb_operator is not None,
        **_volume_of(spec),
    )


def _volume_of(spec: PlatformSpec) -> dict[str, Any]:
    """Return the names of the shared volume as plain strings: components already order the resources."""
    storage = spec.shared_storage
    if storage is None:
        return {"storage_class": spec.storage_class}
    if storage.claim is not None or storage.existing_claim is not None:
        return {"existing_claim": storage.existing_claim if storage.claim is None else storage.claim.name}
    if storage.storage_class is not None or storage.existing_class is not None:
        return {"storage_class": storage.existing_class or storage.name, "size_gib": storage.size_gib}
    return {"static_volume": storage.name, "size_gib": storage.size_gib}
