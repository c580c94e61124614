"""The page of `make dashboard` in a browser: every panel is drawn. A picture stays where DASHBOARD_PICTURE says."""

import os
import time
from pathlib import Path

import pytest

from soperator_pulumi.monitoring.dashboards import DASHBOARDS
from soperator_pulumi.monitoring.panels import PanelKind
from soperator_pulumi.monitoring.recordings import RECORDINGS
from tests.unit.monitoring.running_prometheus import growing, running_prometheus
from tests.unit.monitoring.world import BUSY, NAMESPACE
from tests.unit.tools.dashboard.browser import panels, picture
from tests.waiting import wait_until
from tools.dashboard.__main__ import drawn_page
from tools.dashboard.prometheus_api import Span

EMPTY = {"Restarts in a day", "Firing alerts"}
"""Panels that take longer than this test to show something."""


@pytest.mark.soak  # a browser of some 400 MB
def test_a_browser_draws_every_panel(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    with running_prometheus(growing(BUSY), tmp_path, "slurm_user:gpu_utilization:ratio") as prometheus:
        lines = [f"count_over_time({recording.record}[10s]) >= 3" for recording in RECORDINGS]
        wait_until(lambda: all(prometheus.now(line, time.time()) for line in lines), what="recorded series are lines")
        end = time.time()
        file.write_text(drawn_page(prometheus, NAMESPACE, Span(end - 10, end, 1)))
    image = Path(os.environ.get("DASHBOARD_PICTURE") or tmp_path / "page.png")
    picture(file, image, 1600, 9000)
    assert image.stat().st_size > 100_000

    for width in (1600, 700):
        found = panels(file, width)
        assert [entry["title"] for entry in found] == [panel.title for board in DASHBOARDS for panel in board.panels]
        for entry in found:
            assert entry["width"] > 80, entry
            assert entry["height"] > 40, entry
            if entry["title"] in EMPTY:
                continue
            assert "No data." not in entry["text"], entry
            if entry["kind"] in {PanelKind.LINES, PanelKind.STACK}:
                assert min(entry["drawn"]) > 60, entry
                assert entry["lines"] >= 1, entry
            if entry["kind"] == PanelKind.TABLE:
                assert entry["cells"] >= 1, entry
