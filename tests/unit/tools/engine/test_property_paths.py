"""Property paths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.console import UserError
from tools.engine import property_paths
from tools.engine.values import plain_map, properties_of

keys = st.text(min_size=1, max_size=8)
any_path = st.lists(keys | st.integers(0, 9), min_size=1, max_size=5).map(tuple)


@given(any_path.filter(lambda path: "*" not in path))
def test_what_is_written_is_read_as_the_same_path(path: property_paths.Path) -> None:
    assert property_paths.parse(property_paths.text(path)) == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("spec.replicas", ("spec", "replicas")),
        ('data["slurm.conf"]', ("data", "slurm.conf")),
        ("containers[0].image", ("containers", 0, "image")),
        ("containers[*].image", ("containers", "*", "image")),
        (".spec.selector", ("spec", "selector")),
    ],
)
def test_paths_are_read_as_pulumi_writes_them(text: str, path: property_paths.Path) -> None:
    assert property_paths.parse(text) == path


@pytest.mark.parametrize("text", ["a..b", "a[", 'a["b', "a[b]", "a]"])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="is not a property path"):
        property_paths.parse(text)


@pytest.mark.parametrize(
    ("pattern", "path", "inside"),
    [
        ("spec", "spec.replicas", True),
        ("spec.replicas", "spec", False),
        ("containers[*].image", "containers[3].image", True),
        ("containers[0]", "containers[1]", False),
        ("*", "anything.below", True),
    ],
)
def test_a_pattern_contains_what_is_at_and_below_it(pattern: str, path: str, inside: bool) -> None:
    assert property_paths.contains(property_paths.parse(pattern), property_paths.parse(path)) is inside


@pytest.mark.parametrize(
    ("ignored", "kept"),
    [
        (["a"], {"a": 1, "b": {"c": 20, "d": [3, 4]}, "new": True}),
        (["b.c"], {"a": 10, "b": {"c": 2, "d": [3, 4]}, "new": True}),
        (["b.d[1]"], {"a": 10, "b": {"c": 20, "d": [3, 4]}, "new": True}),
        (["b.d[*]"], {"a": 10, "b": {"c": 20, "d": [3, 4]}, "new": True}),
        (["new"], {"a": 10, "b": {"c": 20, "d": [3, 4]}}),
        (["*"], {"a": 1, "b": {"c": 2, "d": [3, 4]}, "gone": 0}),
        (["gone"], {"a": 10, "b": {"c": 20, "d": [3, 4]}, "new": True, "gone": 0}),
        (["b.none.deeper", "a.not.a.map"], {"a": 10, "b": {"c": 20, "d": [3, 4]}, "new": True}),
    ],
)
def test_what_is_ignored_keeps_its_old_value(ignored: list[str], kept: dict[str, object]) -> None:
    olds = properties_of({"a": 1, "b": {"c": 2, "d": [3, 4]}, "gone": 0})
    news = properties_of({"a": 10, "b": {"c": 20, "d": [3, 4]}, "new": True})
    assert plain_map(property_paths.keep_old(news, olds, ignored)) == kept
