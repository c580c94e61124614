"""Stop of a worker's pod: its node is drained and its jobs are waited for."""

import pytest

from tests.unit.cluster.worker_container import POD_STOP, Worker


def test_a_pod_that_stops_drains_its_node_with_our_reason(worker: Worker) -> None:
    worker.node("IDLE+DYNAMIC_NORM")
    worker.stop()
    assert worker.changes() == [f"update nodename=cpu-4 state=drain reason={POD_STOP}"]


def test_a_node_that_is_going_to_be_resumed_is_not_drained_yet(worker: Worker) -> None:
    worker.node("IDLE+UNDRAIN")
    worker.stop()
    assert len(worker.changes()) == 1


@pytest.mark.parametrize("reason", ["disk is broken", "soperator-pulumi project.test.hpc: scale-down 1a2b3c", ""])
def test_a_drain_that_is_there_is_not_touched_by_a_pod_that_stops(worker: Worker, reason: str) -> None:
    worker.node("IDLE+DRAIN+DYNAMIC_NORM", reason)
    worker.stop()
    assert worker.changes() == []


@pytest.mark.parametrize("state", ["IDLE+FAIL", "DOWN+DYNAMIC_NORM", "DOWN*+DYNAMIC_NORM"])
def test_a_node_on_which_no_job_starts_keeps_its_state_and_reason(worker: Worker, state: str) -> None:
    worker.node(state, "disk is broken")
    worker.stop()
    assert worker.changes() == []


def test_a_pod_that_stops_waits_for_the_jobs_on_it(worker: Worker) -> None:
    worker.node("IDLE+DYNAMIC_NORM")
    worker.write(jobs="7\n7\n7\n")
    worker.stop()
    asked = [call for call in worker.calls.read_text().splitlines() if call.startswith("squeue ")]
    assert asked == ["squeue -h -o %A -w cpu-4"] * 4


def test_a_pod_that_stops_asks_again_while_slurmctld_does_not_answer(worker: Worker) -> None:
    worker.node("IDLE+DYNAMIC_NORM")
    worker.write(answers="5")
    worker.stop()
    assert len(worker.changes()) == 1


def test_a_pod_without_jobs_does_not_wait_for_a_slurmctld_that_is_gone(worker: Worker) -> None:
    worker.write(answers="1000")
    worker.stop()
    assert int((worker.root / "clock").read_text()) == 30


def test_a_pod_with_jobs_waits_for_slurmctld_as_long_as_they_run(worker: Worker) -> None:
    step = worker.root / "proc" / "42"
    step.mkdir()
    (step / "comm").write_text("slurmstepd\n")
    worker.node("IDLE+DYNAMIC_NORM")
    worker.write(answers="25")
    worker.stop()
    assert int((worker.root / "looks").read_text()) > 25
    assert len(worker.changes()) == 1


def test_a_pod_whose_node_slurm_does_not_know_stops_at_once(worker: Worker) -> None:
    worker.stop()
    assert worker.calls.read_text() == "show node cpu-4\n"
