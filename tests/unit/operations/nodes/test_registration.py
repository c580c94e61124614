"""Waiting for nodes, and what is said of those that do not come."""

from typing import Any

import pytest

from soperator_pulumi.errors import NotReadyError
from soperator_pulumi.kube.pods import STATE_LOST
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.nodes.context import slurm_of
from soperator_pulumi.operations.nodes.registration import Registration
from tests.fakes.objects import NAMESPACE, PODS, STATEFUL_SETS, labels_of
from tests.fakes.slurmctld import Record
from tests.fakes.small_world import SmallWorld

CPU = labels_of("worker", "cpu")


@pytest.fixture
def world() -> SmallWorld:
    """A controller and two workers that have joined."""
    world = SmallWorld()
    world.add_pod("controller-0", "controller")
    for name in ("cpu-0", "cpu-1"):
        world.add_pod(name, "worker", node_set="cpu")
        world.slurm.nodes[name] = Record(name)
    return world


def registration(world: SmallWorld, size: int = 2) -> Registration:
    """Return who waits for a node set that the StatefulSet has as many pods of."""
    world.objects[f"{STATEFUL_SETS}/cpu"] = a_stateful_set(size)
    place = ClusterRef(namespace=NAMESPACE, owner="hpc", selector=CPU)
    slurm = slurm_of(world, place, world.clock)
    return Registration(world, place, "cpu", size, slurm, world.reported.append, world.clock)


def a_stateful_set(replicas: int) -> dict[str, Any]:
    return {"metadata": {"generation": 1}, "spec": {"replicas": replicas}, "status": {"observedGeneration": 1}}


def names(size: int) -> list[str]:
    return [f"cpu-{ordinal}" for ordinal in range(size)]


def missing(world: SmallWorld, size: int = 2) -> list[str]:
    """Return what is said of the nodes that have not joined."""
    waiting = registration(world, size)
    status = waiting.look()
    return waiting.reasons(status, status.missing_of(status.names))


def test_nodes_that_are_there_are_not_waited_for(world: SmallWorld) -> None:
    registration(world).wait(names(2), 600)
    assert world.reported == ["cpu: 2 of 2 nodes have joined"]
    assert world.clock.time == 0


def test_a_look_takes_one_command(world: SmallWorld) -> None:
    registration(world).look()
    assert world.commands == ["scontrol show nodes --json"]


def test_a_node_that_comes_late_is_waited_for(world: SmallWorld) -> None:
    late = world.slurm.nodes.pop("cpu-1")
    world.clock.after(7, lambda: world.slurm.nodes.update({late.name: late}))
    registration(world).wait(names(2), 600)
    assert world.reported[0] == "cpu: 1 of 2 nodes have joined, 600 s left"
    assert 7 <= world.clock.time < 9


@pytest.mark.parametrize("state", [("IDLE", "DRAIN"), ("MIXED",), ("ALLOCATED", "COMPLETING"), ("IDLE", "RESERVED")])
def test_a_node_that_works_or_that_someone_drained_has_joined(world: SmallWorld, state: tuple[str, ...]) -> None:
    world.slurm.nodes["cpu-1"].shown = state
    assert missing(world) == []


@pytest.mark.parametrize(
    "state", [("DOWN",), ("IDLE", "NOT_RESPONDING"), ("IDLE", "INVALID_REG"), ("UNKNOWN",), ("IDLE", "POWERED_DOWN")]
)
def test_a_node_that_slurm_cannot_use_has_not_joined(world: SmallWorld, state: tuple[str, ...]) -> None:
    world.slurm.nodes["cpu-1"] = Record("cpu-1", reason="Low RealMemory", shown=state)
    (reason,) = missing(world)
    assert reason.startswith("cpu-1: Slurm reports ")
    assert reason.endswith("(Low RealMemory)")


def test_a_record_of_a_node_whose_pod_has_not_started_is_not_a_node(world: SmallWorld) -> None:
    world.add_pod("cpu-1", "worker", "creating", node_set="cpu")
    assert missing(world) == ["cpu-1: its pod starts"]


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("unschedulable", "its pod waits for a machine: 0/3 nodes are available: 3 Insufficient cpu."),
        ("no image", "its pod slurmd: ErrImagePull: not found"),
        ("crashed", "its pod slurmd: CrashLoopBackOff: back-off 10s (exit code 1); its last words: fatal: no cgroup"),
        ("restarted", "its pod slurmd: ended with exit code 1 and was restarted; its last words: fatal: no cgroup"),
    ],
)
def test_each_missing_node_says_what_it_lacks(world: SmallWorld, state: str, reason: str) -> None:
    world.add_pod("cpu-1", "worker", state, node_set="cpu")
    world.logs["cpu-1"] = "starting\nfatal: no cgroup\n"
    assert missing(world) == [f"cpu-1: {reason}"]


