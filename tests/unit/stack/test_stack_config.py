"""Keys of a stack's configuration, and descriptions merged over the defaults."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soperator_pulumi.stack import stack_config
from tests.strategies import a_spec

_SCALARS = st.one_of(st.integers(), st.booleans(), st.text(max_size=3), st.lists(st.integers(), max_size=2))
MAPPINGS = st.recursive(
    st.dictionaries(st.sampled_from("abc"), st.one_of(st.none(), _SCALARS), max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), st.one_of(inner, st.none(), _SCALARS), max_size=3),
    max_leaves=8,
)

BOTH = "given together with soperator:cluster. Describe all clusters here, and remove that key."
NONE = (
    "describes no cluster. Describe one under soperator:cluster, several by their names under soperator:clusters, or a "
    "platform for clusters of other stacks under soperator:platform."
)


def texts(values: dict[str, Any]) -> list[str]:
    return [*map(str, stack_config.read(values)[1])]


@pytest.mark.parametrize(
    ("defaults", "own", "expected"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}, {"a": {"b": 1, "c": 3}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": {"b": 1}}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {"a": {"b": 2}}, {"a": {"b": 2}}),
        ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
        ({"a": {"b": 1}}, {"a": {"b": None}}, {"a": {}}),
        ({}, {"a": {"b": None}}, {"a": {}}),
        ({"a": 1}, [1], [1]),
        ("no mapping", {"a": 1}, {"a": 1}),
    ],
)
def test_mappings_merge_key_by_key_and_all_else_wins_whole(defaults: object, own: object, expected: object) -> None:
    assert stack_config.merged(defaults, own) == expected


@settings(max_examples=50)
@given(MAPPINGS, MAPPINGS)
def test_a_description_wins_over_every_default_and_nothing_else_of_them_is_lost(
    defaults: dict[str, Any], own: dict[str, Any]
) -> None:
    found = stack_config.merged(defaults, own)

    assert isinstance(found, dict)
    assert found.keys() == {key for key, value in {**defaults, **own}.items() if value is not None}
    assert stack_config.merged(found, own) == found
    assert {key: found[key] for key in found.keys() - own.keys()} == {
        key: defaults[key] for key in found.keys() - own.keys()
    }


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"soperator:clutser": {}}, ['soperator:clutser: unknown key. Did you mean "soperator:cluster"?']),
        (
            {"soperator:cluster": {}, "soperator:kubconfig": "x"},
            ['soperator:kubconfig: unknown key. Did you mean "soperator:kubeconfig"?'],
        ),
        (
            {"soperator:cluster": {}, "soperator:xyz": "x"},
            [f"soperator:xyz: unknown key. Allowed: {', '.join(stack_config.KEYS)}."],
        ),
        ({"soperator:cluster": {}, "soperator:clusters": {"a": {}}}, [f"soperator:clusters: {BOTH}"]),
        ({"soperator:defaults": {}}, [f"soperator:cluster: {NONE}"]),
        ({"soperator:clusters": {}}, [f"soperator:clusters: {NONE}"]),
        ({"soperator:clusters": [{}]}, ["soperator:clusters: got a list, needs a mapping."]),
        (
            {"soperator:cluster": {}, "soperator:defaults": "x"},
            ['soperator:defaults: got "x", needs a mapping.'],
        ),
        (
            {"soperator:cluster": {}, "soperator:local": {"usr": "demo"}},
            ["soperator:local: got a mapping, needs the user of `make ssh` alone, such as {user: demo}."],
        ),
        ({"soperator:cluster": {}, "aws:region": "x", "soperatorx:a": 1}, []),
    ],
)
def test_each_problem_of_a_key_is_named_with_the_next_step(values: dict[str, Any], expected: list[str]) -> None:
    assert texts(values) == expected


def test_several_clusters_have_their_names_as_components_and_the_defaults_in_each() -> None:
    clusters, _ = stack_config.read(
        {"soperator:defaults": {"labels": {"team": "x"}}, "soperator:clusters": {"a": {}, "b": {"labels": None}}}
    )
    assert [(cluster.component, cluster.path, cluster.merged) for cluster in clusters] == [
        ("a", "soperator:clusters.a", {"labels": {"team": "x"}}),
        ("b", "soperator:clusters.b", {}),
    ]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", "soperator:cluster"),
        ("slurm.extra.Foo", "soperator:defaults.slurm.extra.Foo"),
        ("slurm.max_nodes", "soperator:cluster.slurm.max_nodes"),
        ("users[0].uid", "soperator:defaults.users[0].uid"),
        ("node_sets[1].name", "soperator:cluster.node_sets[1].name"),
        ("images.worker", "soperator:defaults.images.worker"),
        ("jail.source", "soperator:cluster.jail.source"),
    ],
)
def test_a_problem_is_placed_where_its_value_is_given(path: str, expected: str) -> None:
    defaults = {"slurm": {"extra": {"Foo": 1}}, "users": [{}], "images": {"login": "x"}}
    own = {"slurm": {"max_nodes": 0}, "node_sets": [{}, {}]}
    (cluster,), _ = stack_config.read({"soperator:defaults": defaults, "soperator:cluster": own})

    assert cluster.place(path) == expected


def test_two_clusters_of_one_name_or_one_namespace_are_refused() -> None:
    specs = {"c.a": a_spec(), "c.b": a_spec(namespace="other"), "c.c": a_spec(name="other")}
    assert [*map(str, stack_config.clashes(specs))] == [
        'c.b.name: "hpc" is also that of c.a. Clusters need distinct names: choose another.',
        'c.c.namespace: "other" is also that of c.b. Clusters need distinct namespaces: choose another.',
    ]
