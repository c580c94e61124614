"""The page of `make dashboard`, drawn from the answers of a Prometheus that runs."""

import json
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from soperator_pulumi.monitoring.dashboards import DASHBOARDS
from soperator_pulumi.monitoring.panels import Panel, PanelKind, Query, Unit
from soperator_pulumi.monitoring.recordings import RECORDINGS
from tests.unit.monitoring.running_prometheus import growing, running_prometheus
from tests.unit.monitoring.world import BUSY, NAMESPACE
from tests.waiting import wait_until
from tools import console
from tools.chosen_cluster import ChosenCluster
from tools.console import UserError
from tools.dashboard import __main__ as command
from tools.dashboard.amounts_text import in_words
from tools.dashboard.drawing import SHOWN_SERIES, draw, ticks
from tools.dashboard.found_prometheus import in_kubernetes, only_namespace
from tools.dashboard.prometheus_api import PrometheusApi, Series, Span, at_address

SPAN = Span(0, 600, 60)
OVER_TIME = {PanelKind.LINES, PanelKind.STACK}


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusApi]:
    """A Prometheus that has scraped a cluster with a bit of everything, so often that it has rates."""
    folder = tmp_path_factory.mktemp("prometheus")
    with running_prometheus(growing(BUSY), folder, "slurm_user:gpu_utilization:ratio") as api:
        lines = [f"count_over_time({recording.record}[10s]) >= 3" for recording in RECORDINGS]
        wait_until(lambda: all(api.now(line, time.time()) for line in lines), what="recorded series are lines")
        yield api


def test_the_command_writes_the_page(
    prometheus: PrometheusApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "new" / "page.html"
    words = ["--prometheus", prometheus.place, "--hours", "0.5", "--output", str(file)]
    monkeypatch.setattr(sys, "argv", ["dashboard", *words])
    assert console.run(command.main) == 0
    assert f"Open {file} in a browser." in capsys.readouterr().err
    assert "The last 30 min until" in file.read_text()


def test_the_page_has_every_panel_with_its_picture(prometheus: PrometheusApi) -> None:
    end = time.time()
    text = command.drawn_page(prometheus, NAMESPACE, Span(end - 10, end, 1))
    found = re.findall(
        r'(?s)<section [^>]*data-kind="(\w+)"><h4>([^<]*?)\s*(?:<small>.*?</small>)?</h4>(.*?)</section>', text
    )
    expected = [panel for dashboard in DASHBOARDS for panel in dashboard.panels]
    assert [(kind, unescape(title)) for kind, title, _ in found] == [(panel.kind, panel.title) for panel in expected]
    empty = [title for _, title, picture in found if "No data." in picture]
    assert empty == ["Restarts in a day", "Firing alerts"], "both take longer than this test"
    for kind, title, picture in found:
        if kind in OVER_TIME:
            drawing = ET.fromstring(picture[: picture.index("</svg>") + 6])  # noqa: S314 - our own
            lines = [
                element
                for element in drawing.iter()
                if element.tag.endswith("path") and "line" in element.get("class", "")
            ]
            assert lines, title


def test_the_page_runs_and_loads_nothing(prometheus: PrometheusApi) -> None:
    end = time.time()
    text = command.drawn_page(prometheus, NAMESPACE, Span(end - 10, end, 1))
    assert "<script" not in text
    assert "default-src 'none'" in text
    assert not re.findall(r'(?:src|href)="(?!#)', text)


def test_the_only_cluster_is_found(prometheus: PrometheusApi) -> None:
    assert only_namespace(prometheus, time.time()) == NAMESPACE


def test_several_clusters_are_named() -> None:
    def get(path: str) -> str:
        found = [{"metric": {"namespace": name}, "value": [0, "1"]} for name in ("b", "a")]
        return json.dumps({"status": "success", "data": {"result": found}})

    with pytest.raises(UserError, match=r"clusters in a, b\. Choose one: make dashboard NAMESPACE=a"):
        only_namespace(PrometheusApi(get, "here"), 0)


def test_a_prometheus_without_slurm_is_an_error_with_the_next_step() -> None:
    answer = json.dumps({"status": "success", "data": {"result": []}})
    with pytest.raises(UserError, match=r"has no metrics of a Slurm cluster\. Set `metrics`"):
        only_namespace(PrometheusApi(lambda _: answer, "here"), 0)


@pytest.mark.parametrize("answer", ["<html>", "[]", '{"status": "success", "data": null}'])
def test_an_answer_of_something_else_is_an_error(answer: str) -> None:
    with pytest.raises(UserError, match="does not answer like Prometheus"):
        PrometheusApi(lambda _: answer, "here").now("up", 0)


def test_a_query_that_prometheus_refuses_is_an_error(prometheus: PrometheusApi) -> None:
    with pytest.raises(UserError, match="refuses the query sum"):
        prometheus.now("sum(", time.time())


@pytest.mark.parametrize(
    "address",
    [
        *("localhost:9090", "file:///etc/passwd", "http://127.0.0.1:1"),
        *("http://[::1", "http://localhost:port", "http://a b"),
    ],
)
def test_a_wrong_address_is_an_error(address: str) -> None:
    with pytest.raises(UserError, match="PROMETHEUS"):
        at_address(address).now("up", 0)


def test_a_server_of_another_protocol_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        threading.Thread(target=greet, daemon=True).start()
        with pytest.raises(UserError, match=r"does not answer: SSH-2\.0.*Correct PROMETHEUS"):
            at_address(f"http://127.0.0.1:{server.getsockname()[1]}").now("up", 0)


def test_a_page_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"Is a directory\. Name a file"):
        command.write_page(tmp_path, "page")


