"""The table of seconds is written from what parts measured when they last passed."""

import pytest

from tools.soak.parts import LANES
from tools.soak.passes import Pass, Revision
from tools.soak.seconds import measured, updated

_, CLUSTERS, NEWER, _ = (lane.name for lane in LANES)
HERE = "tests/unit/tools/soak/test_seconds.py"
OTHER = "tests/unit/tools/soak/test_parts.py"


def a_pass(seconds: dict[str, float], lane: str = CLUSTERS) -> Pass:
    return Pass("1/9", lane, Revision("a" * 40, changed=False), "2026-01-02T03:04:05+00:00", 700, seconds)


def test_the_last_measurement_counts() -> None:
    assert measured([a_pass({"a": 7, "b": 1}), a_pass({"a": 9})]) == {"a": 9, "b": 1}


def test_the_longest_counts_where_two_lanes_have_a_file() -> None:
    assert measured([a_pass({"a": 9}), a_pass({"a": 7}, NEWER)]) == {"a": 9}


def test_shares_of_several_parts_make_a_file_and_missing_ones_count_as_the_others() -> None:
    found = measured([a_pass({"a 1/4": 10, "a 3/4": 10}), a_pass({"a 2/4": 40})])

    assert found == {"a": pytest.approx(80)}


def test_shares_of_another_division_of_the_file_do_not_count() -> None:
    assert measured([a_pass({"a 1/2": 500}), a_pass({"a 1/3": 100})]) == {"a": pytest.approx(300)}


def test_the_table_keeps_what_was_not_measured_and_drops_what_takes_the_default_or_is_gone() -> None:
    default = LANES[0].default_seconds

    assert updated({HERE: 70, OTHER: 80, "tests/unit/test_gone.py": 90}, {OTHER: default + 1}) == {HERE: 70}


def test_the_table_takes_what_was_measured_in_whole_seconds() -> None:
    assert updated({HERE: 70}, {HERE: 99.6, OTHER: 33.2}) == {OTHER: 33, HERE: 100}
