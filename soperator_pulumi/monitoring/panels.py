"""Dashboards as data: rows of panels with queries, for Grafana and for the page of `make dashboard`."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

HERE = "$here"
"""Placeholder in every query for the labels that select one cluster: `slurm_nodes{$here}`."""

COLUMNS = 24
"""Width of a dashboard in Grafana's units."""


class PanelKind(StrEnum):
    """Form of a panel."""

    LINES = "lines"
    """A line for each series, over time."""
    STACK = "stack"
    """Areas on each other, over time."""
    NUMBER = "number"
    """The present value of each series as a number."""
    BARS = "bars"
    """The present value of each series as a bar, the largest first."""
    TABLE = "table"
    """A row for each series: its labels, then the values."""


class Unit(StrEnum):
    """Unit of a panel's values, by Grafana's names."""

    COUNT = "short"
    RATIO = "percentunit"
    """Shown in percent: 1 is 100 %."""
    SECONDS = "s"
    MICROSECONDS = "µs"
    BYTES = "bytes"
    BYTES_PER_SECOND = "Bps"
    CELSIUS = "celsius"
    WATT = "watt"
    PER_SECOND = "cps"


@dataclass(frozen=True)
class Query:
    """A query of PromQL, with the placeholder `$here`."""

    expr: str
    legend: str = ""
    """Name of a series, with labels in double braces: `{{node}}`. In a table, the name of the column of values."""
    unit: Unit | None = None
    """Unit of a table's column, where it is not the panel's."""


@dataclass(frozen=True)
class Panel:
    """One picture of a dashboard."""

    title: str
    kind: PanelKind
    queries: tuple[Query, ...]
    unit: Unit = Unit.COUNT
    about: str = ""
    """Explanation, for a person who sees the panel for the first time."""
    width: int = 8
    height: int = 8
    warn: float | None = None
    """Value from which on it is shown as a warning."""
    bad: float | None = None
    """Value from which on it is shown as bad."""
    labels: tuple[str, ...] = ()
    """Columns of a table, in this order. Other labels are left out."""


@dataclass(frozen=True)
class Row:
    """Panels below one heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Variable:
    """A choice at the top of a dashboard: a label of a metric, whose values people choose from."""

    name: str
    label: str
    metric: str
    """Metric whose label has the values, with its selector."""
    of: str
    """Label of the metric."""
    several: bool = False
    """More than one value may be chosen, and all are at first."""


@dataclass(frozen=True)
class Dashboard:
    """A page of panels."""

    uid: str
    """Last part of its address in Grafana, which stays."""
    title: str
    about: str
    rows: tuple[Row, ...]
    variables: tuple[Variable, ...] = ()
    """Choices besides cluster and namespace."""

    @property
    def panels(self) -> Iterator[Panel]:
        """All panels, from the top."""
        for row in self.rows:
            yield from row.panels


def number(title: str, expr: str, *, unit: Unit = Unit.COUNT, warn: float | None = None, **more: str | float) -> Panel:
    """Return a small panel with one number."""
    about, bad = str(more.get("about", "")), more.get("bad")
    limit = None if bad is None else float(bad)
    return Panel(title, PanelKind.NUMBER, (Query(expr),), unit, about, width=4, height=4, warn=warn, bad=limit)


def lines(title: str, *queries: Query, unit: Unit = Unit.COUNT, about: str = "", width: int = 8) -> Panel:
    """Return a panel of lines over time."""
    return Panel(title, PanelKind.LINES, queries, unit, about, width)


def stack(title: str, *queries: Query, unit: Unit = Unit.COUNT, about: str = "", width: int = 8) -> Panel:
    """Return a panel of areas on each other over time."""
    return Panel(title, PanelKind.STACK, queries, unit, about, width)


def bars(title: str, expr: str, legend: str, *, unit: Unit = Unit.COUNT, about: str = "", width: int = 8) -> Panel:
    """Return a panel of bars, the largest first."""
    return Panel(title, PanelKind.BARS, (Query(expr, legend),), unit, about, width)


def table(title: str, labels: tuple[str, ...], *queries: Query, about: str = "", width: int = COLUMNS) -> Panel:
    """Return a table with columns of labels, and one of values for each query."""
    return Panel(title, PanelKind.TABLE, queries, Unit.COUNT, about, width, labels=labels)
