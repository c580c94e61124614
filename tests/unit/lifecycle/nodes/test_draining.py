"""One run at freeing nodes, whatever slurmctld, admins and other runs do meanwhile."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from soperator_pulumi.errors import DrainError, TransportError
from soperator_pulumi.lifecycle.nodes.draining import Draining
from soperator_pulumi.lifecycle.nodes.freeing import Freed
from soperator_pulumi.slurm import Answer, Marker, Operation, SlurmClient
from soperator_pulumi.slurm.leaving import Leaving
from soperator_pulumi.spec import DrainSpec
from tests.unit.faults.slurmctld import Job
from tests.unit.faults.world import World

OWNER = "dev-hpc"
NAMES = tuple(f"gpu-{ordinal}" for ordinal in range(4))
DEFAULT = DrainSpec()


@dataclass
class Bench:
    """A slurmctld with four nodes, and what goes wrong at its calls."""

    world: World = field(default_factory=World)
    commands: list[str] = field(default_factory=list)
    before: Callable[[Sequence[str]], Answer | None] = lambda _command: None
    """Called before each command; its answer, if it gives one, comes in place of slurmctld's."""

    def __post_init__(self) -> None:
        self.world.slurm.answers_slurmd = lambda _name: True
        for ordinal, name in enumerate(NAMES):
            self.world.slurm.register(name, weight=1 + ordinal)

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout_seconds: int = 30) -> Answer:
        assert not stdin
        assert timeout_seconds
        self.commands.append(" ".join(command))
        instead = self.before(command)
        return self.world.programs.run(command) if instead is None else instead

    def draining(self) -> Draining:
        client = SlurmClient(self, pause=self.world.sleep)
        world = self.world
        return Draining(client, owner=OWNER, cluster="hpc", say=world.say, clock=world, now=world.wall)

    def free(self, *names: str, policy: DrainSpec = DEFAULT, operation: Operation = Operation.SCALE_DOWN) -> Freed:
        return self.draining().free([leaving(*names, policy=policy)], operation)

    def submit(self, **job: Any) -> Job:
        found = self.world.slurm.submit(Job(0, **job))
        self.world.settle()
        return found

    def reasons(self) -> dict[str, str]:
        """Return the reasons of the nodes that are drained."""
        return {name: each.reason for name, each in self.world.slurm.nodes.items() if each.drain}

    def kinds(self) -> list[str]:
        """Return which commands were run."""
        return [" ".join(command.split()[:2]) for command in self.commands]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def leaving(*names: str, policy: DrainSpec = DEFAULT, never_started: Sequence[str] = ()) -> Leaving:
    staying = tuple(name for name in NAMES if name not in names)
    return Leaving("gpu", names, staying, policy, len(NAMES), len(staying), frozenset(never_started))


def a_policy(**values: Any) -> DrainSpec:
    return DrainSpec.model_validate(values)


def ours(operation: Operation, run: str = "abcdef") -> str:
    return str(Marker(OWNER, operation, "" if operation is Operation.POD_STOP else run))


def lost() -> Answer:
    raise TransportError("pod hpc/controller-0: the connection broke.")


# -- freeing ------------------------------------------------------------------------------------------------------


def test_idle_nodes_are_free_after_four_calls_of_scontrol(bench: Bench) -> None:
    assert bench.free("gpu-2", "gpu-3") == Freed(frozenset({"gpu-2", "gpu-3"}))
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
    assert bench.draining().free([], Operation.SCALE_DOWN) == Freed(frozenset())
    assert bench.commands == []


def test_progress_says_what_is_left_and_each_line_how_to_go_on_and_how_to_undo(bench: Bench) -> None:
    bench.submit(width=4, seconds=100)
    bench.free("gpu-3")
    progress = [line for line in bench.world.said if "0 of 1 node free" in line]
    assert progress
    for line in progress:
        assert "job 1 (alice, job1)" in line
        assert line.endswith("the drains stay: pulumi up goes on; with replicas: 4 of gpu it undoes them.")


