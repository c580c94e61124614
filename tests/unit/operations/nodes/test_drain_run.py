"""Freeing nodes: what is asked, how long it takes, what becomes of jobs, what it says."""

import json
import re
from collections.abc import Sequence
from itertools import pairwise

import pytest

from soperator_pulumi.errors import DrainError, RunCancelledError
from soperator_pulumi.operations.nodes.drained_nodes import DrainResult
from soperator_pulumi.operations.nodes.undrain import continue_or_undo
from soperator_pulumi.slurm.drain.reason import Operation
from soperator_pulumi.slurm.transport import Answer
from tests.unit.operations.nodes.bench import Bench, a_policy, leaving, lost


def test_idle_nodes_are_free_after_four_calls_of_scontrol(bench: Bench) -> None:
    assert bench.free("gpu-2", "gpu-3") == DrainResult(frozenset({"gpu-2", "gpu-3"}))
    assert [kind for kind in bench.kinds() if kind.startswith("scontrol")] == [
        "scontrol show",
        "scontrol show",
        "scontrol update",
        "scontrol show",
    ]
    assert bench.world.time < 1


def test_a_node_is_free_when_its_job_has_ended(bench: Bench) -> None:
    job = bench.submit(width=4, seconds=100)
    assert bench.free("gpu-3").free == {"gpu-3"}
    assert job.state == "COMPLETED"
    assert 100 <= bench.world.time < 110


def test_nothing_is_asked_when_no_node_leaves(bench: Bench) -> None:
    assert bench.draining().free([], Operation.SCALE_DOWN) == DrainResult(frozenset())
    assert bench.commands == []


def test_progress_says_what_is_left_and_each_line_how_to_continue_and_how_to_undo(bench: Bench) -> None:
    bench.submit(width=4, seconds=100)
    bench.free("gpu-3")
    progress = [line for line in bench.world.reported if "0 of 1 node free" in line]
    assert progress
    for line in progress:
        assert "job 1 (alice, job1)" in line
        assert line.endswith("the drains stay: pulumi up continues; with replicas: 4 of gpu it undoes them.")


@pytest.mark.parametrize("operation", [operation for operation in Operation if not operation.of_a_pod])
def test_whatever_it_waits_for_it_says_how_to_undo_it(operation: Operation) -> None:
    assert re.search(r"undoes them\.$", continue_or_undo(operation, [leaving("gpu-3")]))


def test_a_long_wait_is_reported_less_and_less_often(bench: Bench) -> None:
    bench.submit(width=4, seconds=7000)
    bench.free("gpu-3")
    assert 10 < len([line for line in bench.world.reported if "0 of 1 node free" in line]) < 40


def test_looks_that_take_long_have_pauses_that_are_as_long(bench: Bench) -> None:
    looked_at: list[float] = []

    def takes_four_seconds(command: Sequence[str]) -> Answer | None:
        if command[:3] == ["scontrol", "show", "nodes"]:
            looked_at.append(bench.world.time)
            bench.world.sleep(4)
        return None

    bench.before = takes_four_seconds
    bench.submit(width=4, seconds=100)
    bench.free("gpu-3")

    after_the_drain = looked_at[3:]
    gaps = [later - earlier for earlier, later in pairwise(after_the_drain)]
    assert min(gaps) >= 8


def test_a_policy_that_does_not_wait_drains_and_says_who_is_busy(bench: Bench) -> None:
    bench.submit(width=3, seconds=1000)
    freed = bench.free("gpu-2", "gpu-3", policy=a_policy(wait=False))
    assert freed.free == {"gpu-3"}
    assert freed.busy.keys() == {"gpu-2"}
    assert bench.reasons().keys() == {"gpu-2", "gpu-3"}
    assert bench.world.time < 1


def test_jobs_are_requeued_when_the_time_is_up_and_run_elsewhere(bench: Bench) -> None:
    job = bench.submit(seconds=10_000, width=1)
    assert job.nodes == ("gpu-0",)
    assert bench.free("gpu-0", policy=a_policy(timeout="60s", on_timeout="requeue")).free == {"gpu-0"}
    assert "hpc: requeues job 1" in bench.world.reported
    bench.world.advance(10)
    assert job.starts == 2
    assert job.nodes == ("gpu-1",)


def test_a_requeue_whose_answer_is_lost_is_repeated_for_what_still_holds_a_node(bench: Bench) -> None:
    bench.submit(width=4, seconds=10_000)
    left = [1, 2]
    bench.before = lambda command: lost() if "requeue" in command and left and left.pop() else None
    assert bench.free("gpu-3", policy=a_policy(timeout="0s", on_timeout="requeue")).free == {"gpu-3"}


def test_a_requeue_whose_answer_is_always_lost_comes_to_an_end(bench: Bench) -> None:
    bench.submit(width=4, seconds=100_000)
    bench.before = lambda command: lost() if "requeue" in command else None
    with pytest.raises(DrainError, match="All nodes drained for this change are undrained"):
        bench.free("gpu-3", policy=a_policy(timeout="0s", on_timeout="requeue"))
    assert bench.world.time < 600


def test_a_job_that_slurm_does_not_requeue_is_named_with_slurms_words(bench: Bench) -> None:
    bench.submit(width=4, seconds=10_000)
    bench.world.slurm.requeue_fails = True
    with pytest.raises(DrainError, match="Unspecified error"):
        bench.free("gpu-3", policy=a_policy(timeout="0s", on_timeout="requeue"))
    assert bench.reasons() == {}


def test_jobs_are_cancelled_when_the_policy_says_so(bench: Bench) -> None:
    job = bench.submit(width=4, seconds=10_000, completing_seconds=20)
    assert bench.free("gpu-3", policy=a_policy(timeout="60s", on_timeout="cancel")).free == {"gpu-3"}
    assert job.state == "CANCELLED"
    assert sum("scancel" in command for command in bench.commands) == 1


@pytest.mark.usefixtures("cancelled")
def test_a_run_that_is_cancelled_between_two_waits_neither_drains_nor_cancels_jobs(bench: Bench) -> None:
    job = bench.submit(width=4, seconds=10_000)
    with pytest.raises(RunCancelledError, match=r"hpc: cancelled.*undoes them"):
        bench.free("gpu-3", policy=a_policy(timeout="0s", on_timeout="cancel"))
    assert job.state == "RUNNING"
    assert bench.reasons() == {}


def test_a_preview_only_reads(bench: Bench) -> None:
    bench.submit(width=4, seconds=1000)
    lines = bench.draining().preview([leaving("gpu-2", "gpu-3")], Operation.SCALE_DOWN)
    assert lines[0] == "hpc/gpu: 4 -> 2 nodes. Leaving: gpu-[2-3]"
    assert all(kind in {"scontrol show", "squeue --json"} for kind in bench.kinds())
    assert bench.reasons() == {}


def test_a_task_of_an_array_is_called_as_its_user_calls_it(bench: Bench) -> None:
    bench.submit(width=1, seconds=10_000)

    def as_a_task(command: Sequence[str]) -> Answer | None:
        if command[0] == "scancel":
            assert command == ["scancel", "7_1"]
            return bench.world.programs.run(["scancel", "1"])
        if command[0] != "squeue":
            return None
        reported = json.loads(bench.world.programs.run(command).stdout)
        for job in reported["jobs"]:
            job |= {"array_job_id": 7, "array_task_id": 1}
        return Answer(0, json.dumps(reported), "")

    bench.before = as_a_task
    bench.free("gpu-0", policy=a_policy(timeout="60s", on_timeout="cancel"))

    assert "hpc: cancels job 7_1" in bench.world.reported
