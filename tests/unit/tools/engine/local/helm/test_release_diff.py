"""Comparison of releases by pulumi-kubernetes' rules."""

from typing import Any

import pytest

from tools.engine.local.helm.release_diff import compare
from tools.engine.values import UNKNOWN


def values(**given: Any) -> dict[str, Any]:
    return {"name": "r", "namespace": "n", "values": given}


def kinds(live: dict[str, Any], old: dict[str, Any], new: dict[str, Any]) -> dict[str, str]:
    return {path: found.kind.name for path, found in compare(live, old, new).items()}


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": 2}, {"values.a": "UPDATE"}),
        ({}, {"a": {"b": 1}}, {"values.a": "ADD"}),
        ({"a": {"b": 1, "c": 1}}, {"a": {"c": 1}}, {"values.a.b": "DELETE"}),
        ({"a": [1, 2]}, {"a": [1]}, {"values.a[1]": "DELETE"}),
        ({"a": [1, {"b": 1}]}, {"a": [1, {"b": 2}, 3]}, {"values.a[1].b": "UPDATE", "values.a[2]": "ADD"}),
        ({"a": [{"b": 1, "c": 1}]}, {"a": [{"b": 1}]}, {"values.a[0].c": "DELETE"}),
        ({"a": {"b": 1}}, {"a": "text"}, {"values.a": "UPDATE"}),
        ({"a.b/c": 1}, {"a.b/c": 2}, {'values["a.b/c"]': "UPDATE"}),
        ({"a": {"b": 1}}, {"a": UNKNOWN}, {"values.a": "UPDATE"}),
        ({}, {"a": UNKNOWN}, {"values.a": "ADD"}),
    ],
)
def test_changed_inputs_are_named_by_their_paths(
    old: dict[str, Any], new: dict[str, Any], found: dict[str, str]
) -> None:
    assert kinds(values(**old), values(**old), values(**new)) == found


def test_a_live_value_that_differs_from_the_input_is_a_change() -> None:
    assert kinds(values(a=2), values(a=1), values(a=1)) == {"values.a": "UPDATE"}


def test_live_values_next_to_the_inputs_are_no_change() -> None:
    assert kinds({**values(a=1, of_the_chart=1), "status": {}}, values(a=1), values(a=1)) == {}


@pytest.mark.parametrize("key", ["name", "namespace"])
def test_another_name_or_namespace_replaces_a_release(key: str) -> None:
    assert kinds(values(), values(), {**values(), key: "other"}) == {key: "UPDATE_REPLACE"}
