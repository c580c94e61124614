"""A worker that has started: its own drain is undone, a new node put into service, nothing else touched."""

import pytest

from soperator_pulumi.cluster.worker_scripts import (
    NEWCOMER_SECONDS,
)
from tests.unit.cluster.worker_container import OWNER, POD_START, POD_STOP, Worker


@pytest.mark.parametrize("reason", [POD_STOP, f"{POD_STOP} : Not responding"])
def test_a_worker_that_is_there_again_undoes_its_own_drain(worker: Worker, reason: str) -> None:
    worker.node("IDLE+DRAIN+DYNAMIC_NORM", reason)
    assert worker.started() == 0
    assert worker.changes() == ["update nodename=cpu-4 state=undrain reason=none"]


@pytest.mark.parametrize(
    "reason",
    [
        "disk is broken",
        "soperator-pulumi project.test.hpc: scale-down 1a2b3c",
        "soperator-pulumi project.test.hpc2: pod-stop",
        "soperator-pulumi project.test.hpc: pod-stop, but really broken",
        f"not {POD_STOP}",
        f"{POD_STOP} : Kill task failed",
        "disk is broken : Not responding",
        "",
    ],
)
def test_a_worker_that_is_there_again_undoes_no_drain_of_anybody_else(worker: Worker, reason: str) -> None:
    worker.node("IDLE+DRAIN+DYNAMIC_NORM", reason)
    assert worker.started() == 0
    assert worker.changes() == []


@pytest.mark.parametrize("state", ["DOWN*+DYNAMIC_NORM", "IDLE+DRAIN+FAIL", "IDLE+FAIL"])
def test_a_reason_by_checks_on_a_node_that_is_not_drained_by_us_is_left(worker: Worker, state: str) -> None:
    worker.node(state, POD_STOP)
    assert worker.started() == 0
    assert worker.changes() == []


def test_a_worker_ends_its_own_down_that_slurm_has_kept(worker: Worker) -> None:
    worker.node("DOWN+DYNAMIC_NORM", POD_START)
    assert worker.started() == 0
    assert worker.changes() == ["update nodename=cpu-4 state=resume"]


def test_a_worker_that_was_drained_as_it_stopped_ends_its_own_down_too(worker: Worker) -> None:
    worker.node("DOWN+DRAIN+DYNAMIC_NORM", POD_STOP)
    assert worker.started() == 0
    assert worker.changes()[-1] == "update nodename=cpu-4 state=resume"


@pytest.mark.parametrize(("state", "reason"), [("DOWN", "disk is broken"), ("DOWN+DRAIN", POD_START)])
def test_a_worker_leaves_a_node_down_for_another_reason_or_drained(worker: Worker, state: str, reason: str) -> None:
    worker.node(state, reason)
    assert worker.started() == 0
    assert not [change for change in worker.changes() if "state=resume" in change]


def test_a_worker_has_started_when_slurmd_answers_and_slurm_does_not_know_the_node_yet(worker: Worker) -> None:
    assert worker.started() == 0


def test_a_worker_has_not_started_while_slurmd_or_slurmctld_does_not_answer(worker: Worker) -> None:
    worker.write(slurmd="1")
    worker.node("IDLE")
    assert worker.started() != 0
    worker.write(slurmd="0", answers="1000")
    assert worker.started() != 0


def test_a_new_node_puts_itself_into_service_after_a_while(worker: Worker) -> None:
    worker.write(answers="2")
    worker.node("IDLE+DRAIN+DYNAMIC_NORM", POD_START)
    assert worker.put_into_service() >= NEWCOMER_SECONDS
    assert worker.changes() == ["update nodename=cpu-4 state=undrain reason=none"]


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("IDLE", "none"),
        ("IDLE", POD_START),
        ("IDLE+DRAIN", f"soperator-pulumi {OWNER}: scale-down 1a2b3c"),
        ("IDLE+DRAIN", f"{POD_START} and the disk is broken"),
        ("IDLE+DRAIN", POD_STOP),
        ("IDLE+FAIL+DRAIN", POD_START),
    ],
)
def test_it_touches_no_other_drain(worker: Worker, state: str, reason: str) -> None:
    worker.node(state, reason)
    worker.put_into_service()
    assert worker.changes() == []


def test_it_ends_when_slurmctld_does_not_know_the_node_any_more(worker: Worker) -> None:
    worker.node("IDLE+DRAIN", POD_START)
    worker.write(**{"bin/sleep": '#!/bin/sh\n[ "$1" -lt 100 ] || rm node\n'})
    assert worker.put_into_service() == 0
    assert worker.changes() == []