def test_nodes_that_lack_the_same_stand_in_one_line(world: SmallWorld) -> None:
    assert missing(world, 10) == ["cpu-2, cpu-3, cpu-4, cpu-5, cpu-6 and 3 more: its pod does not exist yet"]


def test_a_pod_whose_slurmd_is_not_known_to_slurmctld_is_told_apart(world: SmallWorld) -> None:
    del world.slurm.nodes["cpu-1"]
    assert missing(world) == ["cpu-1: slurmd runs, but has not registered with slurmctld"]


def test_a_controller_that_does_not_answer_is_named_as_the_reason(world: SmallWorld) -> None:
    world.add_pod("controller-0", "controller", "unschedulable")
    assert missing(world, 1) == [
        (
            "cpu-0: slurmctld does not answer: pod controller-0 waits for a machine: "
            "0/3 nodes are available: 3 Insufficient cpu."
        )
    ]


@pytest.mark.parametrize(("newest", "ends"), [("a", True), ("b", False)])
def test_a_wait_for_nodes_ends_at_once_if_slurmctld_refuses_a_lost_state(
    world: SmallWorld, newest: str, ends: bool
) -> None:
    pod = world.add_pod("controller-0", "controller", "crashed")
    pod["metadata"]["labels"]["controller-revision-hash"] = "a"
    pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] = STATE_LOST
    status = {"observedGeneration": 2, "updateRevision": newest}
    world.objects[f"{STATEFUL_SETS}/controller"] = {"metadata": {"generation": 2}, "status": status}
    if ends:
        with pytest.raises(NotReadyError, match=r"^cpu: slurmctld does not answer: pod controller-0 .*\n.*run again"):
            registration(world).wait(names(2), 600)
        assert world.clock.time < 5
    else:
        registration(world).wait(names(2), 60)
        assert world.clock.time >= 60


def test_after_the_time_is_up_nodes_are_named_with_their_reasons(world: SmallWorld) -> None:
    world.add_pod("cpu-1", "worker", "no image", node_set="cpu")
    waiting = registration(world)
    status = waiting.wait(names(2), 30)
    assert waiting.not_joined(status, names(2), 30) == (
        "cpu: 1 of 2 nodes have not joined Slurm after 30 s:\n  cpu-1: its pod slurmd: ErrImagePull: not found"
    )


@pytest.mark.parametrize(
    ("live", "words"),
    [
        (1, "has 1 replicas instead of 2: they were changed outside Pulumi"),
        (3, "has 3 replicas instead of 2: they were changed outside Pulumi"),
        (None, "its StatefulSet was deleted"),
    ],
)
def test_a_stateful_set_of_another_size_is_reported_at_once_with_what_to_run(
    world: SmallWorld, live: int | None, words: str
) -> None:
    waiting = registration(world)
    path = f"{STATEFUL_SETS}/cpu"
    world.objects.pop(path)
    if live is not None:
        world.objects[path] = a_stateful_set(live)
    with pytest.raises(NotReadyError, match=words) as raised:
        waiting.wait(names(2), 600)
    assert "`pulumi up --refresh`" in str(raised.value)
    assert world.clock.time == 0


def test_a_pod_that_is_being_deleted_has_not_joined_though_it_is_ready(world: SmallWorld) -> None:
    world.objects[f"{PODS}/cpu-1"]["metadata"]["deletionTimestamp"] = "now"
    assert missing(world) == ["cpu-1: its pod is being deleted"]


def test_reasons_are_reported_while_waiting_but_not_in_the_first_seconds(world: SmallWorld) -> None:
    world.add_pod("cpu-1", "worker", "no image", node_set="cpu")
    registration(world).wait(names(2), 25)
    assert world.reported[0] == "cpu: 1 of 2 nodes have joined, 25 s left"
    assert world.reported[2] == "  cpu-1: its pod slurmd: ErrImagePull: not found"
