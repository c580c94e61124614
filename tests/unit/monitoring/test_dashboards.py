"""Dashboards: each query of Grafana's JSON has an answer on a cluster that has a bit of everything."""

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from soperator_pulumi.monitoring.dashboards import DASHBOARDS
from soperator_pulumi.monitoring.dashboards.jobs import JOB_DETAILS
from soperator_pulumi.monitoring.grafana import dashboard_json, dashboard_text
from soperator_pulumi.monitoring.panels import COLUMNS, HERE, Dashboard
from tests.unit.monitoring.promql import judged, rules_file
from tests.unit.monitoring.world import BUSY, NAMESPACE

CHOSEN = {"$cluster": ".*", "$namespace": NAMESPACE, "$node": ".*", "$job": ".*"}
"""Choices of a person who has chosen nothing but the namespace."""


def panels(dashboard: Dashboard) -> list[dict[str, Any]]:
    return [panel for panel in dashboard_json(dashboard)["panels"] if panel["type"] != "row"]


def chosen(expr: str) -> str:
    """Return a query as Grafana sends it."""
    for name, value in CHOSEN.items():
        expr = expr.replace(name, value)
    return expr


def test_every_query_of_every_panel_has_an_answer(tmp_path: Path) -> None:
    shown = [panel for dashboard in DASHBOARDS for panel in panels(dashboard)]
    queries = dict.fromkeys(chosen(target["expr"]) for panel in shown for target in panel["targets"])
    assert not [query for query in queries if "$" in query or HERE in query]
    judged(rules_file(tmp_path), tmp_path, BUSY, [("90m", f"count({query}) > bool 0", "{}") for query in queries])


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.uid)
def test_no_panel_lies_over_another(dashboard: Dashboard) -> None:
    places = [panel["gridPos"] for panel in dashboard_json(dashboard)["panels"]]
    spans = [(range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])) for at in places]
    cells = [cell for span in spans for cell in product(*span)]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < COLUMNS


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.uid)
def test_a_dashboard_takes_its_data_source_and_cluster_from_choices(dashboard: Dashboard) -> None:
    shown = dashboard_json(dashboard)
    names = [item["name"] for item in shown["templating"]["list"]]
    assert names[:3] == ["datasource", "cluster", "namespace"]
    queries = [target["expr"] for panel in panels(dashboard) for target in panel["targets"]]
    used = set(re.findall(r"\$\{?(\w+)", " ".join(queries)))
    assert used == {*names} - {"datasource"}
    assert {panel["datasource"]["uid"] for panel in panels(dashboard)} == {"${datasource}"}
    assert len({panel["id"] for panel in shown["panels"]}) == len(shown["panels"])


def test_a_column_of_a_table_has_its_name_and_unit() -> None:
    (jobs,) = (panel for panel in panels(JOB_DETAILS) if panel["type"] == "table")
    merge, kept, named = jobs["transformations"]
    assert (merge["id"], kept["options"]["include"]["names"][:2]) == ("merge", ["job_id", "username"])
    assert named["options"]["renameByName"]["Value #C"] == "memory"
    assert {"matcher": {"id": "byName", "options": "memory"}, "properties": [{"id": "unit", "value": "bytes"}]} in (
        jobs["fieldConfig"]["overrides"]
    )


def test_addresses_and_texts_are_the_same_each_time() -> None:
    assert len({dashboard.uid for dashboard in DASHBOARDS}) == len(DASHBOARDS)
    for dashboard in DASHBOARDS:
        assert dashboard_text(dashboard) == dashboard_text(dashboard)
        assert json.loads(dashboard_text(dashboard)) == dashboard_json(dashboard)
