"""Keys of charts' values: known ones are accepted, and every misspelt one is refused with the nearest."""

import re
from difflib import SequenceMatcher
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.platform.chart_values import KnownKeys, known_keys, merged_values, parse_keys, unknown_keys
from soperator_pulumi.platform.charts import CHART_OF_PART

LISTS = sorted({chart.known_keys for chart in CHART_OF_PART.values()})


def nested(path: str, value: object) -> dict[str, Any]:
    """The values that give one key a value."""
    first, dot, rest = path.partition(".")
    return {first: nested(rest, value) if dot else value}


def problems(values: dict[str, Any], known: KnownKeys) -> list[str]:
    return [str(unknown_key) for unknown_key in unknown_keys(values, known, "chart 1.0")]


def level_of(known: KnownKeys, path: str) -> KnownKeys:
    """The keys next to the last one of a path."""
    for key in path.split(".")[:-1]:
        known = known.below[key]
    return known


@pytest.mark.parametrize("name", LISTS)
def test_every_key_of_a_list_is_accepted(name: str) -> None:
    known = known_keys(name)
    paths = [*known.paths()]
    assert len(paths) > 100
    for path in paths:
        assert problems(nested(path, {}), known) == []


@st.composite
def misspelt(draw: st.DrawFn) -> tuple[str, str, str]:
    """A list, a key of it, and the same key with one character twice, at a level with known keys alone."""
    name = draw(st.sampled_from(LISTS))
    known = known_keys(name)
    path = draw(st.sampled_from([*known.paths()]).filter(lambda item: not level_of(known, item).free))
    above, _, key = path.rpartition(".")
    index = draw(st.integers(0, len(key) - 1))
    wrong = key[:index] + key[index] + key[index:]
    return name, path, f"{above}.{wrong}".removeprefix(".")


@given(misspelt())
def test_every_misspelt_key_is_refused_with_one_as_near_as_the_right_one(case: tuple[str, str, str]) -> None:
    name, path, wrong = case
    known = known_keys(name)
    above, _, key = wrong.rpartition(".")
    if key in level_of(known, path).below:
        return  # the misspelling of a key is another one, such as `extraArg` and `extraArgs`
    (found,) = problems(nested(wrong, 1), known)
    assert found.startswith(f"{wrong}: the chart chart 1.0 has no such key. Did you mean ")
    (meant,) = re.findall(r'Did you mean "(.*)"', found)
    assert meant.rpartition(".")[0] == above
    right = path.rpartition(".")[2]
    assert _likeness(key, meant.rpartition(".")[2]) >= _likeness(key, right)


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, other, one).ratio()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            {"driver": {"enbled": False}},
            ['driver.enbled: the chart chart 1.0 has no such key. Did you mean "driver.enabled"?'],
        ),
        (
            {"driver": {"version": {"a": 1}}},
            ['driver.version.a: the chart chart 1.0 has no such key: "driver.version" takes no mapping.'],
        ),
        ({"toolkit": True}, ["toolkit: got true, needs a mapping with enabled, env, hostNetwork, image, "]),
        ({"zzzzzz": 1}, ["zzzzzz: the chart chart 1.0 has no such key. Allowed here: ccManager, cdi, clusterPolicy, "]),
        ({"daemonsets": {"labels": {"any.thing/x": {"y": 1}}}}, []),
        ({"daemonsets": {"tolerations": [{"anything": 1}]}}, []),
        ({"dcgmExporter": {"hpcJobMapping": {"enabled": True}}}, []),
        ({"driver": None}, []),
    ],
)
def test_a_key_of_a_value_is_judged_where_it_stands(values: dict[str, Any], expected: list[str]) -> None:
    found = problems(values, known_keys("gpu-operator-26.7.0"))
    assert len(found) == len(expected)
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True))


def test_all_unknown_keys_are_found_at_once() -> None:
    assert len(problems({"drver": 1, "cdi": {"enbled": 1}}, known_keys("gpu-operator-26.7.0"))) == 2


def test_every_list_is_that_of_a_chart_of_the_table() -> None:
    there = {path.name.removesuffix(".txt") for path in (files("soperator_pulumi.platform") / "keys").iterdir()}
    assert there == {*LISTS}


def test_a_list_is_a_tree_with_a_space_for_each_level() -> None:
    known = parse_keys("a\n b\n  c *\n d\ne *\n")
    assert [*known.paths()] == ["a", "a.b", "a.b.c", "a.d", "e"]
    assert known.below["a"].below["b"].below["c"].free
    assert not known.below["a"].free


VALUES = st.recursive(
    st.integers() | st.text(max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
TREES = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


@given(TREES, TREES)
def test_merged_values_have_each_given_one_and_those_of_ours_next_to_it(
    ours: dict[str, Any], own: dict[str, Any]
) -> None:
    merged = merged_values(ours, own)
    assert merged_values(merged, own) == merged
    assert merged_values(ours, {}) == ours
    for key in {*ours, *own}:
        if key not in own:
            assert merged[key] == ours[key]
        elif not isinstance(own[key], dict):
            assert merged[key] == own[key]


def test_null_takes_a_value_of_this_package_away_at_any_depth() -> None:
    assert merged_values({"a": {"b": 1, "c": 2}, "d": 1}, {"a": {"b": None}, "d": None, "e": {"f": None}}) == {
        "a": {"c": 2},
        "e": {},
    }
