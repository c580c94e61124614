"""Freeing nodes, whatever slurmctld, admins and other runs do meanwhile."""

from collections.abc import Sequence

import pytest

from soperator_pulumi.errors import DrainError
from soperator_pulumi.slurm.drain.reason import Operation
from soperator_pulumi.slurm.transport import Answer
from tests.unit.operations.nodes.bench import Bench, a_policy, leaving, lost, ours


def test_a_slurmctld_that_restarts_in_the_middle_is_waited_for_and_that_is_said(bench: Bench) -> None:
    bench.submit(width=4, seconds=100)
    bench.world.later.append((30, lambda: bench.world.slurm.crash(40)))
    assert bench.free("gpu-3").free == {"gpu-3"}
    reported = [line for line in bench.world.reported if "slurmctld" in line]
    assert "slurmctld does not answer, waits for it 71" in reported[0]
    assert "If interrupted, the drains stay" in reported[0]
    assert reported[-1] == "hpc: slurmctld answers again"


def test_a_slurmctld_that_stays_away_ends_the_run_when_the_policy_does(bench: Bench) -> None:
    bench.submit(width=4, seconds=10_000)
    bench.world.later.append((30, lambda: bench.world.slurm.crash(100_000)))
    with pytest.raises(DrainError) as raised:
        bench.free("gpu-3", policy=a_policy(timeout="20m"))
    assert "These nodes stay drained: gpu-3. Run again when it answers" in str(raised.value)
    assert "scontrol update nodename=gpu-3 state=undrain" in str(raised.value)
    assert 1200 <= bench.world.time < 1300


def test_a_drain_that_may_have_been_set_is_reported_when_slurmctld_does_not_come_back(bench: Bench) -> None:
    def breaks_down(command: Sequence[str]) -> Answer | None:
        if "state=drain" in command:
            bench.world.programs.run(command)
            bench.world.slurm.crash(100_000)
            return lost()
        return None

    bench.before = breaks_down
    with pytest.raises(DrainError, match="These nodes stay drained: gpu-3"):
        bench.free("gpu-3", policy=a_policy(timeout="60s"))


def test_a_slurmctld_that_never_answers_is_given_five_minutes_and_nothing_is_drained(bench: Bench) -> None:
    bench.world.slurm.crash(100_000)
    with pytest.raises(DrainError, match=r"Nothing was drained\. Run again when it answers\."):
        bench.free("gpu-3")
    assert 300 <= bench.world.time < 330


def test_an_answer_that_is_older_than_one_before_is_dropped(bench: Bench) -> None:
    """An admin resumes the node and a job starts there: the answer from before both must not count."""
    bench.submit(width=4, seconds=30)
    world, answers = bench.world, dict[str, Answer]()

    def stale(command: Sequence[str]) -> Answer | None:
        text = " ".join(command)
        if not text.startswith(("scontrol show nodes", "squeue")):
            return None
        if world.time < 31 or text not in answers:
            answers[text] = world.programs.run(command)
            return answers[text]
        if world.time < 60:
            return answers[text]  # from before the admin
        return None

    def admin() -> None:
        world.slurm.resume(["gpu-3"])
        bench.submit(required=frozenset({"gpu-3"}), seconds=100)

    world.later.append((31, admin))
    bench.before = stale
    bench.free("gpu-3")
    assert world.slurm.jobs[2].finished
    assert world.time > 130


def test_a_list_of_jobs_that_is_older_than_one_before_is_dropped(bench: Bench) -> None:
    """Nothing but the list of jobs speaks of a suspended one: its node is idle for Slurm."""
    world = bench.world
    before = world.programs.run(["squeue", "--json", "--all"])
    world.advance(2)
    job = bench.submit(required=frozenset({"gpu-3"}), seconds=30)
    world.slurm.suspend(job)
    world.later.append((60, lambda: world.slurm.unsuspend(job)))
    bench.before = lambda command: before if command[0] == "squeue" and 5 < world.time < 50 else None

    bench.free("gpu-3")

    assert job.finished


def test_a_node_that_an_admin_resumes_while_it_is_waited_for_is_drained_again(bench: Bench) -> None:
    bench.submit(width=4, seconds=100)
    bench.world.later.append((50, lambda: bench.world.slurm.resume(["gpu-3"])))
    assert bench.free("gpu-3").free == {"gpu-3"}
    assert sum("state=drain" in command for command in bench.commands) == 2
    assert bench.reasons().keys() == {"gpu-3"}


def test_a_drain_whose_answer_is_lost_is_looked_for_and_not_set_again(bench: Bench) -> None:
    def after(command: Sequence[str]) -> Answer | None:
        if "state=drain" in command:
            bench.world.programs.run(command)
            return lost()
        return None

    bench.before = after
    assert bench.free("gpu-3").free == {"gpu-3"}
    assert sum("state=drain" in command for command in bench.commands) == 1


def test_a_node_that_goes_from_slurm_just_before_it_is_drained_does_not_keep_the_others(bench: Bench) -> None:
    def goes(command: Sequence[str]) -> None:
        if "state=drain" in command and bench.world.time < 10:
            bench.world.slurm.nodes.pop("gpu-3", None)

    def comes_back() -> None:
        bench.world.slurm.register("gpu-3", weight=1)

    bench.before = goes
    bench.world.later.append((20, comes_back))
    assert bench.free("gpu-2", "gpu-3").free == {"gpu-2", "gpu-3"}


def test_a_slurm_that_refuses_to_drain_is_asked_three_times_and_quoted(bench: Bench) -> None:
    refused = Answer(1, "", "slurm_update error: Invalid user id")
    bench.before = lambda command: refused if "state=drain" in command else None
    with pytest.raises(DrainError, match="Slurm refuses to drain gpu-3: slurm_update error: Invalid user id"):
        bench.free("gpu-3")
    assert sum("state=drain" in command for command in bench.commands) == 3


def test_a_run_that_was_cut_off_ends_when_another_one_drains_the_same_nodes(bench: Bench) -> None:
    bench.submit(width=4, seconds=1000)
    other = ours(Operation.SCALE_DOWN, "123456")
    bench.world.later.append((50, lambda: bench.world.slurm.drain(["gpu-3"], other)))
    with pytest.raises(DrainError, match="another run drains gpu-3 now"):
        bench.free("gpu-3")
    assert bench.reasons() == {"gpu-3": other}


def test_a_node_that_slurm_has_known_is_not_free_when_slurm_has_lost_it(bench: Bench) -> None:
    """The node's pod had no slurmd when the run began; then it had one, and a job."""
    world = bench.world
    del world.slurm.nodes["gpu-3"]
    bench.submit(width=3, seconds=60)

    def comes() -> None:
        world.slurm.register("gpu-3", weight=1)
        bench.submit(required=frozenset({"gpu-3"}), seconds=10_000)

    def is_lost() -> None:
        world.slurm.lose_state()
        world.slurm.register("gpu-2", weight=1)

    world.later += [(10, comes), (30, is_lost)]
    chosen = leaving("gpu-2", "gpu-3", policy=a_policy(timeout="3m"), never_started=["gpu-3"])
    with pytest.raises(DrainError, match="gpu-3  unknown to slurmctld"):
        bench.draining().free([chosen], Operation.SCALE_DOWN)
