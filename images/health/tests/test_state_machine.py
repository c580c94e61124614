"""Rounds in a row, drains and their ends, over any results."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_health.check_settings import CheckSettings
from node_health.state_machine import NodeChange, NodeState, Tally, check_of, decide, failing
from slurm_wire.drain_reasons import health_reason

NAMES = ("gpu_count", "volumes", "memory_available")


def settings(action: str = "drain", undrain: str = "auto", failures: int = 2, passes: int = 3) -> CheckSettings:
    return CheckSettings(1, "1", action, undrain, failures, passes, 60, ("idle", "busy"))


def of_check(name: str, value: str = "7") -> str:
    return health_reason(name, value, "8")


IDLE = NodeState("IDLE+DYNAMIC_NORM", "")
DRAINED_BY_GPUS = NodeState("IDLE+DRAIN+DYNAMIC_NORM", of_check("gpu_count"))

checks = st.builds(
    settings,
    action=st.sampled_from(["log", "drain", "drain_and_replace"]),
    undrain=st.sampled_from(["auto", "verify", "never"]),
    failures=st.integers(1, 5),
    passes=st.integers(1, 5),
)
all_settings = st.dictionaries(st.sampled_from(NAMES), checks)
tallies = st.one_of(st.builds(Tally, failures=st.integers(0, 6)), st.builds(Tally, passes=st.integers(0, 6)))
all_tallies = st.dictionaries(st.sampled_from(NAMES), tallies)
others_reasons = st.one_of(
    st.sampled_from(
        [
            "",
            "none",
            "disk of rack 4",
            "health",
            "health check: fan of PSU 2 is loud",
            "health gpu_count",
            "Kill task failed",
            "soperator-pulumi p.s.c: scale-down 1a2b3c (was: health gpu_count: 7, allowed 8)",
            "unhealthy: health gpu_count: 7, allowed 8",
        ]
    ),
    st.text(max_size=40).filter(lambda text: not text.startswith("health ")),
)


@given(all_settings, all_tallies, others_reasons, st.sampled_from(["IDLE+DRAIN", "MIXED+DRAIN+DYNAMIC_NORM"]))
def test_a_drain_of_someone_else_is_never_changed(
    given_settings: dict[str, CheckSettings], counted: dict[str, Tally], other: str, state: str
) -> None:
    reasons = {name: of_check(name) for name in NAMES}

    assert decide(given_settings, counted, reasons, NodeState(state, other)) == NodeChange()


@given(all_settings, all_tallies, st.sampled_from(["DOWN", "DOWN*", "IDLE+FAIL", "DOWN+NOT_RESPONDING"]))
def test_a_node_that_is_out_of_service_already_is_not_drained(
    given_settings: dict[str, CheckSettings], counted: dict[str, Tally], state: str
) -> None:
    reasons = {name: of_check(name) for name in NAMES}

    assert decide(given_settings, counted, reasons, NodeState(state, "")) == NodeChange()


@given(all_settings, all_tallies)
def test_a_node_in_service_is_drained_exactly_when_a_draining_check_has_failed_often_enough(
    given_settings: dict[str, CheckSettings], counted: dict[str, Tally]
) -> None:
    reasons = {name: of_check(name) for name in NAMES}
    wanted = [
        name
        for name, given_setting in given_settings.items()
        if given_setting.action != "log" and counted.get(name, Tally()).failures >= given_setting.failures
    ]

    decision = decide(given_settings, counted, reasons, IDLE)

    assert not decision.undrain
    assert decision.drain == (of_check(wanted[0]) if wanted else "")


@given(all_settings, all_tallies)
def test_a_drain_by_checks_ends_only_when_the_same_check_has_passed_often_enough_and_no_other_drains(
    given_settings: dict[str, CheckSettings], counted: dict[str, Tally]
) -> None:
    reasons = {name: of_check(name) for name in NAMES}

    decision = decide(given_settings, counted, reasons, DRAINED_BY_GPUS)

    own = given_settings.get("gpu_count")
    draining = [name for name in failing(given_settings, counted) if given_settings[name].drains]
    if decision.undrain:
        assert own is not None
        assert own.undrain == "auto"
        assert counted["gpu_count"].passes >= own.passes
        assert not draining
    if decision.drain:
        assert own is not None
        assert check_of(NodeState("DRAIN", decision.drain)) in draining
    if own is not None and own.undrain == "never":
        assert decision == NodeChange()


@given(st.lists(st.sampled_from([True, False, None]), max_size=40), st.integers(1, 4), st.integers(1, 4))
def test_the_node_follows_its_results_with_hysteresis(rounds: list[bool | None], failures: int, passes: int) -> None:
    """None: the round had no reading, which neither fails nor passes."""
    own = {"gpu_count": settings(failures=failures, passes=passes)}
    tally, node, history = Tally(), IDLE, ""
    for passed in rounds:
        if passed is not None:
            tally = tally.counted(passed=passed)
            history += "+" if passed else "-"
        decision = decide(own, {"gpu_count": tally}, {"gpu_count": of_check("gpu_count")}, node)
        if decision.drain:
            assert history.endswith("-" * failures)
            node = NodeState("IDLE+DRAIN", decision.drain)
        elif decision.undrain:
            assert history.endswith("+" * passes)
            node = NodeState("IDLE", "none")
    if history:
        ended_badly = re.search(rf"-{{{failures},}}$", history)
        ended_well = re.search(rf"\+{{{passes},}}$", history)
        assert not (ended_badly and not node.drained)
        assert not (ended_well and node.drained)


@given(
    st.sampled_from(NAMES), st.text(max_size=60), st.sampled_from(["", " : Not responding", " : Not responding" * 2])
)
def test_a_reason_is_recognized_again_whatever_the_value_was(name: str, value: str, appended: str) -> None:
    made = of_check(name, value or "-")

    assert check_of(NodeState("IDLE+DRAIN", made + appended)) == name
    assert made.isprintable()
    assert not {'"', "'", "\n"} & set(made)


@pytest.mark.parametrize("words", ["; RMA 123", " - do not touch", " (alice, ticket 7)", ", allowed 8, says alice"])
def test_an_admin_who_writes_behind_a_reason_by_checks_keeps_the_node(words: str) -> None:
    assert check_of(NodeState("IDLE+DRAIN", of_check("gpu_count") + words)) is None


def test_a_stricter_check_takes_over_the_reason_so_that_its_way_back_counts() -> None:
    own = {"gpu_count": settings(), "volumes": settings(undrain="never")}
    counted = {"gpu_count": Tally(passes=9), "volumes": Tally(failures=2)}

    assert decide(own, counted, {"volumes": of_check("volumes")}, DRAINED_BY_GPUS).drain == of_check("volumes")


def test_a_check_that_is_switched_off_leaves_its_drain() -> None:
    assert decide({}, {"gpu_count": Tally(passes=9)}, {}, DRAINED_BY_GPUS) == NodeChange()


def test_a_tally_is_kept_as_json() -> None:
    tally = Tally().counted(passed=False).counted(passed=False)

    assert Tally(*json.loads(json.dumps(list(tally)))) == Tally(failures=2)
