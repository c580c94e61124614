"""Names of Python and of other languages."""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pulumi
import pytest

from soperator_pulumi.cluster import SlurmClusterArgs
from soperator_pulumi.platform import SlurmPlatformArgs
from soperator_pulumi.plugin.cluster_types import INPUTS, REQUIRED, RemoteClusterArgs
from soperator_pulumi.plugin.platform_types import RemotePlatformArgs
from soperator_pulumi.plugin.property_types import (
    Anything,
    ListOf,
    MapOf,
    OneOf,
    Simple,
    camel_case,
    dictionary_type,
    type_of,
)
from soperator_pulumi.plugin.spelling import from_other_language, in_other_languages, names_in


class PartArgs(TypedDict, total=False):
    """A part."""

    part_name: str
    """Name of the part."""


class WholeArgs(PartArgs):
    """A whole."""

    sub_parts: NotRequired[Sequence[PartArgs]]
    """Parts, of which
    there may be many."""
    free_keys: Mapping[str, str | float]
    storage_class: NotRequired[pulumi.Input[str]]
    number_or_share: NotRequired[int | str]
    part_or_word: NotRequired[PartArgs | str]
    as_it_is: NotRequired[Mapping[str, Any]]


WHOLE = dictionary_type(WholeArgs)


def test_a_type_is_inferred_from_the_annotations_of_a_dictionary_and_of_those_that_it_extends() -> None:
    found = {property_.name: property_ for property_ in WHOLE.properties}
    assert found["part_name"].type == Simple("string")
    assert found["part_name"].description == "Name of the part."
    assert found["sub_parts"].type == ListOf(dictionary_type(PartArgs), plain=True)
    assert found["sub_parts"].description == "Parts, of which there may be many."
    assert found["free_keys"].type == MapOf(OneOf((Simple("string"), Simple("number"))), plain=True)
    assert found["number_or_share"].type == OneOf((Simple("integer"), Simple("string")))
    assert found["part_or_word"].type == OneOf((dictionary_type(PartArgs), Simple("string")))
    assert found["as_it_is"].type == MapOf(Anything(), plain=True)
    assert [property_.name for property_ in WHOLE.properties if property_.required] == ["free_keys"]
    assert [property_.name for property_ in WHOLE.properties if not property_.plain] == ["storage_class"]


def test_a_type_that_other_languages_lack_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="bytes"):
        type_of(bytes)


def test_keys_of_objects_are_those_of_python_and_free_keys_stay() -> None:
    given = {
        "partName": "a",
        "subParts": [{"partName": "b"}],
        "freeKeys": {"KillWait": 30, "snake_case": 1, "camelCase": 2},
        "asItIs": {"nodeAffinity": {"subParts": 1}},
        "notKnown": {"partName": 1},
    }
    assert from_other_language(given, WHOLE) == {
        "part_name": "a",
        "sub_parts": [{"part_name": "b"}],
        "free_keys": {"KillWait": 30, "snake_case": 1, "camelCase": 2},
        "as_it_is": {"nodeAffinity": {"subParts": 1}},
        "notKnown": {"partName": 1},
    }


def test_a_mapping_in_place_of_a_word_has_the_keys_of_its_object() -> None:
    assert from_other_language({"partOrWord": {"partName": "a"}}, WHOLE) == {"part_or_word": {"part_name": "a"}}
    assert from_other_language({"partOrWord": "none"}, WHOLE) == {"part_or_word": "none"}
    assert "part_name" in [*names_in(OneOf((dictionary_type(PartArgs), Simple("string"))))]


def test_a_key_in_both_spellings_is_one_and_an_unknown_one() -> None:
    given = {"partName": "a", "part_name": "b"}
    assert from_other_language(given, WHOLE) == {"part_name": "a", '"part_name"': "b"}


def test_whole_numbers_are_integers_wherever_they_are() -> None:
    """A pod's `cpu: 2` is no other text than in Python, so that a move to another language recreates no pod."""
    given = {"numberOrShare": 2.0, "freeKeys": {"a": 1.0, "b": 0.5}, "asItIs": {"terms": [{"weight": 100.0}]}}
    found = repr(from_other_language(given, WHOLE))
    assert "'number_or_share': 2," in found
    assert "'a': 1, 'b': 0.5" in found
    assert "'weight': 100}" in found


def test_values_of_a_wrong_type_stay_for_the_spec_to_refuse() -> None:
    assert from_other_language({"subParts": "none", "freeKeys": [1]}, WHOLE) == {"sub_parts": "none", "free_keys": [1]}


def test_every_name_has_one_spelling_and_back() -> None:
    names = {*names_in(INPUTS)}
    assert len({camel_case(name) for name in names}) == len(names)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("raise slurm.max_nodes", "raise slurm.maxNodes"),
        ('got "max_nodes", needs a number', 'got "max_nodes", needs a number'),
        ('Did you mean "max_nodes"?', 'Did you mean "maxNodes"?'),
        ('got "x": there is no partition "max_nodes"', 'got "x": there is no partition "max_nodes"'),
        ("the name of SlurmCluster 'max_nodes'", "the name of SlurmCluster 'max_nodes'"),
        ("Allowed: carry_over, max_nodes.", "Allowed: carry_over, maxNodes."),
        ("`carry_over` or max_nodes_of_all", "`carry_over` or max_nodes_of_all"),
    ],
)
def test_texts_name_keys_as_the_program_does(text: str, expected: str) -> None:
    assert in_other_languages(text, frozenset({"max_nodes"})) == expected


def test_the_inputs_are_the_arguments_of_the_components() -> None:
    """In Python, `platform` takes the component itself, too: other languages name that in `dependsOn`."""
    ours, theirs = RemoteClusterArgs.__annotations__, SlurmClusterArgs.__annotations__
    assert ours.keys() == theirs.keys()
    assert [key for key in ours if ours[key] != theirs[key]] == ["platform"]
    assert {"node_sets", "images"} == REQUIRED
    assert inputs_of(RemotePlatformArgs) == inputs_of(SlurmPlatformArgs)


def inputs_of(dictionary: type) -> dict[str, Any]:
    return {property_.name: property_ for property_ in dictionary_type(dictionary).properties}
