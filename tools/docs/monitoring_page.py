"""Tables of docs/monitoring.md: alerts, recorded series, dashboards and their metrics, from the sources."""

import re
import runpy
from collections.abc import Iterable, Mapping
from typing import Protocol, cast

from soperator_pulumi.monitoring.alerts import ALERTS
from soperator_pulumi.monitoring.dashboards import DASHBOARDS
from soperator_pulumi.monitoring.other_exporters import OTHER_EXPORTERS
from soperator_pulumi.monitoring.recordings import RECORDINGS
from soperator_pulumi.spec.types.duration import duration_text
from tools import paths
from tools.docs.page_tables import table, with_tables

FILE = paths.ROOT / "docs" / "monitoring.md"
_METRIC_TABLE = paths.ROOT / "images" / "exporter" / "slurm_exporter" / "metric_table.py"


class MetricOfTable(Protocol):
    """A metric of the exporter."""

    help: str
    labels: tuple[str, ...]


def text() -> str:
    """Return the page with its tables updated from the sources."""
    return with_tables(FILE, _tables())


def _tables() -> Mapping[str, str]:
    # A module that only the exporter's image has.
    metrics = cast("Mapping[str, MetricOfTable]", runpy.run_path(str(_METRIC_TABLE))["METRICS"])
    return {
        "metrics": _table(
            ("metric", "labels", "is"),
            ((f"`{name}`", ", ".join(f"`{label}`" for label in of.labels), of.help) for name, of in metrics.items()),
        ),
        "alerts": _table(
            ("alert", "severity", "after", "means"),
            (
                (
                    f"[{alert.name}](runbooks.md#{alert.name.lower()})",
                    alert.severity,
                    duration_text(alert.lasting),
                    alert.description,
                )
                for alert in ALERTS
            ),
        ),
        "recorded": _table(("series", "is"), ((f"`{recording.record}`", recording.about) for recording in RECORDINGS)),
        "dashboards": _table(
            ("dashboard", "address", "rows"),
            (
                (dashboard.title, f"`/d/{dashboard.uid}`", ", ".join(row.title for row in dashboard.rows))
                for dashboard in DASHBOARDS
            ),
        ),
        "others": _table(
            ("from", "metrics"),
            ((name, ", ".join(f"`{metric}`" for metric in metrics)) for name, metrics in OTHER_EXPORTERS.items()),
        ),
    }


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return table(heads, ([*map(_cell, cells)] for cells in rows))


def _cell(text_of_alert: str) -> str:
    """Return the text of a cell, with a placeholder for values that only an alert has."""
    return re.sub(r"\{\{ \$value[^}]*\}\}", "…", text_of_alert).replace("|", "\\|")
