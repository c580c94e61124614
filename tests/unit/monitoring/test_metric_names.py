"""Metrics that rules and dashboards read: each is one that some exporter has, or that a rule records."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from exporter_testing.answers import DIAG, NODES, job_line
from exporter_testing.tls_server import certificate, served
from slurm_exporter import container_reports, long_reports, published_store, served_certificate
from slurm_exporter.background_reading import BackgroundReading
from slurm_exporter.collection import Collector
from slurm_exporter.metric_table import METRICS

from soperator_pulumi.monitoring.alerts import ALERTS
from soperator_pulumi.monitoring.dashboards import DASHBOARDS
from soperator_pulumi.monitoring.other_exporters import OTHER_EXPORTERS
from soperator_pulumi.monitoring.recordings import RECORDINGS
from tests.unit.monitoring.faults_in_metrics import FAULTS
from tests.unit.monitoring.promql import metrics
from tests.unit.monitoring.world import BUSY


def queries() -> Iterator[str]:
    yield from (alert.expr for alert in (*ALERTS, *RECORDINGS))
    yield from (query.expr for dashboard in DASHBOARDS for panel in dashboard.panels for query in panel.queries)
    yield from (variable.metric for dashboard in DASHBOARDS for variable in dashboard.variables)


USED = {name for query in queries() for name in metrics(query)}
OTHERS = {name for names in OTHER_EXPORTERS.values() for name in names}
RECORDED = {recording.record for recording in RECORDINGS}


def test_names_of_metrics_are_found_in_a_query() -> None:
    query = 'sum by (node) (rate(a_total{x="b c"}[5m]) * on (d) group_left (e) max(f:g:h)) / 2 > bool 1 or vector(0)'
    assert metrics(query) == {"a_total", "f:g:h"}


def test_every_metric_of_others_is_read_and_in_the_list() -> None:
    assert {name for name in USED if not name.startswith("slurm_")} == OTHERS


def test_every_metric_of_slurm_is_one_of_the_exporter() -> None:
    assert {name for name in USED if name.startswith("slurm_") and ":" not in name} <= METRICS.keys()


def test_the_exporter_has_every_metric_of_slurm_in_its_answers(tmp_path: Path) -> None:
    waiting = job_line(JobID="8", JobArrayID="8", State="PENDING", Reason="Priority", StartTime="N/A", NodeList="")
    answers = {"scontrol": NODES.encode(), "squeue": job_line() + waiting, "sdiag": DIAG.encode()}
    (tmp_path / "memory_bandwidth").mkdir()
    result = {"gpu-0": {"time": 1795446000, "passed": True, "value": 12.5}}
    (tmp_path / "memory_bandwidth" / "last.json").write_text(json.dumps({"nodes": result}))
    reports = BackgroundReading("long checks", lambda: long_reports.read(tmp_path), print)
    reports.take()
    store = tmp_path / "store"
    (store / "images/a.x86_64").mkdir(parents=True)
    (store / "images/a.x86_64/size").write_text("1000")
    (store / "names.json").write_text(json.dumps({"docker.io/team/tools:1": "sha256:a"}))
    images = BackgroundReading("images", lambda: published_store.read(store), print)
    images.take()
    (store / "nodes").mkdir()
    starts = dict.fromkeys(container_reports.RESULTS, 1)
    report = {"starts": starts, "brought_bytes": 1, "brought_seconds": 1, "copies": {"images": 1, "bytes": 1}}
    (store / "nodes/gpu-0.json").write_text(json.dumps(report))
    containers = BackgroundReading("containers", lambda: container_reports.read(store), print)
    containers.take()
    with served(certificate(datetime(2030, 1, 1, tzinfo=UTC)), tmp_path) as address:
        tls = BackgroundReading("REST certificate", lambda: served_certificate.read(address), print)
        tls.take()
    collector = Collector(reports=reports, images=images, containers=containers, certificate=tls)
    collector.round(lambda command: answers[command[0]], lambda _: None)
    emitted = {sample.name for family in collector.collect() for sample in family.samples}
    assert {name for name in USED if name.startswith("slurm_") and ":" not in name} <= emitted


def test_series_of_the_tests_have_the_exporter_s_names_and_labels() -> None:
    of_scrape = {"namespace", "job", "instance", "pod"}
    for text in (*BUSY, *(name for fault in FAULTS.values() for name in fault.world)):
        name, _, labels = text.partition("{")
        if name.startswith("slurm_"):
            assert set(re.findall(r"(\w+)=", re.sub(r'"[^"]*"', '""', labels))) == {
                *METRICS[name].labels,
                *of_scrape,
            }, text


def test_every_recorded_series_is_read() -> None:
    assert {name for name in USED if ":" in name} <= RECORDED
    assert {"slurm_node:gpu_memory_free:bytes", "slurm_node:gpu_uncorrectable_rows:count"} == RECORDED - USED


def test_the_worlds_of_the_tests_have_no_other_metrics() -> None:
    named = {name.partition("{")[0] for name in BUSY}
    assert {name for name in named if not name.startswith("slurm_")} <= OTHERS | {"kube_cronjob_created"}