def test_a_long_wait_is_told_less_and_less_often(bench: Bench) -> None:
    bench.submit(width=4, seconds=7000)
    bench.free("gpu-3")
    assert 10 < len([line for line in bench.world.said if "0 of 1 node free" in line]) < 40


def test_a_policy_that_does_not_wait_drains_and_says_who_is_busy(bench: Bench) -> None:
    bench.submit(width=3, seconds=1000)
    freed = bench.free("gpu-2", "gpu-3", policy=a_policy(wait=False))
    assert freed.free == {"gpu-3"}
    assert freed.busy.keys() == {"gpu-2"}
    assert bench.reasons().keys() == {"gpu-2", "gpu-3"}
    assert bench.world.time < 1


# -- stopping -----------------------------------------------------------------------------------------------------


def test_nodes_that_are_not_free_in_time_are_all_back_in_service(bench: Bench) -> None:
    job = bench.submit(width=4, seconds=1000)
    with pytest.raises(DrainError, match=r"job 1 \(alice, job1\).*\n.*\n.*\n  Everything is put back"):
        bench.free("gpu-2", "gpu-3", policy=a_policy(timeout="90s"))
    assert bench.reasons() == {}
    assert job.state == "RUNNING"


def test_what_an_earlier_run_of_ours_left_drained_is_put_back_as_well(bench: Bench) -> None:
    bench.world.slurm.drain(["gpu-3"], ours(Operation.SCALE_DOWN))
    bench.submit(width=3, seconds=1000)
    with pytest.raises(DrainError):
        bench.free("gpu-2", "gpu-3", policy=a_policy(timeout="0s"))
    assert bench.reasons() == {}


def test_a_drain_of_somebody_else_is_in_force_as_before_after_an_abort(bench: Bench) -> None:
    bench.submit(width=4, seconds=1000)
    bench.world.slurm.drain(["gpu-3"], "fan broken")
    with pytest.raises(DrainError):
        bench.free("gpu-2", "gpu-3", policy=a_policy(timeout="90s"))
    assert bench.reasons() == {"gpu-3": "fan broken"}


def test_a_node_that_its_stopping_pod_had_drained_is_left_to_that_pod_after_an_abort(bench: Bench) -> None:
    bench.submit(width=4, seconds=1000)
    bench.world.slurm.drain(["gpu-3"], ours(Operation.POD_STOP))
    with pytest.raises(DrainError):
        bench.free("gpu-2", "gpu-3", policy=a_policy(timeout="90s"))
    assert bench.reasons() == {"gpu-3": ours(Operation.POD_STOP)}


def test_when_nothing_can_be_put_back_it_says_what_stays_drained_and_how_to_undo_it(bench: Bench) -> None:
    bench.submit(width=4, seconds=1000)
    bench.before = lambda command: lost() if "state=undrain" in command else None
    with pytest.raises(DrainError) as raised:
        bench.free("gpu-2", "gpu-3", policy=a_policy(timeout="90s"))
    assert "Still drained: gpu-[2-3] (pod hpc/controller-0: the connection broke)" in str(raised.value)
    assert "scontrol update nodename=gpu-[2-3]" in str(raised.value)
    assert "Everything is put back" not in str(raised.value)


def test_putting_back_goes_on_when_slurmctld_is_back(bench: Bench) -> None:
    bench.submit(width=4, seconds=1000)

    def crashes(command: Sequence[str]) -> None:
        if "state=undrain" in command and bench.world.slurm.up and bench.world.time < 100:
            bench.world.slurm.crash(40)

    bench.before = crashes
    with pytest.raises(DrainError, match="Everything is put back"):
        bench.free("gpu-2", "gpu-3", policy=a_policy(timeout="90s"))
    assert bench.reasons() == {}


def test_a_node_that_an_admin_drains_during_an_abort_keeps_that_drain(bench: Bench) -> None:
    bench.submit(width=4, seconds=1000)

    def admin(command: Sequence[str]) -> Answer | None:
        if "state=undrain" in command and "mine" not in bench.reasons().values():
            bench.world.slurm.drain(["gpu-3"], "mine")
            return lost()
        return None

    bench.before = admin
    with pytest.raises(DrainError, match="Everything is put back"):
        bench.free("gpu-2", "gpu-3", policy=a_policy(timeout="90s"))
    assert bench.reasons() == {"gpu-3": "mine"}


