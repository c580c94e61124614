"""Property values in their three forms."""

import pytest
from google.protobuf import json_format, struct_pb2
from hypothesis import given
from hypothesis import strategies as st
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.runtime.rpc import UNKNOWN as UNKNOWN_ON_THE_WIRE

from tools.console import UserError
from tools.engine import values
from tools.engine.values import UNKNOWN

scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.just(UNKNOWN)
plains = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
maps = st.dictionaries(st.text(max_size=5), plains, max_size=4)


def struct(text: dict[str, object]) -> struct_pb2.Struct:
    return json_format.ParseDict(text, struct_pb2.Struct())


@given(maps)
def test_plain_values_survive_the_way_through_the_protocol(plain: dict[str, object]) -> None:
    sent = values.to_struct(values.properties_of(plain))
    assert values.plain_map(values.from_struct(sent)) == plain


@given(maps)
def test_secrets_survive_it_too_and_are_left_out_where_they_are_not_taken(plain: dict[str, object]) -> None:
    properties = {key: value.with_secret(True) for key, value in values.properties_of(plain).items()}
    kept = values.from_struct(values.to_struct(properties))
    dropped = values.from_struct(values.to_struct(properties, secrets=False))
    assert values.plain_map(kept) == values.plain_map(dropped) == plain
    assert all(value.is_secret for value in kept.values())
    assert not any(value.contains_secret() for value in dropped.values())


def test_a_secret_is_shown_as_the_caller_wants() -> None:
    value = PropertyValue({"k": PropertyValue([PropertyValue("s").with_secret(True)])})
    assert values.plain(value) == {"k": ["s"]}
    assert values.plain(value, lambda _: "***") == {"k": ["***"]}


def test_numbers_without_a_fraction_are_whole() -> None:
    assert [repr(values.plain(PropertyValue(n))) for n in (3.0, 3.5)] == ["3", "3.5"]


def test_what_is_unknown_on_the_wire_is_unknown() -> None:
    properties = values.from_struct(struct({"a": UNKNOWN_ON_THE_WIRE, "b": [{"c": UNKNOWN_ON_THE_WIRE}]}))
    assert values.plain_map(properties) == {"a": UNKNOWN, "b": [{"c": UNKNOWN}]}


@pytest.mark.parametrize(("plain", "unknown"), [({"a": [1, {"b": UNKNOWN}]}, True), ({"a": [1, {}]}, False)])
def test_unknown_values_are_found_at_any_depth(plain: object, unknown: bool) -> None:
    assert values.has_unknown(plain) is unknown


def test_an_asset_is_refused_by_name() -> None:
    asset: dict[str, object] = {"k": {values.SIGNATURE: "c44067f5952c0a294b673a41bacd8c17", "text": "x"}}
    with pytest.raises(UserError, match="an asset is not supported"):
        values.from_struct(struct(asset))


def test_what_is_no_property_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError, match="not a property value: object"):
        values.value_of(object())


def secret(plain: object) -> PropertyValue:
    return values.value_of(plain).with_secret(True)


def test_secretness_comes_back_from_inputs_of_the_same_name() -> None:
    inputs = {
        "whole": secret("s"),
        "map": PropertyValue({"inner": secret("s"), "plain": PropertyValue("p")}),
        "list": PropertyValue([PropertyValue("p"), secret("s")]),
        "gone": secret("s"),
        "plain": PropertyValue("p"),
    }
    outputs = values.properties_of(
        {"whole": "s", "map": {"inner": "s", "plain": "p"}, "list": ["p", "s"], "plain": "p", "new": "n"}
    )
    marked = values.mark_secrets(outputs, inputs)
    assert {key for key, value in marked.items() if value.is_secret} == {"whole", "list"}
    assert values.plain(marked["map"], lambda _: "***") == {"inner": "***", "plain": "p"}
    assert values.plain_map(marked) == values.plain_map(outputs)