def series(name: str, *values: float) -> Series:
    return Series({"node": name}, [(60.0 * index, value) for index, value in enumerate(values)])


def test_names_of_users_are_text_on_the_page() -> None:
    panel = Panel("x", PanelKind.LINES, (Query("up", "{{node}}"),))
    drawn = draw(panel, [(panel.queries[0], [series("<script>alert(1)</script>", 1, 2)])], SPAN)
    assert "<script>" not in drawn
    assert "&lt;script&gt;" in drawn


def test_of_many_series_the_largest_are_drawn_and_the_others_counted() -> None:
    panel = Panel("x", PanelKind.LINES, (Query("up", "{{node}}"),))
    many = [series(f"n{number}", number, number) for number in range(1, SHOWN_SERIES + 6)]
    drawn = draw(panel, [(panel.queries[0], many)], SPAN)
    assert "and 5 smaller series" in drawn
    assert [name for name in ("n1<", "n5<", "n6<", "n17<") if name in drawn] == ["n6<", "n17<"]


def test_a_gap_is_a_gap() -> None:
    panel = Panel("x", PanelKind.LINES, (Query("up", "a"),))
    whole = Series({}, [(60.0 * index, 1.0) for index in range(11)])
    broken = Series({}, [point for point in whole.points if point[0] not in {240, 300}])
    paths = [draw(panel, [(panel.queries[0], [item])], SPAN).count("<path") for item in (whole, broken)]
    assert paths[1] > paths[0]


def test_a_table_joins_the_answers_by_their_labels() -> None:
    panel = Panel("x", PanelKind.TABLE, (Query("a", "CPUs"), Query("b", "used", Unit.RATIO)), labels=("node",))
    drawn = draw(
        panel, [(panel.queries[0], [series("n1", 8), series("n2", 4)]), (panel.queries[1], [series("n1", 0.5)])], SPAN
    )
    rows = re.findall(r"<tr>(.*?)</tr>", drawn)
    assert [re.findall(r"<t[hd][^>]*>(.*?)</t", row) for row in rows] == [
        ["node", "CPUs", "used"],
        ["n1", "8", "50 %"],
        ["n2", "4", ""],
    ]


@pytest.mark.parametrize(("value", "state"), [(0, "good"), (5, "warn"), (50, "bad")])
def test_a_number_has_the_colour_of_its_limits(value: float, state: str) -> None:
    panel = Panel("x", PanelKind.NUMBER, (Query("a"),), warn=5, bad=50)
    assert f'class="number {state}"' in draw(panel, [(panel.queries[0], [series("n", value)])], SPAN)


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (0.123, Unit.RATIO, "12.3 %"),
        (1536, Unit.BYTES, "1.5 KiB"),
        (90, Unit.SECONDS, "1.5 min"),
        (0, Unit.SECONDS, "0 s"),
        (12_000, Unit.MICROSECONDS, "12 ms"),
        (700, Unit.WATT, "700 W"),
        (12_345, Unit.WATT, "12.3 kW"),
        (5000, Unit.COUNT, "5 k"),
        (3 * 1024**3, Unit.BYTES_PER_SECOND, "3 GiB/s"),
    ],
)
def test_a_value_is_in_words_with_its_unit(value: float, unit: Unit, words: str) -> None:
    assert in_words(value, unit) == words


@pytest.mark.parametrize(
    ("top", "scale"), [(0, [0, 1]), (3, [0, 1, 2, 3]), (100, [0, 25, 50, 75, 100]), (0.55, [0, 0.2, 0.4, 0.6])]
)
def test_a_scale_has_round_steps_and_holds_the_largest_value(top: float, scale: list[float]) -> None:
    assert ticks(top) == pytest.approx(scale)


def test_without_any_kubernetes_the_command_names_what_it_needs(tmp_path: Path) -> None:
    nowhere = ChosenCluster(tmp_path / "kubeconfig", None, None, tmp_path)
    with pytest.raises(UserError, match="PROMETHEUS=http://localhost:9090"):
        in_kubernetes(nowhere)
