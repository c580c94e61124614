"""Runs of long checks against a slurmctld of a few nodes: what they measure, drain, undrain, and leave alone."""

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from health_testing.made_slurm import MadeNode, MadeSlurm
from long_checks.check_run import CheckRun
from long_checks.long_settings import LongSettings, NodeSetLimits
from long_checks.measuring import Measuring, RunClock
from long_checks.reports import AnotherRunError, Reports
from long_checks.slurm_calls import JobRequest, SlurmCallError

LIMIT = 5.0


class World:
    """A few nodes, and runs of a check on them."""

    def __init__(self, folder: Path, count: int = 4, **changes: Any) -> None:
        settings: dict[str, Any] = {
            "check": "ring_bandwidth",
            "program": "ring",
            "unit": "GB/s",
            "size": 1,
            "nodes_per_run": 32,
            "every_seconds": 3600,
            "start_seconds": 60,
            "time_limit_seconds": 60,
            "action": "drain",
            "undrain": "auto",
            "verifies": ("memory_uncorrected",),
            "settle_seconds": 30,
            "nice": 100,
            "node_sets": {"cpu": NodeSetLimits(LIMIT, LIMIT, 0)},
            "partition": "",
            "qos": "",
            "reservation": "",
            "user": "soperator-health",
            "uid": 64034,
            "folder": str(folder),
            "arguments": {"mib": 8, "seconds": 1},
            **changes,
        }
        self.settings = LongSettings(**settings)
        self.reports = Reports(str(folder), "ring_bandwidth")
        self.reports.create(gid=0)
        self.slurm = MadeSlurm(
            {f"cpu-{index}": MadeNode(f"cpu-{index}") for index in range(count)}, self.reports.outputs
        )
        self.now = 0.0
        self.during_sleep: Callable[[], None] = lambda: None
        self.events: list[dict[str, Any]] = []

    def node(self, index: int) -> MadeNode:
        return self.slurm.made[f"cpu-{index}"]

    def run(self) -> int:
        self.events = []
        measuring = Measuring(
            self.settings, self.slurm, self.reports, RunClock(lambda: self.now, self._sleep), lambda node: node.address
        )
        return CheckRun(self.settings, self.slurm, self.reports, measuring, self.events.append).run()

    def last(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            (Path(self.settings.folder) / "reports" / "ring_bandwidth" / "last.json").read_text()
        )["nodes"]
        return found

    def names(self, event: str) -> list[str]:
        return [entry["node"] for entry in self.events if entry["event"] == event]

    def drained(self) -> dict[str, str]:
        return {name: node.reason for name, node in self.slurm.made.items() if node.drained}

    def _sleep(self, seconds: float) -> None:
        self.now += seconds
        self.during_sleep()


def test_healthy_nodes_are_measured_once_until_they_are_due_again(tmp_path: Path) -> None:
    world = World(tmp_path)

    assert world.run() == 0
    assert len(world.slurm.jobs_of) == 4
    assert all(item["passed"] for item in world.last().values())
    world.run()
    assert len(world.slurm.jobs_of) == 4


