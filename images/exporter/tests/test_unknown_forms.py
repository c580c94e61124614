"""Fields of Slurm's answers in an unknown form: left out, logged once, and named by a metric."""

import json
import math
from dataclasses import dataclass, field
from typing import Any

import pytest
from exporter_testing.answers import DIAG, NODES, job_line
from slurm_exporter.collection import Collector
from slurm_exporter.command import text_of
from slurm_exporter.samples import Samples

STATISTICS = json.loads(DIAG)["statistics"]
REASON = "health gpu_count: 7, allowed 8 [slurm@1795446127]"
THREADS = "slurm_server_thread_cnt"


@dataclass
class Rounds:
    """Rounds of one exporter, over the recorded answers with changes."""

    collector: Collector = field(default_factory=Collector)
    log: list[str] = field(default_factory=list)

    def next(self, nodes: str = NODES, jobs: bytes = b"", **statistics: object) -> Samples:
        """Return the metrics of all sources in another round. A statistic that is `...` is missing."""
        given = {name: value for name, value in {**STATISTICS, **statistics}.items() if value is not ...}
        answers = {
            "scontrol": nodes.encode(),
            "squeue": job_line() + jobs,
            "sdiag": json.dumps({"statistics": given}).encode(),
        }
        self.collector.round(lambda command: answers[command[0]], self.log.append)
        assert text_of(self.collector)
        found: Samples = {}
        for source in self.collector.sources:
            found |= source.samples
        return found

    @property
    def unread(self) -> set[tuple[str, str]]:
        """Sources and fields that the metric names."""
        text = text_of(self.collector).decode()
        lines = [line.split('"') for line in text.splitlines() if line.startswith("slurm_exporter_unread_values{")]
        return {(source, name) for _, name, _, source, _ in lines}

    @property
    def errors(self) -> dict[str, int]:
        return {source.name: source.errors for source in self.collector.sources if source.errors}


@pytest.mark.parametrize(
    ("form", "number"),
    [
        (3, 3),
        ("3", 3),
        ({"set": True, "infinite": False, "number": 3}, 3),
        ({"set": True, "infinite": True, "number": 0}, math.inf),
    ],
)
def test_a_number_of_slurmctld_is_read_in_every_form_of_slurm(form: object, number: float) -> None:
    rounds = Rounds()
    assert rounds.next(server_thread_count=form)[THREADS] == [((), number)]
    assert (rounds.unread, rounds.log) == (set(), [])


def test_a_number_that_is_not_set_has_no_metric_and_is_no_fault() -> None:
    rounds = Rounds()
    assert THREADS not in rounds.next(server_thread_count={"set": False, "infinite": False, "number": 0})
    assert (rounds.unread, rounds.log) == (set(), [])


@pytest.mark.parametrize("form", [None, ..., "many", [3], {"number": 3}, {"set": True, "infinite": False}, 10**400])
def test_a_number_of_slurmctld_in_an_unknown_form_costs_its_own_metric_alone(form: object) -> None:
    rounds = Rounds()
    found = rounds.next(server_thread_count=form)
    assert THREADS not in found
    assert found["slurm_sdiag_jobs_submitted"] == [((), 11)]
    assert (rounds.errors, rounds.unread) == ({}, {("scheduler", "server_thread_count")})


def test_an_answer_without_any_known_number_is_a_failure_of_its_source_alone() -> None:
    rounds = Rounds()
    unknown: dict[str, Any] = dict.fromkeys(STATISTICS, "many")
    found = rounds.next(**unknown)
    assert rounds.errors == {"scheduler": 1}
    assert {"slurm_nodes", "slurm_jobs"} <= found.keys()
    assert rounds.log == ["scheduler: ValueError: none of 15 statistics has a known form"]


@pytest.mark.parametrize(
    ("known", "changed", "name"),
    [
        ("CPUEfctv=2", "CPUEfctv=2.5", "CPUEfctv"),
        ("CPUEfctv=2", "CPUsEffective=2", "CPUEfctv"),
        ("AllocMem=512", "AllocMem=512M", "AllocMem"),
        ("State=MIXED+", "State=HIBERNATED+", "State"),
        ("State=MIXED+", "States=MIXED+", "State"),
        ("Gres=gpu:h100:8", "Gres=gpu:h100:all", "Gres"),
        ("NodeName=gpu-0", "Node=gpu-0", "line"),
    ],
)
def test_a_node_with_a_field_of_an_unknown_form_costs_no_other_node(known: str, changed: str, name: str) -> None:
    drained, other = NODES.splitlines()
    rounds = Rounds()
    found = rounds.next(nodes=f"{drained}\n{other.replace(known, changed)}")
    assert "gpu-1" in {labels[0] for labels, _ in found["slurm_node_info"]}
    assert (rounds.errors, rounds.unread) == ({}, {("nodes", name)})


def test_nodes_that_are_all_of_another_form_are_a_failure_of_their_source_alone() -> None:
    rounds = Rounds()
    found = rounds.next(nodes=NODES.replace("NodeName=", "Node: "))
    assert (rounds.errors, rounds.unread) == ({"nodes": 1}, {("nodes", "line")})
    assert {"slurm_jobs", THREADS} <= found.keys()


@pytest.mark.parametrize(
    ("columns", "name"),
    [
        ({"State": "HIBERNATED"}, "State"),
        ({"State": "RUNNING:2"}, "line"),
        ({"NumCPUs": "1.5K"}, "NumCPUs"),
        ({"tres-alloc": "mem=1.5X"}, "mem"),
        ({"tres-alloc": "gres/gpu=all"}, "gres/gpu"),
    ],
)
def test_a_job_with_a_column_of_an_unknown_form_costs_no_other_job(columns: dict[str, str], name: str) -> None:
    rounds = Rounds()
    found = rounds.next(jobs=job_line(JobID="9", **columns))
    assert found["slurm_jobs_running"][0][1] >= 1
    assert (rounds.errors, rounds.unread) == ({}, {("jobs", name)})


def test_a_field_is_logged_when_its_form_begins_to_be_unknown_and_not_at_every_round() -> None:
    rounds = Rounds()
    for _ in range(3):
        rounds.next(nodes=NODES.replace("State=MIXED+", "State=HIBERNATED+"))
    assert rounds.log == ["nodes: values of an unknown form, which metrics leave out: State 'HIBERNATED'"]
    rounds.next()
    assert rounds.unread == set()


@pytest.mark.parametrize("user", ["jane@ad.example.com", r"AD\jane", "1000", "nobody"])
def test_a_reason_is_read_with_its_time_whatever_user_has_set_it(user: str) -> None:
    rounds = Rounds()
    found = rounds.next(nodes=NODES.replace(REASON, f"bad dimm [{user}@1700000000]"))
    assert found["slurm_node_drain_since_seconds"] == [(("gpu-1", "admin", "", "", "bad dimm"), 1700000000)]
    assert rounds.unread == set()


def test_a_reason_whose_time_has_an_unknown_form_is_read_without_it() -> None:
    rounds = Rounds()
    found = rounds.next(nodes=NODES.replace("slurm@1795446127", "slurm@2026-11-23T15:02:07"))
    assert found["slurm_health_check_failed"] == [(("gpu-1", "gpu_count"), 1)]
    assert (rounds.errors, rounds.unread) == ({}, {("nodes", "Reason")})
