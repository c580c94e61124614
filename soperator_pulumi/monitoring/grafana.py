"""Dashboards in Grafana's JSON (schema 39, Grafana 10 and later), and labels of their ConfigMaps for its sidecar."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from soperator_pulumi.monitoring.panels import COLUMNS, HERE, Dashboard, Panel, PanelKind, Query, Row, Unit

LABELS: Mapping[str, str] = {"grafana_dashboard": "1"}
"""Labels of ConfigMaps that the chart's sidecar loads into Grafana (`grafana.sidecar.dashboards`)."""

FOLDER: Mapping[str, str] = {"grafana_folder": "Slurm"}
"""Annotation with the folder (`grafana.sidecar.dashboards.folderAnnotation`)."""

_SCHEMA = 39
_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
_SELECTED = 'cluster=~"$cluster",namespace="$namespace"'
_GREEN, _YELLOW, _RED = "green", "yellow", "red"


def dashboard_files(dashboards: Iterable[Dashboard]) -> dict[str, str]:
    """Return the JSON of dashboards by file name."""
    return {f"{dashboard.uid}.json": dashboard_text(dashboard) for dashboard in dashboards}


def dashboard_text(dashboard: Dashboard) -> str:
    """Return the JSON of a dashboard, always the same for the same dashboard."""
    return json.dumps(dashboard_json(dashboard), indent=1, ensure_ascii=False) + "\n"


def dashboard_json(dashboard: Dashboard) -> dict[str, Any]:
    """Return a dashboard as a mapping in Grafana's schema."""
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.about,
        "tags": ["slurm"],
        "schemaVersion": _SCHEMA,
        "version": 1,
        "editable": False,
        "graphTooltip": 1,  # one crosshair for all panels
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "links": [
            {
                "type": "dashboards",
                "title": "Slurm",
                "tags": ["slurm"],
                "asDropdown": True,
                "includeVars": True,
                "keepTime": True,
            }
        ],
        "templating": {"list": [*_choices(dashboard)]},
        "panels": [*_placed(dashboard.rows)],
    }


def _choices(dashboard: Dashboard) -> Iterator[dict[str, Any]]:
    """Yield the variables: data source, cluster (empty in most servers), namespace, and the dashboard's own."""
    yield {"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus"}
    yield {**_choice("cluster", "Cluster", "label_values(slurm_nodes, cluster)"), **_ALL_AT_FIRST, "multi": True}
    yield _choice("namespace", "Namespace", 'label_values(slurm_nodes{cluster=~"$cluster"}, namespace)')
    for variable in dashboard.variables:
        query = f"label_values({_selected(variable.metric)}, {variable.of})"
        several = {**_ALL_AT_FIRST, "multi": True} if variable.several else {}
        yield {**_choice(variable.name, variable.label, query), **several}


_ALL_AT_FIRST = {"includeAll": True, "allValue": ".*", "current": {"text": "All", "value": "$__all"}}


def _choice(name: str, label: str, query: str) -> dict[str, Any]:
    return {
        "type": "query",
        "name": name,
        "label": label,
        "datasource": _DATASOURCE,
        "definition": query,
        "query": {"query": query, "refId": f"values-of-{name}"},
        "refresh": 2,  # whenever the time range changes
        "sort": 1,
    }


def _placed(rows: tuple[Row, ...]) -> Iterator[dict[str, Any]]:
    """Yield the panels with their positions: from left to right, starting a new line if a panel does not fit."""
    number, top = 1, 0
    for row in rows:
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "panels": [],
            "gridPos": {"x": 0, "y": top, "w": COLUMNS, "h": 1},
        }
        number, top, left, tallest = number + 1, top + 1, 0, 0
        for panel in row.panels:
            if left + panel.width > COLUMNS:
                top, left, tallest = top + tallest, 0, 0
            place = {"x": left, "y": top, "w": panel.width, "h": panel.height}
            yield {"id": number, **_panel(panel), "gridPos": place}
            number, left, tallest = number + 1, left + panel.width, max(tallest, panel.height)
        top += tallest


_TYPES = {
    PanelKind.LINES: "timeseries",
    PanelKind.STACK: "timeseries",
    PanelKind.NUMBER: "stat",
    PanelKind.BARS: "bargauge",
    PanelKind.TABLE: "table",
}


def _panel(panel: Panel) -> dict[str, Any]:
    over_time = panel.kind in {PanelKind.LINES, PanelKind.STACK}
    defaults: dict[str, Any] = {
        "unit": panel.unit,
        "thresholds": _thresholds(panel),
        **({"custom": _drawn(panel)} if over_time else {}),
    }
    if panel.kind is PanelKind.BARS or panel.unit is Unit.RATIO:
        defaults["min"] = 0
    return {
        "type": _TYPES[panel.kind],
        "title": panel.title,
        "description": panel.about,
        "datasource": _DATASOURCE,
        "targets": [_target(index, query, panel) for index, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": defaults, "overrides": [*_units_of_columns(panel)]},
        "options": _options(panel),
        "transformations": _columns(panel) if panel.kind is PanelKind.TABLE else [],
    }


def _units_of_columns(panel: Panel) -> Iterator[dict[str, Any]]:
    for query in panel.queries:
        if query.unit is not None:
            yield {
                "matcher": {"id": "byName", "options": query.legend},
                "properties": [{"id": "unit", "value": query.unit}],
            }


def _thresholds(panel: Panel) -> dict[str, Any]:
    steps = [(panel.warn, _YELLOW), (panel.bad, _RED)]
    above = [{"color": color, "value": value} for value, color in steps if value is not None]
    return {"mode": "absolute", "steps": [{"color": _GREEN, "value": None}, *above]}


def _drawn(panel: Panel) -> dict[str, Any]:
    stacked = panel.kind is PanelKind.STACK
    return {
        "drawStyle": "line",
        "lineWidth": 1,
        "fillOpacity": 40 if stacked else 0,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
    }


def _target(index: int, query: Query, panel: Panel) -> dict[str, Any]:
    over_time = panel.kind in {PanelKind.LINES, PanelKind.STACK}
    return {
        "refId": chr(ord("A") + index),
        "datasource": _DATASOURCE,
        "expr": _selected(query.expr),
        "legendFormat": query.legend or "__auto",
        "range": over_time,
        "instant": not over_time,
        **({"format": "table"} if panel.kind is PanelKind.TABLE else {}),
    }


def _selected(expr: str) -> str:
    return expr.replace(HERE, _SELECTED)


def _options(panel: Panel) -> dict[str, Any]:
    last = {"reduceOptions": {"calcs": ["lastNotNull"], "values": False}}
    if panel.kind is PanelKind.NUMBER:
        return {**last, "colorMode": "value", "graphMode": "none"}
    if panel.kind is PanelKind.BARS:
        return {**last, "displayMode": "basic", "orientation": "horizontal"}
    if panel.kind is PanelKind.TABLE:
        return {"showHeader": True}
    return {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}


def _columns(panel: Panel) -> list[dict[str, Any]]:
    """Return the transformations that join the answers into one table with only the panel's columns, in order."""
    one = len(panel.queries) == 1
    values = ["Value"] if one else [f"Value #{chr(ord('A') + index)}" for index in range(len(panel.queries))]
    order = [*panel.labels, *values]
    named = dict(zip(values, (query.legend or "value" for query in panel.queries), strict=True))
    return [
        {"id": "merge", "options": {}},
        {"id": "filterFieldsByName", "options": {"include": {"names": order}}},
        {
            "id": "organize",
            "options": {"indexByName": {name: place for place, name in enumerate(order)}, "renameByName": named},
        },
    ]
