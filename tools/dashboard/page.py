"""The page: all dashboards of one cluster, one below the other, in one file that loads nothing."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from html import escape

from soperator_pulumi.monitoring.panels import Dashboard, Panel, Unit
from tools.dashboard.amounts_text import in_words
from tools.dashboard.drawing import Answers, draw
from tools.dashboard.prometheus_api import Span

_STYLE = """
:root { color-scheme: light dark; --back: #f4f5f7; --card: #fff; --text: #22262b; --soft: #6a737d; --line: #d9dde2 }
@media (prefers-color-scheme: dark) {
  :root { --back: #14171b; --card: #1e2228; --text: #dde1e6; --soft: #939ba5; --line: #343a42 } }
body { margin: 0 auto; padding: 1rem; max-width: 1500px; background: var(--back); color: var(--text);
  font: 14px/1.4 system-ui, sans-serif }
h1 { font-size: 1.4rem } h2 { margin-top: 2.5rem } h3 { color: var(--soft) } nav a { margin-right: 1rem }
.row { display: grid; grid-template-columns: repeat(24, 1fr); gap: .6rem }
section { background: var(--card); border: 1px solid var(--line); border-radius: 4px; padding: .6rem; min-width: 0 }
section h4 { margin: 0 0 .3rem } small { font-weight: 400 } section p, small { color: var(--soft); margin: 0 }
svg { width: 100%; height: auto; color: var(--text) }
section .number { font-size: 2rem }
section .good { color: #2f8f4e } section .warn { color: #b5790b } section .bad { color: #cf3d3d }
.legend span { margin-right: .8rem; overflow-wrap: anywhere }
.legend i { display: inline-block; width: .7rem; height: .7rem; margin-right: .3rem }
.bars { list-style: none; margin: 0; padding: 0 } .bars span { color: var(--text); overflow-wrap: anywhere }
.bars li { display: grid; grid-template-columns: 9rem 1fr 5rem; gap: .5rem }
.bars i { background: currentColor; opacity: .75; height: .9rem; align-self: center } .bars b { text-align: right }
.table { overflow-x: auto } table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: .15rem .6rem .15rem 0; border-bottom: 1px solid var(--line) }
td.value, th.value { text-align: right }
@media (max-width: 900px) { section { grid-column: 1 / -1 !important } }
"""

_SECURITY = "default-src 'none'; style-src 'unsafe-inline'"
"""Content policy of the page: labels of series are user-chosen text, and nothing in it may run or load."""


def page(cluster: str, place: str, span: Span, drawn: Iterable[tuple[Dashboard, Mapping[Panel, Answers]]]) -> str:
    """Return the page.

    Args:
        cluster: Namespace of the cluster.
        place: Place of the Prometheus server.
        span: Span of time of the charts.
        drawn: Dashboards, with the answers to the queries of their panels.
    """
    parts = [(dashboard, _dashboard(dashboard, answers, span)) for dashboard, answers in drawn]
    links = "".join(f'<a href="#{dashboard.uid}">{escape(dashboard.title)}</a>' for dashboard, _ in parts)
    end = datetime.fromtimestamp(span.end, UTC).strftime("%d %b %Y, %H:%M UTC")
    length = in_words(span.end - span.start, Unit.SECONDS)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_SECURITY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Slurm: {escape(cluster)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>Slurm cluster in {escape(cluster)}</h1>"
        f"<p>The last {length} until {end}, from Prometheus at {escape(place)}. All times are UTC.</p>"
        f"<nav>{links}</nav>" + "".join(text for _, text in parts) + "</body></html>\n"
    )


def _dashboard(dashboard: Dashboard, answers: Mapping[Panel, Answers], span: Span) -> str:
    rows = "".join(
        f'<h3>{escape(row.title)}</h3><div class="row">'
        + "".join(_card(panel, draw(panel, answers[panel], span)) for panel in row.panels)
        + "</div>"
        for row in dashboard.rows
    )
    return f'<h2 id="{dashboard.uid}">{escape(dashboard.title)}</h2><p>{escape(dashboard.about)}</p>{rows}'


def _card(panel: Panel, picture: str) -> str:
    about = f" <small>{escape(panel.about)}</small>" if panel.about else ""
    return (
        f'<section style="grid-column: span {panel.width}" data-kind="{panel.kind}">'
        f"<h4>{escape(panel.title)}{about}</h4>{picture}</section>"
    )
