"""Nodes to be recreated next: never more are out of service than allowed."""

import math

from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.operations.nodes.recreation import next_wave
from soperator_pulumi.spec.types.int_or_percent import Share

NODES = [f"gpu-{ordinal}" for ordinal in range(10)]
TENTH, THREE = Share(10, percent=True), Share(3)


def test_idle_nodes_come_first_and_then_those_whose_jobs_end_first() -> None:
    busy = {"gpu-0": 300.0, "gpu-1": 100.0, "gpu-2": math.inf, "gpu-4": 200.0}

    assert next_wave(NODES[:5], set(), 10, Share(4), busy) == ("gpu-3", "gpu-1", "gpu-4", "gpu-0")


def test_a_node_that_is_out_of_service_anyway_costs_nothing() -> None:
    assert next_wave(NODES, {"gpu-7", "gpu-8"}, 10, THREE, {}) == ("gpu-7", "gpu-8", "gpu-0")


def test_renewed_nodes_that_are_not_back_leave_less_room() -> None:
    """Case 20: missing and unready nodes count."""
    assert next_wave(NODES[2:], {"gpu-0", "gpu-1"}, 10, THREE, {}) == ("gpu-2",)
    assert next_wave(NODES[3:], {"gpu-0", "gpu-1", "gpu-2"}, 10, THREE, {}) == ()


def test_one_node_may_always_be_out_of_service() -> None:
    assert next_wave(NODES[:3], set(), 3, TENTH, {}) == ("gpu-0",)


def test_a_draining_node_with_a_long_job_does_not_hold_up_the_others() -> None:
    busy, out = {"gpu-0": math.inf}, {"gpu-0"}

    assert next_wave(["gpu-0", "gpu-1"], out, 10, THREE, busy) == ("gpu-1",)
    assert next_wave(["gpu-0"], out, 10, THREE, busy) == ("gpu-0",)


names = st.sets(st.sampled_from(NODES))


@given(names, names, st.dictionaries(st.sampled_from(NODES), st.floats(0)), st.integers(1, 12))
def test_no_wave_puts_more_out_of_service_than_may_be(
    outdated: set[str], unavailable: set[str], busy: dict[str, float], budget: int
) -> None:
    wave = next_wave(sorted(outdated), unavailable, 10, Share(budget), busy)

    assert set(wave) <= outdated
    assert len(unavailable | set(wave)) <= max(budget, len(unavailable))


@given(names, st.dictionaries(st.sampled_from(NODES), st.floats(0)))
def test_every_node_is_renewed_in_the_end(outdated: set[str], busy: dict[str, float]) -> None:
    left = set(outdated)
    for _ in outdated:
        left -= set(next_wave(sorted(left), set(), 10, TENTH, busy))

    assert not left
