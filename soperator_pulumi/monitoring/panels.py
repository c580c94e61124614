"""Dashboards as data: rows of panels with queries, for Grafana and for the page of `make dashboard`."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

HERE = "$here"
"""Placeholder in queries for the labels that select one cluster: `slurm_nodes{$here}`."""

COLUMNS = 24
"""Width of a dashboard in Grafana's units."""


class PanelKind(StrEnum):
    """Form of a panel."""

    LINES = "lines"
    """One line per series, over time."""
    STACK = "stack"
    """Stacked areas over time."""
    NUMBER = "number"
    """Current value of every series as a number."""
    BARS = "bars"
    """Current value of every series as a bar, sorted from the largest."""
    TABLE = "table"
    """One row per series: its labels, then the values."""


class Unit(StrEnum):
    """Unit of a panel's values, under Grafana's name."""

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
    """Unit of the table's column, if it is not the panel's."""


@dataclass(frozen=True)
class Panel:
    """One picture of a dashboard."""

    title: str
    kind: PanelKind
    queries: tuple[Query, ...]
    unit: Unit = Unit.COUNT
    about: str = ""
    """Explanation for a reader who sees the panel for the first time."""
    width: int = 8
    height: int = 8
    warn: float | None = None
    """Value from which on the panel shows a warning."""
    bad: float | None = None
    """Value from which on the panel shows an error."""
    labels: tuple[str, ...] = ()
    """Columns of a table, in this order. Other labels are not shown."""


@dataclass(frozen=True)
class Row:
    """Panels under one heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Variable:
    """A selector at the top of a dashboard: a label of a metric, whose values users choose from."""

    name: str
    label: str
    metric: str
    """Metric, with its selector, whose label has the values."""
    of: str
    """Label of the metric."""
    several: bool = False
    """Several values can be chosen, and all are at first."""


@dataclass(frozen=True)
class Dashboard:
    """A page of panels."""

    uid: str
    """Last part of the dashboard's address in Grafana. Do not change it."""
    title: str
    about: str
    rows: tuple[Row, ...]
    variables: tuple[Variable, ...] = ()
    """Selectors in addition to cluster and namespace."""

    @property
    def panels(self) -> Iterator[Panel]:
        """All panels, from top to bottom."""
        for row in self.rows:
            yield from row.panels


def number(title: str, expr: str, *, unit: Unit = Unit.COUNT, warn: float | None = None, **more: str | float) -> Panel:
    """Return a small panel with a single number."""
    about, bad = str(more.get("about", "")), more.get("bad")
    limit = None if bad is None else float(bad)
    return Panel(title, PanelKind.NUMBER, (Query(expr),), unit, about, width=4, height=4, warn=warn, bad=limit)


def lines(title: str, *queries: Query, unit: Unit = Unit.COUNT, about: str = "", width: int = 8) -> Panel:
    """Return a panel of lines over time."""
    return Panel(title, PanelKind.LINES, queries, unit, about, width)


def stack(title: str, *queries: Query, unit: Unit = Unit.COUNT, about: str = "", width: int = 8) -> Panel:
    """Return a panel of stacked areas over time."""
    return Panel(title, PanelKind.STACK, queries, unit, about, width)


def bars(title: str, expr: str, legend: str, *, unit: Unit = Unit.COUNT, about: str = "", width: int = 8) -> Panel:
    """Return a panel of bars, sorted from the largest."""
    return Panel(title, PanelKind.BARS, (Query(expr, legend),), unit, about, width)


def table(title: str, labels: tuple[str, ...], *queries: Query, about: str = "", width: int = COLUMNS) -> Panel:
    """Return a table with a column per label and a column of values per query."""
    return Panel(title, PanelKind.TABLE, queries, Unit.COUNT, about, width, labels=labels)
