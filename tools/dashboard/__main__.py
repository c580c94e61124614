"""`make dashboard`: draws the dashboards of a cluster from Prometheus' answers into one HTML file."""

import argparse
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from soperator_pulumi.monitoring.dashboards import DASHBOARDS
from soperator_pulumi.monitoring.panels import HERE, Dashboard, Panel, PanelKind
from tools import chosen_cluster, console, paths
from tools.console import UserError, say, step
from tools.dashboard.drawing import Answers
from tools.dashboard.found_prometheus import in_kubernetes, only_namespace
from tools.dashboard.page import page
from tools.dashboard.prometheus_api import PrometheusApi, Span, at_address

_STEPS = 240
"""Points of a line."""

_LEAST_STEP_SECONDS = 15


def main() -> None:
    """Query all panels, and write the page."""
    parser = argparse.ArgumentParser(prog="make dashboard", description=__doc__)
    parser.add_argument("--prometheus", help="address of Prometheus (default: the one in the chosen Kubernetes)")
    parser.add_argument("--namespace", help="namespace of the cluster, where Prometheus knows several")
    parser.add_argument("--hours", type=_hours, default=6.0, help="length of the charts (default: 6)")
    parser.add_argument("--output", type=Path, help="file to write")
    arguments = parser.parse_args()
    prometheus = at_address(arguments.prometheus) if arguments.prometheus else in_kubernetes(chosen_cluster.choose())
    end = time.time()
    namespace = arguments.namespace or only_namespace(prometheus, end)
    file = arguments.output or paths.state_dir() / "dashboard" / f"{namespace}.html"
    write_page(file, drawn_page(prometheus, namespace, span_until(end, arguments.hours)))
    say(f"Open {file} in a browser.")


def write_page(file: Path, text: str) -> None:
    """Write the page.

    Raises:
        UserError: The file cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}. Name a file that can be written.") from None


def span_until(end: float, hours: float) -> Span:
    """Return the span of the charts, with its last point at the end."""
    step = max(hours * 3600 / _STEPS, _LEAST_STEP_SECONDS)
    return Span(end - step * max(1, round(hours * 3600 / step)), end, step)


def drawn_page(prometheus: PrometheusApi, namespace: str, span: Span) -> str:
    """Return the page for one cluster."""
    with step(f"Asking Prometheus at {prometheus.place} about the cluster in {namespace}") as progress:
        answers = []
        for dashboard in DASHBOARDS:
            answers.append((dashboard, _answers(prometheus, dashboard, namespace, span)))
            progress(dashboard.title)
    return page(namespace, prometheus.place, span, answers)


def query_text(expr: str, dashboard: Dashboard, namespace: str) -> str:
    """Return a query for one cluster. Grafana's selectors are set to all values."""
    text = expr.replace(HERE, f'namespace="{namespace}"')
    for variable in dashboard.variables:
        text = text.replace(f"${variable.name}", ".*")
    return text


def _answers(prometheus: PrometheusApi, dashboard: Dashboard, namespace: str, span: Span) -> Mapping[Panel, Answers]:
    def ask(panel: Panel) -> Answers:
        texts = [(query, query_text(query.expr, dashboard, namespace)) for query in panel.queries]
        if panel.kind in {PanelKind.LINES, PanelKind.STACK}:
            return [(query, prometheus.over_time(text, span)) for query, text in texts]
        return [(query, prometheus.now(text, span.end)) for query, text in texts]

    return {panel: ask(panel) for panel in dashboard.panels}


def _hours(text: str) -> float:
    hours = float(text)
    if not 0 < hours <= 24 * 366:
        raise argparse.ArgumentTypeError(f"got {text}, but it is a number of hours, above 0 and up to 8784")
    return hours


if __name__ == "__main__":
    sys.exit(console.run(main))
