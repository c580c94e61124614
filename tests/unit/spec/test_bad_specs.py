"""Descriptions with mistakes: every mistake is reported, at its place, in one message."""

import copy
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.errors import SpecError
from soperator_pulumi.spec.cluster import parse_cluster
from tests.strategies import Data, a_cluster, cluster_data
from tests.unit.spec.mutations import MUTATIONS, Mutation

three_sets = cluster_data(min_node_sets=3)
mistakes = st.lists(st.sampled_from(MUTATIONS), min_size=1, max_size=8, unique_by=lambda item: item.region)


def the_error_of(data: Data) -> SpecError:
    with pytest.raises(SpecError) as caught:
        parse_cluster(data)
    return caught.value


@given(three_sets, mistakes)
def test_n_mistakes_give_n_problems_each_at_its_path(data: Data, mutations: list[Mutation]) -> None:
    spoiled = copy.deepcopy(data)
    expected = sorted(mutation.spoil(spoiled) for mutation in mutations)
    error = the_error_of(spoiled)
    assert sorted(problem.path for problem in error.problems) == expected, str(error)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=repr)
def test_a_single_mistake_gives_a_single_problem(mutation: Mutation) -> None:
    spoiled = a_cluster(node_sets=[{"name": name, "cpus": 2, "memory_gib": 4} for name in ("x", "y", "z")])
    path = mutation.spoil(spoiled)
    error = the_error_of(spoiled)
    assert [problem.path for problem in error.problems] == [path], str(error)


@pytest.mark.parametrize("resource", ["gpu", "intel.com/gpu"])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hooks", {"prolog": {"A": {"script": "x"}}}),
        ("health", {"long_checks": {"memory_bandwidth": {"undrain": "auto"}}, "verify_new_nodes": True, "intreval": 1}),
    ],
)
def test_gpus_of_no_known_maker_are_one_problem_next_to_those_of_what_looks_at_them(
    resource: str, key: str, value: Data
) -> None:
    described = a_cluster(**{key: value})
    described["node_sets"][0]["gpus"] = {"count": 1, "resource": resource}
    paths = [problem.path for problem in the_error_of(described).problems]
    assert "node_sets[0].gpus.resource" in paths
    assert [path for path in paths if path.startswith(f"{key}.")]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=repr)
def test_a_problem_is_reported_in_our_words(mutation: Mutation) -> None:
    spoiled = a_cluster(node_sets=[{"name": name, "cpus": 2, "memory_gib": 4} for name in ("x", "y", "z")])
    mutation.spoil(spoiled)
    text = str(the_error_of(spoiled)).splitlines()[1]
    assert text.rstrip().endswith((".", "?"))
    for word in ("Input should", "pydantic", "validat", "Error", "Traceback", "type=", "<class", "UNKNOWN", "_Unknown"):
        assert word not in text, text


@given(three_sets, mistakes)
def test_the_same_mistakes_give_the_same_message(data: Data, mutations: list[Mutation]) -> None:
    spoiled = copy.deepcopy(data)
    for mutation in mutations:
        mutation.spoil(spoiled)
    assert str(the_error_of(spoiled)) == str(the_error_of(copy.deepcopy(spoiled)))


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(cluster_data(), st.data())
def test_whatever_stands_at_a_key_gives_a_spec_or_problems_never_another_error(
    data: Data, drawn: st.DataObject
) -> None:
    spoiled = copy.deepcopy(data)
    at: Data = spoiled
    for _ in range(drawn.draw(st.integers(0, 3))):
        inner = [item for item in at.values() if isinstance(item, dict) and item]
        inner += [
            item for several in at.values() if isinstance(several, list) for item in several if isinstance(item, dict)
        ]
        at = drawn.draw(st.sampled_from(inner)) if inner else at
    at[drawn.draw(st.sampled_from(sorted(at)))] = drawn.draw(anything)
    with suppress(SpecError):
        parse_cluster(spoiled)


@pytest.mark.parametrize(
    ("key", "value", "path"),
    [
        ("slurm", {"extra": 5}, "slurm.extra"),
        ("slurm", {"extra": {"MaxJobCount": None}}, "slurm.extra.MaxJobCount"),
        ("partitions", [5], "partitions[0]"),
        ("partitions", [{"name": "all", "options": {"AllowQos": None}}], "partitions[0].options.AllowQos"),
        ("login", None, "login"),
        ("login", {"pools": ["gpu"]}, "login.pools"),
        ("login", {"pools": {"gpu": None}}, "login.pools.gpu"),
    ],
)
def test_settings_that_cannot_be_read_are_problems_without_accounting_too(key: str, value: object, path: str) -> None:
    assert path in [problem.path for problem in the_error_of(a_cluster(accounting="none", **{key: value})).problems]