# -- what goes wrong meanwhile --------------------------------------------------------------------------------------


def test_a_slurmctld_that_restarts_in_the_middle_is_waited_for_and_that_is_said(bench: Bench) -> None:
    bench.submit(width=4, seconds=100)
    bench.world.later.append((30, lambda: bench.world.slurm.crash(40)))
    assert bench.free("gpu-3").free == {"gpu-3"}
    told = [line for line in bench.world.said if "slurmctld" in line]
    assert "slurmctld does not answer, waits for it 71" in told[0]
    assert "If interrupted, the drains stay" in told[0]
    assert told[-1] == "hpc: slurmctld answers again"


def test_a_slurmctld_that_stays_away_ends_the_run_when_the_policy_does(bench: Bench) -> None:
    bench.submit(width=4, seconds=10_000)
    bench.world.later.append((30, lambda: bench.world.slurm.crash(100_000)))
    with pytest.raises(DrainError) as raised:
        bench.free("gpu-3", policy=a_policy(timeout="20m"))
    assert "These nodes stay drained: gpu-3. Run again when it answers" in str(raised.value)
    assert "scontrol update nodename=gpu-3 state=undrain" in str(raised.value)
    assert 1200 <= bench.world.time < 1300


def test_a_drain_that_may_have_been_set_is_told_when_slurmctld_does_not_come_back(bench: Bench) -> None:
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
    seen: list[float] = []
    run = world.programs.run

    def fresh(command: Sequence[str]) -> Answer:
        seen.append(world.time)
        return run(command)

    world.programs.run = fresh  # type: ignore[method-assign] # there is no other place to look
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
    """Its pod had no slurmd when the run began; then it had one, and a job."""
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
    with pytest.raises(DrainError, match="gpu-3  slurmctld does not know it"):
        bench.draining().free([chosen], Operation.SCALE_DOWN)


# -- jobs ---------------------------------------------------------------------------------------------------------


def test_jobs_are_requeued_when_the_time_is_up_and_run_elsewhere(bench: Bench) -> None:
    job = bench.submit(seconds=10_000, width=1)
    assert job.nodes == ("gpu-0",)
    assert bench.free("gpu-0", policy=a_policy(timeout="60s", on_timeout="requeue")).free == {"gpu-0"}
    assert "hpc: requeues job 1" in bench.world.said
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
    with pytest.raises(DrainError, match="Everything is put back"):
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


# -- putting back ---------------------------------------------------------------------------------------------------


def test_only_drains_of_ours_for_the_named_operations_are_put_back(bench: Bench) -> None:
    reasons = {
        "gpu-0": ours(Operation.SCALE_DOWN),
        "gpu-1": ours(Operation.ROLLING_UPDATE),
        "gpu-2": "soperator-pulumi other: scale-down abcdef",
        "gpu-3": ours(Operation.SCALE_DOWN) + " and more",
    }
    for name, reason in reasons.items():
        bench.world.slurm.drain([name], reason)
    assert bench.draining().put_back(NAMES, {Operation.SCALE_DOWN}) == {"gpu-0"}
    assert bench.reasons().keys() == {"gpu-1", "gpu-2", "gpu-3"}


def test_a_node_gets_back_the_reason_that_it_had_before(bench: Bench) -> None:
    bench.world.slurm.nodes["gpu-3"].reason = "watch the fan"
    bench.submit(width=4, seconds=1000)
    with pytest.raises(DrainError):
        bench.free("gpu-3", policy=a_policy(timeout="60s"))
    assert bench.world.slurm.nodes["gpu-3"].reason == "watch the fan"


def test_a_preview_only_reads(bench: Bench) -> None:
    bench.submit(width=4, seconds=1000)
    lines = bench.draining().preview([leaving("gpu-2", "gpu-3")])
    assert lines[0] == "hpc/gpu: 4 -> 2 nodes. Leaving: gpu-[2-3]"
    assert all(kind in {"scontrol show", "squeue --json"} for kind in bench.kinds())
    assert bench.reasons() == {}
