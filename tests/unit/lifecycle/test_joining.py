"""Waiting for nodes, and what is said of those that do not come."""

from typing import Any

import pytest

from soperator_pulumi.errors import NotReadyError
from soperator_pulumi.lifecycle.joining import Joining
from tests.unit.lifecycle.world import NAMESPACE, SELECTOR, World

CPU = {**SELECTOR, "app.kubernetes.io/component": "worker", "soperator-pulumi/node-set": "cpu"}


def a_node(name: str, *state: str, reason: str = "") -> dict[str, Any]:
    return {"name": name, "state": list(state), "active_features": ["cpu"], "reason": reason}


@pytest.fixture
def world() -> World:
    """A controller and two workers that have joined."""
    world = World()
    world.add_pod("controller-0", "controller")
    for name in ("cpu-0", "cpu-1"):
        world.add_pod(name, "worker", node_set="cpu")
        world.nodes.append(a_node(name, "IDLE", "DYNAMIC_NORM"))
    return world


def joining(world: World) -> Joining:
    return Joining(world, namespace=NAMESPACE, node_set="cpu", selector=CPU, say=world.said.append, clock=world.clock)


def test_nodes_that_are_there_are_not_waited_for(world: World) -> None:
    joining(world).wait(2, 600)
    assert world.said == ["cpu: 2 of 2 nodes have joined"]
    assert world.clock.time == 0


def test_a_node_set_of_no_nodes_asks_nobody() -> None:
    world = World()
    assert joining(world).roll(0).missing == {}
    assert world.commands == []


def test_a_node_that_comes_late_is_waited_for(world: World) -> None:
    late = world.nodes.pop()
    world.clock.after(7, lambda: world.nodes.append(late))
    joining(world).wait(2, 600)
    assert world.said[0] == "cpu: 1 of 2 nodes have joined, 600 s left"
    assert 7 <= world.clock.time < 9


@pytest.mark.parametrize("state", [("IDLE", "DRAIN"), ("MIXED",), ("ALLOCATED", "COMPLETING"), ("IDLE", "RESERVED")])
def test_a_node_that_works_or_that_somebody_drained_has_joined(world: World, state: tuple[str, ...]) -> None:
    world.nodes[1] = a_node("cpu-1", *state)
    assert joining(world).roll(2).missing == {}


@pytest.mark.parametrize(
    "state", [("DOWN",), ("IDLE", "NOT_RESPONDING"), ("IDLE", "INVALID_REG"), ("UNKNOWN",), ("IDLE", "POWERED_DOWN")]
)
def test_a_node_that_slurm_cannot_use_has_not_joined(world: World, state: tuple[str, ...]) -> None:
    world.nodes[1] = a_node("cpu-1", *state, reason="Low RealMemory")
    (reason,) = joining(world).roll(2).missing.values()
    assert reason.startswith("Slurm says ")
    assert reason.endswith("(Low RealMemory)")


def test_a_record_of_a_node_whose_pod_has_not_started_is_not_a_node(world: World) -> None:
    world.add_pod("cpu-1", "worker", "creating", node_set="cpu")
    assert joining(world).roll(2).missing == {"cpu-1": "its pod starts"}


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("unschedulable", "its pod waits for a machine: 0/3 nodes are available: 3 Insufficient cpu."),
        ("no image", "its pod slurmd: ErrImagePull: not found"),
        ("crashed", "its pod slurmd: CrashLoopBackOff: back-off 10s (exit code 1); its last words: fatal: no cgroup"),
    ],
)
def test_each_missing_node_says_what_it_lacks(world: World, state: str, reason: str) -> None:
    world.add_pod("cpu-1", "worker", state, node_set="cpu")
    world.logs["cpu-1"] = "starting\nfatal: no cgroup\n"
    assert joining(world).roll(2).lines() == [f"cpu-1: {reason}"]


def test_nodes_that_lack_the_same_stand_in_one_line(world: World) -> None:
    assert joining(world).roll(10).lines() == [
        "cpu-2, cpu-3, cpu-4, cpu-5, cpu-6 and 3 more: its pod does not exist yet"
    ]


def test_a_pod_whose_slurmd_is_not_known_to_slurmctld_is_told_apart(world: World) -> None:
    world.nodes.pop()
    assert joining(world).roll(2).lines() == ["cpu-1: slurmd runs, but has not registered with slurmctld"]


def test_a_controller_that_does_not_answer_is_named_as_the_reason(world: World) -> None:
    world.add_pod("controller-0", "controller", "unschedulable")
    assert joining(world).roll(1).lines() == [
        (
            "cpu-0: slurmctld does not answer: pod controller-0 waits for a machine: "
            "0/3 nodes are available: 3 Insufficient cpu."
        )
    ]


def test_after_the_time_is_up_the_error_names_nodes_reasons_and_what_to_do(world: World) -> None:
    world.add_pod("cpu-1", "worker", "no image", node_set="cpu")
    with pytest.raises(NotReadyError) as raised:
        joining(world).wait(2, 30)
    assert str(raised.value) == (
        "cpu: 1 of 2 nodes have not joined Slurm after 30 s:\n"
        "  cpu-1: its pod slurmd: ErrImagePull: not found\n"
        "Mend what is named and run again, lower the node set's replicas, or raise its ready_timeout_seconds."
    )


def test_reasons_are_told_while_waiting_but_not_in_the_first_seconds(world: World) -> None:
    world.add_pod("cpu-1", "worker", "no image", node_set="cpu")
    with pytest.raises(NotReadyError):
        joining(world).wait(2, 25)
    assert world.said[0] == "cpu: 1 of 2 nodes have joined, 25 s left"
    assert world.said[2] == "  cpu-1: its pod slurmd: ErrImagePull: not found"