def test_a_slow_node_is_drained_with_its_value_and_the_limit(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.node(2).speed = 1.5

    assert world.run() == 0
    assert world.drained() == {"cpu-2": "health ring_bandwidth: 1.5 GB/s, allowed 5 GB/s"}
    assert world.last()["cpu-2"]["passed"] is False


def test_a_program_that_crashes_on_a_node_twice_fails_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.node(2).crashes = 2

    world.run()
    (reason,) = world.drained().values()
    assert [*world.drained()] == ["cpu-2"]
    assert reason.startswith("health ring_bandwidth: crashed twice: job 5 is FAILED: node: Test CUDA failure")
    assert reason.endswith(", allowed an end")


def test_a_program_that_crashes_once_runs_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.node(2).crashes = 1

    assert world.run() == 0
    assert world.drained() == {}
    assert world.last()["cpu-2"]["passed"] is True


@pytest.mark.parametrize("count", [1, 4])
def test_a_program_that_crashes_on_every_node_is_reported_and_drains_none(tmp_path: Path, count: int) -> None:
    world = World(tmp_path, count=count)
    for index in range(count):
        world.node(index).crashes = 2

    assert world.run() == 1
    assert world.drained() == {}
    crashed = [event for event in world.events if event["event"] == "crashed twice"]
    assert [event["nodes"] for event in crashed] == [[f"cpu-{index}"] for index in range(count)]


def test_with_the_action_log_nothing_is_drained(tmp_path: Path) -> None:
    world = World(tmp_path, action="log")
    world.node(2).speed = 1.5

    world.run()
    assert world.drained() == {}
    assert world.names("failed") == ["cpu-2"]


@pytest.mark.parametrize("slow", range(8))
def test_a_slow_group_is_bisected_to_the_slow_node(tmp_path: Path, slow: int) -> None:
    world = World(tmp_path, count=8, size=8)
    world.node(slow).speed = 1

    world.run()
    assert [*world.drained()] == [f"cpu-{slow}"]


def test_no_more_than_half_of_the_nodes_are_drained_by_a_run(tmp_path: Path) -> None:
    world = World(tmp_path)
    for index in range(3):
        world.node(index).speed = 1

    world.run()
    assert world.drained() == {}
    assert [event["event"] for event in world.events].count("not drained") == 1


def test_no_more_than_half_of_the_nodes_are_drained_by_runs_of_one_node_each(tmp_path: Path) -> None:
    world = World(tmp_path, nodes_per_run=1, every_seconds=0, undrain="never")
    for index in range(4):
        world.node(index).speed = 1

    for _ in range(4):
        world.run()
    assert [*world.drained()] == ["cpu-0", "cpu-1"]
    assert "3 of 4 nodes fail" in str(world.events)


def test_only_idle_nodes_are_taken(tmp_path: Path) -> None:
    world = World(tmp_path)
    for index, state in enumerate(("MIXED+DYNAMIC_NORM", "IDLE+RESERVED", "IDLE+DRAIN", "DOWN+NOT_RESPONDING")):
        world.node(index).state = state

    assert world.run() == 0
    assert world.slurm.jobs_of == {}


def test_a_check_with_a_reservation_takes_the_idle_nodes_in_it_alone(tmp_path: Path) -> None:
    world = World(tmp_path, reservation="nightly")
    for index, (name, state) in enumerate((("nightly", "IDLE+RESERVED"), ("other", "IDLE+RESERVED"), ("", "IDLE"))):
        world.node(index).reservation, world.node(index).state = name, state

    assert world.run() == 0
    assert [(job.nodes, job.reservation) for job in world.slurm.jobs_of.values()] == [(("cpu-0",), "nightly")]


@pytest.mark.parametrize("size", [1, 2])
def test_nodes_outside_of_the_default_partition_are_measured_in_one_of_theirs(tmp_path: Path, size: int) -> None:
    world = World(tmp_path, size=size)
    for index, partitions in enumerate((("main",), ("main", "gpu"), ("gpu", "highmem"), ("gpu",))):
        world.node(index).partitions = partitions

    assert world.run() == 0
    assert {name: value["passed"] for name, value in world.last().items()} == dict.fromkeys(world.slurm.made, True)
    assert {(job.partition, job.nodes) for job in world.slurm.jobs_of.values()} == (
        {("main", ("cpu-0", "cpu-1")), ("gpu", ("cpu-2", "cpu-3"))}
        if size == 2
        else {("main", ("cpu-0",)), ("main", ("cpu-1",)), ("gpu", ("cpu-2",)), ("gpu", ("cpu-3",))}
    )


def test_a_check_with_a_partition_takes_its_nodes_alone(tmp_path: Path) -> None:
    world = World(tmp_path, partition="gpu")
    world.node(1).partitions = ("main", "gpu")
    world.node(2).partitions, world.node(2).state, world.node(2).reason = ("main",), "IDLE+DRAIN", OURS

    assert world.run() == 0
    assert [(job.partition, job.nodes) for job in world.slurm.jobs_of.values()] == [("gpu", ("cpu-1",))]
    assert world.drained() == {"cpu-2": OURS}


def test_suspects_meet_no_node_of_another_partition(tmp_path: Path) -> None:
    world = World(tmp_path, size=2)
    for index in (2, 3):
        world.node(index).partitions = ("gpu",)
    world.node(3).speed = 1

    world.run()
    assert {job.partition for job in world.slurm.jobs_of.values()} == {"main", "gpu"}
    assert [event["nodes"] for event in world.events if event["event"] == "no slow node"] == [["cpu-2", "cpu-3"]]


def test_a_drained_node_is_tested_with_a_partner_in_its_partition(tmp_path: Path) -> None:
    world = a_drained_world(tmp_path, OURS, size=2)
    world.slurm.made["cpu-2"] = MadeNode("cpu-2", partitions=("gpu",))
    world.node(0).partitions = ("gpu",)

    world.run()
    assert "reserve cpu-0,cpu-2 for soperator-health" in world.slurm.told
    assert world.drained() == {}


def test_a_node_without_a_partition_is_reported(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.node(3).partitions = ()

    assert world.run() == 0
    assert [event["nodes"] for event in world.events if event["event"] == "no partition"] == [["cpu-3"]]
    assert len(world.slurm.jobs_of) == 3


def test_a_job_that_does_not_start_is_cancelled_and_no_node_is_judged(tmp_path: Path) -> None:
    world = World(tmp_path, count=1)
    world.node(0).busy = True

    assert world.run() == 1
    assert world.slurm.states == {1: "CANCELLED"}
    assert world.drained() == {}
    assert 60 <= world.now < 120


def test_a_queue_that_is_full_for_days_holds_no_job_of_a_check(tmp_path: Path) -> None:
    world = World(tmp_path, count=2)
    world.node(0).busy = world.node(1).busy = True

    for _ in range(10):
        world.run()
        assert not {"PENDING", "RUNNING"} & {*world.slurm.states.values()}


def test_a_job_that_was_suspended_judges_no_node(tmp_path: Path) -> None:
    world = World(tmp_path, count=1)
    world.node(0).suspends, world.node(0).speed = True, 1.0

    assert world.run() == 1
    assert not world.node(0).drained
    (measured,) = [event for event in world.events if event["event"] == "measured"]
    assert measured["result"] == "no result"
    assert "COMPLETED after a suspension" in measured["value"]


def test_jobs_of_a_run_that_was_killed_are_cancelled_first(tmp_path: Path) -> None:
    world = World(tmp_path, count=1)
    left = JobRequest("health-ring_bandwidth", ("cpu-0",), "", "", "", 64034, 60, 60, 0)
    world.slurm.submit(left)
    world.slurm.submit(left._replace(name="of-a-user"))

    assert world.run() == 0
    assert world.slurm.states == {1: "CANCELLED", 2: "PENDING", 3: "COMPLETED"}


def test_a_program_that_never_ends_is_a_finding(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.node(1).hangs = True

    world.run()
    assert world.drained() == {"cpu-1": "health ring_bandwidth: no end in 60 s, allowed an end"}


def test_a_job_without_an_output_is_no_conclusion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, count=1)
    monkeypatch.setattr(Reports, "output", lambda *_: "/bin/sh: node-bench: not found")

    assert world.run() == 1
    assert world.drained() == {}
    assert "not found" in world.events[-1]["value"]


@pytest.mark.parametrize("reason", ["", "health ring_bandwidth: 1 GB/s, allowed 5 GB/s"])
def test_a_program_that_the_jail_does_not_have_is_reported_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    world = World(tmp_path, count=2, program="tcp", size=2, arguments={"seconds": 1, "streams": 4})
    if reason:
        world.node(0).state, world.node(0).reason = "IDLE+DRAIN+DYNAMIC_NORM", reason
    monkeypatch.setattr(Reports, "output", lambda *_: "health: no program iperf3\n")

    assert world.run() == 1
    assert world.drained() == ({"cpu-0": reason} if reason else {})
    (found,) = [event for event in world.events if "iperf3 is not in the jail" in str(event.get("value"))]
    assert (found["event"], found.get("result")) == (("not verified", None) if reason else ("measured", "no program"))


def test_a_link_in_place_of_an_output_is_not_followed(tmp_path: Path) -> None:
    reports = Reports(str(tmp_path), "ring_bandwidth")
    reports.create(gid=0)
    (tmp_path / "secret").write_text("key")
    (reports.outputs / "7.out").symlink_to(tmp_path / "secret")

    assert reports.output(7) == ""


def test_a_second_run_at_the_same_time_is_refused(tmp_path: Path) -> None:
    reports = Reports(str(tmp_path), "ring_bandwidth")
    reports.create(gid=0)
    with reports.alone(), pytest.raises(AnotherRunError), reports.alone():
        pytest.fail("two runs")


def test_a_user_who_reads_the_reports_cannot_hold_the_lock(tmp_path: Path) -> None:
    reports = Reports(str(tmp_path), "ring_bandwidth")
    reports.create(gid=0)
    lock = tmp_path / "reports" / "ring_bandwidth" / "lock"
    lock.write_text("of an earlier version")
    lock.chmod(0o644)

    with reports.alone():
        assert lock.stat().st_mode & 0o077 == 0


def test_reports_and_outputs_are_bounded(tmp_path: Path) -> None:
    reports = Reports(str(tmp_path), "ring_bandwidth")
    reports.create(gid=0)
    for number in range(80):
        (reports.outputs / f"{number}.out").write_text("")
        (tmp_path / "reports" / "ring_bandwidth" / f"run-{number}.json").write_text("{}")
    reports.write({}, [])

    assert len([*reports.outputs.iterdir()]) == 50
    assert len([*(tmp_path / "reports" / "ring_bandwidth").glob("run-*")]) == 50


OURS = "health ring_bandwidth: 1 GB/s, allowed 5 GB/s"
QUICK = "health memory_uncorrected: 1 on memory controller 0, allowed 0"


def a_drained_world(folder: Path, reason: str, **changes: Any) -> World:
    world = World(folder, count=2, **changes)
    world.node(0).state, world.node(0).reason = "IDLE+DRAIN+DYNAMIC_NORM", reason
    world.slurm.watched = {"cpu-0"}
    return world


@pytest.mark.parametrize("reason", [OURS, QUICK])
def test_a_node_that_is_healthy_again_is_tested_in_a_reservation_and_undrained(tmp_path: Path, reason: str) -> None:
    world = a_drained_world(tmp_path, reason)

    world.run()
    assert world.drained() == {}
    assert world.slurm.reserved == {}
    assert world.names("undrained") == ["cpu-0"]
    assert world.slurm.told[:4] == [
        *("reserve cpu-0 for soperator-health", "undrain cpu-0", "submit cpu-0"),
        "release health-ring_bandwidth-cpu-0",
    ]


def test_a_node_that_is_still_slow_is_drained_again_before_it_is_released(tmp_path: Path) -> None:
    world = a_drained_world(tmp_path, OURS)
    world.node(0).speed = 2

    world.run()
    assert world.drained() == {"cpu-0": "health ring_bandwidth: 2 GB/s, allowed 5.25 GB/s"}
    assert world.slurm.open_unverified == []


def test_a_pair_is_tested_with_an_idle_partner(tmp_path: Path) -> None:
    world = a_drained_world(tmp_path, OURS, size=2)

    world.run()
    assert "reserve cpu-0,cpu-1 for soperator-health" in world.slurm.told
    assert world.drained() == {}


FIRST = {"cpu": NodeSetLimits(LIMIT, LIMIT, 0, ("ring_bandwidth", "memory_bandwidth"))}


def test_a_new_node_is_undrained_after_each_of_its_first_checks(tmp_path: Path) -> None:
    world = a_drained_world(tmp_path, "health: not verified", node_sets=FIRST)

    world.run()
    assert world.drained() == {"cpu-0": "health: not verified, passed ring_bandwidth"}
    assert world.slurm.open_unverified == []
    submitted = len(world.slurm.jobs_of)
    world.run()
    assert len(world.slurm.jobs_of) == submitted

    world.node(0).reason = "health: not verified, passed memory_bandwidth"
    world.run()
    assert world.drained() == {}


@pytest.mark.parametrize("before", ["", ", passed disk", ", failed ring_bandwidth: 1 GB/s, allowed 5.25 GB/s"])
def test_a_new_node_that_fails_is_still_to_pass_all_checks_when_it_is_fast_again(tmp_path: Path, before: str) -> None:
    world = a_drained_world(tmp_path, f"health: not verified{before}", node_sets=FIRST)
    world.node(0).speed = 2

    world.run()
    passed = before if "passed" in before else ""
    assert world.drained() == {
        "cpu-0": f"health: not verified{passed}, failed ring_bandwidth: 2 GB/s, allowed 5.25 GB/s"
    }
    assert world.slurm.open_unverified == []

    world.node(0).speed = 10
    world.run()
    assert world.drained() == {"cpu-0": f"health: not verified, passed {'disk ' if passed else ''}ring_bandwidth"}


@pytest.mark.parametrize("verifies", [(), ("memory_uncorrected",)])
def test_a_new_node_that_fails_a_quick_check_is_drained_by_it_before_it_is_released(
    tmp_path: Path, verifies: tuple[str, ...]
) -> None:
    reason = "health: not verified, passed memory_bandwidth"
    world = a_drained_world(tmp_path, reason, node_sets=FIRST, verifies=verifies)
    node = world.node(0)

    def quick_round() -> None:
        node.state, node.reason = "IDLE+DRAIN+DYNAMIC_NORM", "health gpu_count: 7, allowed 8"

    world.during_sleep = quick_round
    world.run()
    assert world.drained() == {"cpu-0": "health gpu_count: 7, allowed 8"}
    assert world.names("undrained") == []
    assert world.slurm.open_unverified == []


def test_an_admin_who_drains_a_node_while_others_are_reserved_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = a_drained_world(tmp_path, OURS)
    world.node(1).state, world.node(1).reason = "IDLE+DRAIN+DYNAMIC_NORM", OURS
    reserve = world.slurm.reserve

    def slowly(name: str, nodes: Sequence[str], user: str) -> None:
        reserve(name, nodes, user)
        if nodes[0] == "cpu-1":
            world.node(0).state, world.node(0).reason = "IDLE+DRAIN+DYNAMIC_NORM", "mine"

    monkeypatch.setattr(world.slurm, "reserve", slowly)
    world.run()
    assert world.drained() == {"cpu-0": "mine"}
    assert world.slurm.reserved == {}


def test_a_new_node_whose_test_is_killed_is_still_to_pass_all_checks(tmp_path: Path) -> None:
    world = World(tmp_path, count=1, node_sets=FIRST)
    world.slurm.reserved["health-ring_bandwidth-cpu-0"] = ("cpu-0",)
    world.slurm.watched = {"cpu-0"}

    world.run()
    assert world.drained() == {"cpu-0": "health: not verified, passed ring_bandwidth"}
    assert world.slurm.open_unverified == []


@pytest.mark.parametrize(
    ("reason", "changes"),
    [
        ("health: not verified", {}),
        ("fan of PSU 2", {}),
        ("health gpu_count: 7, allowed 8", {}),
        ("soperator-pulumi hpc: scale-down 1", {}),
        (OURS, {"undrain": "never"}),
    ],
)
def test_drains_of_others_stay(tmp_path: Path, reason: str, changes: dict[str, Any]) -> None:
    world = a_drained_world(tmp_path, reason, **changes)

    world.run()
    assert world.drained() == {"cpu-0": reason}
    assert not [call for call in world.slurm.told if "cpu-0" in call]


def test_a_quick_check_that_still_fails_drains_the_node_during_the_test_and_it_stays(tmp_path: Path) -> None:
    world = a_drained_world(tmp_path, QUICK)
    node = world.node(0)

    def quick_round() -> None:
        node.state, node.reason = "IDLE+DRAIN+DYNAMIC_NORM", QUICK

    world.during_sleep = quick_round
    world.run()
    assert world.drained() == {"cpu-0": QUICK}
    assert world.names("undrained") == []
    assert world.slurm.reserved == {}


def test_an_admin_who_drains_the_node_again_keeps_it(tmp_path: Path) -> None:
    world = a_drained_world(tmp_path, QUICK)

    def admin() -> None:
        world.node(0).state, world.node(0).reason = "IDLE+DRAIN", "mine"

    world.during_sleep = admin
    world.run()
    assert world.drained() == {"cpu-0": "mine"}


@pytest.mark.parametrize("call", ["reserve", "undrain", "submit", "job_state", "drain", "release"])
@pytest.mark.parametrize("speed", [2, 10])
def test_a_call_that_fails_never_opens_a_node_that_has_not_passed(tmp_path: Path, call: str, speed: float) -> None:
    world = a_drained_world(tmp_path, OURS)
    world.node(0).speed = speed
    world.slurm.fails_at = call
    with suppress(SlurmCallError):
        world.run()
    reserved = any("cpu-0" in nodes for nodes in world.slurm.reserved.values())
    has_passed = speed > LIMIT and world.last().get("cpu-0", {}).get("passed", True)
    assert world.node(0).drained or reserved or has_passed
    if speed < LIMIT:
        assert world.slurm.open_unverified == []

    world.slurm.fails_at = ""
    world.run()
    world.run()
    assert world.slurm.reserved == {}
    assert world.node(0).drained == (speed < LIMIT)


def test_the_reservation_of_a_killed_run_goes_after_its_node_is_drained(tmp_path: Path) -> None:
    world = World(tmp_path, count=2)
    world.node(0).speed = 2
    world.slurm.reserved["health-ring_bandwidth-cpu-0"] = ("cpu-0",)
    world.slurm.reserved["health-other-cpu-1"] = ("cpu-1",)
    world.slurm.watched = {"cpu-0"}

    world.run()
    assert [*world.slurm.reserved] == ["health-other-cpu-1"]
    assert world.slurm.open_unverified == []
    assert re.match(r"health ring_bandwidth: 2 GB/s", world.node(0).reason)


def test_a_drained_node_in_a_reservation_of_an_admin_is_left_alone(tmp_path: Path) -> None:
    world = a_drained_world(tmp_path, OURS)
    world.slurm.reserved["repair"] = ("cpu-0",)

    world.run()
    assert world.drained() == {"cpu-0": OURS}
    assert [*world.slurm.reserved] == ["repair"]


def in_image(tmp_path: Path) -> World:
    return World(tmp_path, count=2, program="tcp", size=2, arguments={"seconds": 1, "streams": 4}, image="team/tools")


def test_the_jobs_of_a_check_with_an_image_start_it(tmp_path: Path) -> None:
    world = in_image(tmp_path)
    world.run()

    assert world.slurm.jobs_of
    assert all("--container-image=team/tools" in request.script for request in world.slurm.jobs_of.values())


def test_a_program_that_the_image_does_not_have_is_reported_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = in_image(tmp_path)
    monkeypatch.setattr(Reports, "output", lambda *_: "health: no program iperf3\n")

    assert world.run() == 1
    assert world.drained() == {}
    assert "iperf3 is not in team/tools: use another image" in world.events[0]["value"]


@pytest.mark.parametrize("state", ["FAILED", "TIMEOUT"])
def test_a_container_that_does_not_start_says_nothing_about_the_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    world = in_image(tmp_path)
    monkeypatch.setattr(world.slurm, "job_state", lambda _: state)
    monkeypatch.setattr(Reports, "output", lambda *_: "slurmstepd: image team/tools: no such image\n")

    assert world.run() == 1
    assert world.drained() == {}
    assert "no such image" in world.events[0]["value"]


def test_a_program_that_hangs_in_its_container_is_the_nodes_to_answer_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = in_image(tmp_path)
    monkeypatch.setattr(world.slurm, "job_state", lambda _: "TIMEOUT")
    monkeypatch.setattr(Reports, "output", lambda *_: "health: began\n")
    world.run()

    assert {event["result"] for event in world.events if event["event"] == "measured"} == {"failed"}
