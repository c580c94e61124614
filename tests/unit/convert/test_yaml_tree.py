"""Values of YAML are read as Helm and kubectl read them, each with its place."""

import pytest

from soperator_pulumi.convert import yaml_tree
from soperator_pulumi.convert.yaml_tree import Section, defaults, overlaid, plain, read
from soperator_pulumi.errors import ConversionError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("off", False),
        ("8:00:00", "8:00:00"),
        ("2026-01-01", "2026-01-01"),
        ("12", 12),
        ("-0x1f", -31),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("100Mi", "100Mi"),
        ("1.2.3", "1.2.3"),
        ("=", "="),
        ("~", None),
        ('"yes"', "yes"),
    ],
)
def test_scalars_have_the_types_of_helm(text: str, value: object) -> None:
    (tree,) = read(f"a: {text}\n", "x.yaml")

    found = Section(tree).at("a").plain()
    assert (found, type(found)) == (value, type(value))


def test_values_know_their_place_in_aliases_and_merged_mappings_too() -> None:
    (tree,) = read('a: &x {b: [1, {c.d: 2}], "e": {}}\nf: *x\ng: {<<: *x, e: 3}\n', "x.yaml")

    assert [(leaf.path, leaf.line) for leaf in Section(tree).leaves()][:4] == [
        ("a.b[0]", 1),
        ('a.b[1]["c.d"]', 1),
        ("a.e", 1),
        ("f.b[0]", 1),
    ]
    assert plain(tree) == {
        "a": {"b": [1, {"c.d": 2}], "e": {}},
        "f": {"b": [1, {"c.d": 2}], "e": {}},
        "g": {"b": [1, {"c.d": 2}], "e": 3},
    }


def test_aliases_that_grow_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_tree, "MAX_LEAVES", 1000)
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{place}: &a{place} [{', '.join([f'*a{place - 1}'] * 10)}]" for place in range(1, 9)]

    with pytest.raises(ConversionError, match="more than 1000 values"):
        read("\n".join(lines), "x.yaml")


def test_a_file_over_defaults_is_merged_as_by_helm() -> None:
    (tree,) = read("a: {b: 1}\nc: null\nd: [9]\ne: {}\n", "x.yaml")
    merged = overlaid(defaults({"a": {"b": 0, "x": 5}, "c": {"y": 1}, "d": [1, 2], "e": {"z": 1}}), tree)

    assert plain(merged) == {"a": {"b": 1, "x": 5}, "c": None, "d": [9], "e": {"z": 1}}
    assert [leaf.path for leaf in Section(merged).leaves() if leaf.is_default] == ["a.x", "e.z"]
