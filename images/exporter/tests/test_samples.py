"""Metrics of real answers of Slurm 24.11, and of faults."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from exporter_testing.answers import DIAG, NODES, job_line
from prometheus_client.parser import text_string_to_metric_families
from slurm_exporter import container_reports, job_rows, long_reports, node_rows, published_store, scheduler_samples
from slurm_exporter.background_reading import BackgroundReading
from slurm_exporter.collection import Collector
from slurm_exporter.command import text_of
from slurm_exporter.metric_table import METRICS
from slurm_exporter.node_rows import NodeRow
from slurm_exporter.samples import Unread

from container_images.node_report import RESULTS

Values = dict[tuple[str, frozenset[tuple[str, str]]], float]


def answers(jobs: Sequence[bytes] = (), nodes: str = NODES) -> dict[str, bytes]:
    return {"scontrol": nodes.encode(), "squeue": b"".join(jobs), "sdiag": DIAG.encode()}


def scraped(given: dict[str, bytes], collector: Collector | None = None) -> Values:
    """Return what Prometheus reads after a round, by name and labels."""
    collector = collector or Collector()

    def run(command: Sequence[str]) -> bytes:
        if command[0] not in given:
            raise subprocess.CalledProcessError(1, [*command], stderr=b"slurm_load_jobs error: Unable to contact\n")
        return given[command[0]]

    collector.round(run, lambda _: None)
    families = text_string_to_metric_families(text_of(collector).decode())
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def value(values: Values, name: str, **labels: str) -> float:
    return values[name, frozenset(labels.items())]


def row(state: str, reason: str = "") -> NodeRow:
    """Return the second of the real nodes, in another state."""
    line = NODES.splitlines()[1].replace("State=MIXED+DYNAMIC_NORM", f"State={state}")
    return next(node_rows.parse(f"{line} Reason={reason} [root@1795446127]" if reason else line, Unread()))


def test_nodes_have_their_cpus_memory_gpus_and_node_set() -> None:
    values = scraped(answers())

    assert value(values, "slurm_nodes") == 2
    assert value(values, "slurm_node_cpus", node="gpu-1") == 2
    assert value(values, "slurm_node_memory_bytes", node="gpu-1") == 1024 * 1024**2
    assert value(values, "slurm_node_memory_alloc_bytes", node="gpu-0") == 512 * 1024**2
    assert value(values, "slurm_node_gpus", node="gpu-0") == 8
    assert value(values, "slurm_node_gpus_alloc", node="gpu-0") == 3
    assert value(values, "slurm_node_info", node="gpu-0", node_set="gpu") == 1
    assert value(values, "slurm_partition_gpus", partition="main") == 16


def test_cpus_of_reserved_cores_are_not_counted() -> None:
    values = scraped(answers(nodes=NODES.replace("CPUEfctv=2 CPUTot=2", "CPUEfctv=1 CPUTot=2")))

    assert value(values, "slurm_node_cpus", node="gpu-1") == 1
    assert value(values, "slurm_partition_cpus", partition="main") == 2


def test_a_node_that_a_health_check_drained_is_counted_and_named() -> None:
    values = scraped(answers())

    assert (value(values, "slurm_nodes_drained"), value(values, "slurm_nodes_draining")) == (1, 0)
    assert value(values, "slurm_node_unavailable", node="gpu-1") == 1
    assert value(values, "slurm_health_check_failed", node="gpu-1", check="gpu_count") == 1
    since = value(
        values,
        "slurm_node_drain_since_seconds",
        node="gpu-1",
        source="health",
        operation="",
        check="gpu_count",
        reason="health gpu_count: 7, allowed 8",
    )
    assert since == 1795446127


def test_a_drain_that_asks_for_another_machine_has_a_metric_and_no_other_drain_has() -> None:
    assert not [name for name, _ in scraped(answers()) if name == "slurm_health_replace_machine"]

    reason = "gpu_remap_failed: failed on GPU 2 (replace the machine), allowed none"
    asked = NODES.replace("gpu_count: 7, allowed 8", reason)
    values = scraped(answers(nodes=asked))
    assert value(values, "slurm_health_replace_machine", node="gpu-1", check="gpu_remap_failed") == 1

    by_admin = NODES.replace("health gpu_count: 7, allowed 8", "disk, see 4711 (replace the machine), allowed to wait")
    assert not [name for name, _ in scraped(answers(nodes=by_admin)) if name == "slurm_health_replace_machine"]


def test_findings_that_drain_nothing_are_named_and_texts_of_admins_are_none() -> None:
    values = scraped(
        answers(nodes=NODES.replace("Partitions=main  BootTime", "Extra=health Partitions=main  BootTime", 1))
    )
    assert not [labels for name, labels in values if name == "slurm_health_finding"]
    found = {dict(labels)["check"] for name, labels in scraped(answers()) if name == "slurm_health_finding"}
    assert found == {"gpu_slowdown", "clock"}


def test_results_of_long_checks_are_those_of_the_reports_of_present_nodes(tmp_path: Path) -> None:
    result = {"time": 1795446000.5, "passed": True, "value": 12.5, "result": "12.5 GB/s", "job": 7}
    failed = result | {"passed": False, "value": None}
    for check, nodes in {
        "memory_bandwidth": {"gpu-1": result, "gone-0": result},
        "gpu_diagnostics": {"gpu-0": failed},
    }.items():
        (tmp_path / check).mkdir()
        (tmp_path / check / "last.json").write_text(json.dumps({"format": 1, "nodes": nodes}))
    said: list[str] = []
    reports = BackgroundReading("long checks", lambda: long_reports.read(tmp_path), said.append)
    reports.take()
    values = scraped(answers(), Collector(reports=reports))

    of_memory = {"node": "gpu-1", "check": "memory_bandwidth"}
    assert value(values, "slurm_long_check_passed", **of_memory) == 1
    assert value(values, "slurm_long_check_value", **of_memory) == 12.5
    assert value(values, "slurm_long_check_time_seconds", **of_memory) == 1795446000.5
    assert value(values, "slurm_long_check_passed", node="gpu-0", check="gpu_diagnostics") == 0
    assert not [labels for name, labels in values if "gone-0" in dict(labels).values()]

    (tmp_path / "memory_bandwidth" / "last.json").write_text("{")
    reports.take()
    reports.take()
    assert len(said) == 1
    assert (
        scraped(answers(), Collector(reports=reports)).items()
        >= {("slurm_long_check_passed", frozenset(of_memory.items())): 1}.items()
    )


def test_shared_images_have_a_size_by_name_and_the_store_one_with_former_images(tmp_path: Path) -> None:
    digests = {name: f"sha256:{name * 64}" for name in "abc"}
    for name, size in (("a", 1000), ("b", 20)):
        folder = tmp_path / "images" / f"{name * 64}.x86_64"
        folder.mkdir(parents=True)
        (folder / "size").write_text(str(size))
        os.utime(folder / "size", (5, 5))
    names = {"r.example.com/a:1": digests["a"], "r.example.com/same:1": digests["a"], "r.example.com/c:1": digests["c"]}
    (tmp_path / "names.json").write_text(json.dumps(names))
    images = BackgroundReading("images", lambda: published_store.read(tmp_path), print)
    images.take()
    values = scraped(answers(), Collector(images=images))

    assert {dict(labels)["image"] for name, labels in values if name == "slurm_container_image_bytes"} == {
        *("r.example.com/a:1", "r.example.com/same:1")
    }
    assert value(values, "slurm_container_image_bytes", image="r.example.com/a:1") == 1000
    assert value(values, "slurm_container_image_time_seconds", image="r.example.com/a:1") == 5
    assert value(values, "slurm_container_store_bytes") == 1020
    assert value(values, "slurm_container_store_images") == 2


def test_a_size_that_a_loss_of_power_has_left_empty_hides_no_other_image(tmp_path: Path) -> None:
    for name, size in (("a", ""), ("b", "20")):
        folder = tmp_path / "images" / f"{name * 64}.x86_64"
        folder.mkdir(parents=True)
        (folder / "size").write_text(size)

    assert published_store.read(tmp_path)["slurm_container_store_bytes"] == [((), 20)]


def test_a_store_that_is_not_filled_yet_has_no_images(tmp_path: Path) -> None:
    assert published_store.read(tmp_path) == {
        "slurm_container_store_images": [((), 0)],
        "slurm_container_store_bytes": [((), 0)],
    }


def report(store: Path, node: str, copies: dict[str, int] | None = None) -> None:
    starts = {"present": 5, "brought": 2, "failed": 1}
    text = {"starts": starts, "brought_bytes": 5096, "brought_seconds": 2.5, "copies": copies}
    (store / "nodes").mkdir(exist_ok=True)
    (store / "nodes" / f"{node}.json").write_text(json.dumps(text))


def test_nodes_report_their_starts_of_containers_and_their_copies(tmp_path: Path) -> None:
    report(tmp_path, "gpu-0", {"images": 3, "bytes": 900})
    report(tmp_path, "gpu-1")
    report(tmp_path, "gone-0")
    containers = BackgroundReading("containers", lambda: container_reports.read(tmp_path), print)
    containers.take()
    values = scraped(answers(), Collector(containers=containers))

    starts = {result: value(values, "slurm_container_starts_total", node="gpu-0", result=result) for result in RESULTS}
    assert starts == {"present": 5, "brought": 2, "failed": 1}
    assert value(values, "slurm_container_brought_bytes_total", node="gpu-0") == 5096
    assert value(values, "slurm_container_brought_seconds_total", node="gpu-0") == 2.5
    assert value(values, "slurm_container_copies", node="gpu-0") == 3
    assert value(values, "slurm_container_copies_bytes", node="gpu-0") == 900
    of_containers = {dict(labels)["node"] for name, labels in values if name.startswith("slurm_container_")}
    assert of_containers == {"gpu-0", "gpu-1"}, "a node that has left has none"
    assert len([labels for name, labels in values if name == "slurm_container_copies"]) == 1


@pytest.mark.parametrize("text", ["", "null", "[]", '{"starts": {}}', '{"starts": 5, "copies": 5}', "\0"])
def test_a_report_of_another_form_hides_no_other_node(tmp_path: Path, text: str) -> None:
    report(tmp_path, "gpu-0")
    (tmp_path / "nodes/gpu-1.json").write_text(text)

    found = container_reports.read(tmp_path)
    assert {labels[0] for values in found.values() for labels, _ in values} == {"gpu-0"}


def test_the_exporter_and_the_nodes_mean_the_same_results() -> None:
    assert container_reports.RESULTS == RESULTS


@pytest.mark.parametrize(
    ("reason", "source", "operation"),
    [
        ("soperator-pulumi hpc: scale-down 1a2b3c (was: disk)", "deployment", "scale-down"),
        ("soperator-pulumi project.dev.hpc: pod-stop", "deployment", "pod-stop"),
        ("hook scratch-mounted: /mnt/scratch is not mounted", "hook", "scratch-mounted"),
        ("sent for repair [ticket=7] State=IDLE", "admin", ""),
        ("health gpu_count: 7, allowed 8", "health", ""),
        ("health: not verified, passed memory_bandwidth", "health", ""),
    ],
)
def test_drains_are_told_apart_by_their_reasons(reason: str, source: str, operation: str) -> None:
    node = row("MIXED+DRAIN+DYNAMIC_NORM", reason)

    assert (node.drain_source, node.operation, node.reason) == (source, operation, reason)
    assert (node.state, node.is_busy) == ("mixed", True)


@pytest.mark.parametrize("state", ["DOWN+DYNAMIC_NORM", "IDLE+NOT_RESPONDING", "IDLE*+DYNAMIC_NORM", "IDLE+DRAIN"])
def test_a_node_that_takes_no_job_is_unavailable(state: str) -> None:
    assert row(state).is_unavailable
    assert not row("IDLE+DYNAMIC_NORM").is_unavailable


def test_running_jobs_have_their_owner_their_nodes_and_their_resources() -> None:
    values = scraped(answers([job_line()]))

    labels = {"job_id": "7", "job_name": "a b=c|d", "username": "alice", "account": "physics", "partition": "main"}
    assert value(values, "slurm_job_info", **labels, state="running", reason="") == 1
    assert value(values, "slurm_job_node", job_id="7", node="gpu-0") == 1
    assert value(values, "slurm_job_node", job_id="7", node="gpu-3") == 1
    assert value(values, "slurm_job_gpus", job_id="7") == 16
    assert value(values, "slurm_job_memory_bytes", job_id="7") == 1.5 * 1024**4
    assert value(values, "slurm_job_start_time_seconds", job_id="7") == 1795446130
    assert value(values, "slurm_user_jobs_gpus_alloc", username="alice") == 16


def test_pending_jobs_are_counted_by_task_and_reason_and_the_oldest_is_known() -> None:
    waiting = {"State": "PENDING", "Reason": "Resources", "StartTime": "N/A", "NodeList": "", "tres-alloc": ""}
    held = waiting | {"JobID": "9", "Reason": "JobHeldUser", "SubmitTime": "1"}
    array = waiting | {"JobID": "8", "JobArrayID": "8_[0-9,20-30:5%4]", "SubmitTime": "1795446000"}
    values = scraped(answers([job_line(**waiting), job_line(**held), job_line(**array)]))

    assert value(values, "slurm_jobs_pending") == 1 + 1 + 13
    assert value(values, "slurm_jobs_hold") == 1
    assert value(values, "slurm_jobs_pending_by_reason", reason="Resources") == 14
    assert value(values, "slurm_jobs_oldest_pending_submit_time_seconds", partition="main") == 1795446000


def test_ended_jobs_are_counted_and_have_no_series_of_their_own() -> None:
    values = scraped(answers([job_line(State="OUT_OF_MEMORY")]))

    assert value(values, "slurm_jobs_outofmemory") == 1
    assert not [name for name, _ in values if name.startswith(("slurm_job_", "slurm_user_"))]


def test_a_name_that_a_user_has_chosen_is_never_another_column() -> None:
    forged = "x RUNNING root physics" + " " * 40 + "7"
    (job,) = job_rows.parse([job_line(Name=forged, State="PENDING")], Unread())

    assert (job.user, job.state) == ("alice", "PENDING")


def test_a_name_with_line_ends_is_neither_another_job_nor_the_end_of_all_metrics() -> None:
    rows = b"".join([job_line(Name="a\n8 root\nx"), job_line(JobID="9")]).splitlines(keepends=True)

    assert [(row.job_id, row.name) for row in job_rows.parse(rows, Unread())] == [("7", "a"), ("9", "a b=c|d")]


@pytest.mark.parametrize("account", ["a\nb", "\n", "\n7", "\n7           root   physics"])
def test_an_account_with_line_ends_is_neither_another_job_nor_the_end_of_all_metrics(account: str) -> None:
    rows = b"".join([job_line(JobID="8", Account=account), job_line(JobID="9")]).splitlines(keepends=True)

    assert [row.job_id for row in job_rows.parse(rows, Unread())] == ["9"]


def test_slurmctld_s_own_figures_are_those_of_sdiag() -> None:
    values = scraped(answers())

    assert value(values, "slurm_sdiag_jobs_submitted") == 11
    assert value(values, "slurm_bf_cycle_last") == 2024
    assert value(values, "slurm_up") == 1


def test_without_an_answer_old_values_are_gone_and_the_failure_is_counted() -> None:
    collector = Collector()
    scraped(answers([job_line()]), collector)
    values = scraped({}, collector)

    assert value(values, "slurm_up") == 0
    assert value(values, "slurm_exporter_errors_total", source="jobs") == 1
    assert ("slurm_nodes", frozenset()) not in values
    assert value(values, "slurm_exporter_last_success_time_seconds", source="nodes") > 0


def test_a_failure_is_reported_when_it_begins_and_not_at_each_round() -> None:
    said: list[str] = []

    def fails(command: Sequence[str]) -> bytes:
        raise subprocess.TimeoutExpired([*command], 25)

    collector = Collector()
    for _ in range(3):
        collector.round(fails, said.append)

    assert said == [f"{name}: {program} did not answer in 25 s" for name, program in SAID]


SAID = [("nodes", "scontrol"), ("jobs", "squeue"), ("scheduler", "sdiag")]


def test_every_metric_that_is_made_is_in_the_table_and_has_its_labels() -> None:
    collector = Collector()
    values = scraped(answers([job_line(), job_line(State="PENDING", Reason="Resources")]), collector)

    made = {(name, tuple(sorted(key for key, _ in labels))) for name, labels in values}
    assert made <= {(name, tuple(sorted(metric.labels))) for name, metric in METRICS.items()}
    never = {name for name in METRICS if name not in {text for text, _ in made}}
    at_faults = ("slurm_health_replace_machine", "slurm_exporter_unread_values")
    at_volumes = ("slurm_long_check_", "slurm_container_")
    optional = (*at_volumes, "slurm_rest_certificate_", "slurm_exporter_node_condition", *at_faults)
    assert never <= {name for name in METRICS if name.endswith("_hold") or name.startswith(optional)}


def test_garbage_is_a_failure_of_the_call() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        scheduler_samples.parse("no json", Unread())
    assert [*node_rows.parse("No nodes in the system", Unread())] == []
