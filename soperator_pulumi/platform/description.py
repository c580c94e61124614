"""Parsing of a platform's description: it becomes a checked spec, or an error with all problems at once."""

from collections.abc import Iterator
from typing import Any

import pulumi

from soperator_pulumi.errors import Problem, SpecError
from soperator_pulumi.platform.chart_folder import chart_in_folder, folder_problems
from soperator_pulumi.platform.chart_values import known_keys, unknown_keys
from soperator_pulumi.platform.charts import CHART_OF_PART, Chart
from soperator_pulumi.spec.platform.chart_part import ChartSource
from soperator_pulumi.spec.platform.platform_spec import PARTS, PlatformSpec, platform_problems, settled
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
