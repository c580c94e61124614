"""Panels as pictures: SVG by pygal for lines and areas, plain HTML for numbers, bars and tables."""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from xml.etree import ElementTree as ET

import pygal
from pygal.style import Style

from soperator_pulumi.monitoring.panels import Panel, PanelKind, Query, Unit
from tools.dashboard.amounts_text import in_words
from tools.dashboard.prometheus_api import Series, Span

Answers = Sequence[tuple[Query, Sequence[Series]]]
"""Answers to the queries of one panel."""

SHOWN_SERIES = 12
SHOWN_ROWS = 40

_COLORS = (
    *("#3b7dd8", "#3fa45b", "#e8912d", "#d64545", "#8d63c9", "#2aa5a5"),
    *("#c2559d", "#8a8f3c", "#6b7a90", "#b5713a", "#5bb8e8", "#97c93f"),
)
_GUIDE = "rgba(128,128,128,.3)"
_STYLE = Style(
    background="transparent",
    plot_background="transparent",
    foreground="currentColor",
    foreground_strong="currentColor",
    foreground_subtle="currentColor",
    colors=_COLORS,
    font_family="system-ui, sans-serif",
    label_font_size=11,
    major_label_font_size=11,
    opacity=".45",
    guide_stroke_color=_GUIDE,
    guide_stroke_dasharray="none",
    major_guide_stroke_color=_GUIDE,
    major_guide_stroke_dasharray="none",
)
_COLUMN_PIXELS = 54
_LINE_PIXELS = 30
_COLUMNS_FOR_ALL_LABELS = 8
_NOTHING = '<p class="nothing">No data.</p>'


def draw(panel: Panel, answers: Answers, span: Span) -> str:
    """Return the HTML of a panel's picture, without its title."""
    if not any(series.points for _, found in answers for series in found):
        return _NOTHING
    if panel.kind is PanelKind.NUMBER:
        return _numbers(panel, answers)
    if panel.kind is PanelKind.BARS:
        return _bars(panel, answers)
    if panel.kind is PanelKind.TABLE:
        return _table(panel, answers)
    return _over_time(panel, answers, span)


def legend(query: Query, labels: Mapping[str, str]) -> str:
    """Return the name of a series."""
    if query.legend:
        return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), query.legend)
    return ", ".join(f"{name}={value}" for name, value in labels.items() if name != "__name__") or "value"


def _over_time(panel: Panel, answers: Answers, span: Span) -> str:
    """Return a chart over time. If there are many series, it shows the largest, and counts the others below."""
    named = [(legend(query, series.labels), series) for query, found in answers for series in found if series.points]
    sizes = sorted((series.largest for _, series in named), reverse=True)
    least = sizes[:SHOWN_SERIES][-1]
    # A state that no node has needs no place among the areas.
    shown = [pair for pair in named if pair[1].largest >= least and (pair[1].largest or panel.kind is PanelKind.LINES)]
    shown = (shown or named)[:SHOWN_SERIES]
    chart = _chart(panel, span)
    rows = [_on_grid(series, span) for _, series in shown]
    for (name, _), row in zip(shown, rows, strict=True):
        chart.add(name, row)
    stacked = [sum(value or 0 for value in column) for column in zip(*rows, strict=True)]
    top = max(stacked) if panel.kind is PanelKind.STACK else sizes[0]
    unit = 1024 ** int(math.log(max(top, 1), 1024)) if panel.unit in {Unit.BYTES, Unit.BYTES_PER_SECOND} else 1
    chart.y_labels = [unit * tick for tick in ticks(top / unit)]
    chart.range = (0, chart.y_labels[-1])
    more = sum(1 for size in sizes[len(shown) :] if size)
    return _svg(chart) + _legends([name for name, _ in shown]) + (f"<p>and {more} smaller series</p>" if more else "")


def _chart(panel: Panel, span: Span) -> pygal.Line:
    form = pygal.StackedLine if panel.kind is PanelKind.STACK else pygal.Line
    chart = form(
        width=panel.width * _COLUMN_PIXELS,
        height=panel.height * _LINE_PIXELS,
        style=_STYLE,
        js=[],
        fill=panel.kind is PanelKind.STACK,
        allow_interruptions=True,
        show_dots=False,
        show_legend=False,
        stroke_style={"width": 1.5},
        truncate_label=-1,
        show_minor_x_labels=False,
        x_labels_major_count=3 if panel.width < _COLUMNS_FOR_ALL_LABELS else 6,
        include_x_axis=True,
        disable_xml_declaration=True,
        value_formatter=lambda value: in_words(value, panel.unit),
    )
    chart.x_labels = [_clock(time_, span) for time_ in span.times]
    return chart


def ticks(top: float) -> list[float]:
    """Return ticks for a scale from 0 to `top` or slightly above, in steps of 1, 2, 2.5 or 5 with zeros."""
    if top <= 0:
        return [0, 1]
    size = 10 ** math.floor(math.log10(top / 4))
    step = next(factor * size for factor in (1, 2, 2.5, 5, 10) if factor * size >= top / 4)
    return [step * index for index in range(math.ceil(top / step - 1e-9) + 1)]


def _legends(names: Sequence[str]) -> str:
    marks = (
        f'<span><i style="background:{_COLORS[index]}"></i>{escape(name)}</span>' for index, name in enumerate(names)
    )
    return f'<p class="legend">{"".join(marks)}</p>'


def _on_grid(series: Series, span: Span) -> list[float | None]:
    """Return the values at all times of the span, with None for gaps."""
    values = {round((time - span.start) / span.step): value for time, value in series.points}
    return [values.get(index) for index in range(len(span.times))]


def _svg(chart: pygal.graph.graph.Graph) -> str:
    """Return a chart that needs no script and that screen readers can read."""
    tree = chart.render_tree()
    for parent in [*tree.iter()]:
        for child in [*parent]:
            if str(child.tag).endswith("script"):
                parent.remove(child)
    tree.set("role", "img")
    return ET.tostring(tree, encoding="unicode")


def _clock(time: float, span: Span) -> str:
    length = span.end - span.start
    form = "%H:%M:%S" if length <= 3600 else "%H:%M" if length <= 86400 else "%d %b %H:%M"
    return datetime.fromtimestamp(time, UTC).strftime(form)


def _latest(answers: Answers) -> list[tuple[str, Series, float]]:
    found = [(legend(query, item.labels), item, item.last) for query, series in answers for item in series]
    return [(name, series, last) for name, series, last in found if last is not None]


def _numbers(panel: Panel, answers: Answers) -> str:
    shown = [(value, in_words(value, panel.unit)) for _, _, value in _latest(answers)]
    return "".join(f'<p class="number {_state(panel, value)}">{escape(text)}</p>' for value, text in shown)


def _state(panel: Panel, value: float) -> str:
    if panel.bad is not None and value >= panel.bad:
        return "bad"
    return "warn" if panel.warn is not None and value >= panel.warn else "good"


def _bars(panel: Panel, answers: Answers) -> str:
    found = sorted(_latest(answers), key=lambda item: item[2], reverse=True)
    largest = 1 if panel.unit is Unit.RATIO else max(value for _, _, value in found) or 1
    lines = "".join(
        f'<li class="{_state(panel, value)}"><span>{escape(name)}</span>'
        f'<i style="width:{max(0.0, value / largest):.1%}"></i><b>{escape(in_words(value, panel.unit))}</b></li>'
        for name, _, value in found[:SHOWN_SERIES]
    )
    more = len(found) - SHOWN_SERIES
    return f'<ol class="bars">{lines}</ol>' + (f"<p>and {more} smaller ones</p>" if more > 0 else "")


def _table(panel: Panel, answers: Answers) -> str:
    """Return a table with a row per set of labels and a column per query."""
    rows: dict[tuple[str, ...], dict[int, float]] = {}
    for index, (_, found) in enumerate(answers):
        for series in found:
            if series.last is not None:
                rows.setdefault(tuple(series.labels.get(name, "") for name in panel.labels), {})[index] = series.last
    named = "".join(f"<th>{escape(name)}</th>" for name in panel.labels)
    head = named + "".join(f'<th class="value">{escape(query.legend or "value")}</th>' for query, _ in answers)
    body = "".join(f"<tr>{_cells(panel, key, values)}</tr>" for key, values in [*rows.items()][:SHOWN_ROWS])
    more = len(rows) - SHOWN_ROWS
    shown = f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    return shown + (f"<p>and {more} more rows</p>" if more > 0 else "")


def _cells(panel: Panel, key: Sequence[str], values: Mapping[int, float]) -> str:
    named = "".join(f"<td>{escape(text)}</td>" for text in key)
    units = [query.unit or panel.unit for query in panel.queries]
    amounts = [in_words(values[index], unit) if index in values else "" for index, unit in enumerate(units)]
    return named + "".join(f'<td class="value">{escape(text)}</td>' for text in amounts)
