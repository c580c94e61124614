"""Conversion of resource properties between the wire and plain values without secret marks."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from google.protobuf import struct_pb2
from pulumi.provider.experimental.property_value import PropertyValue


def read(struct: struct_pb2.Struct) -> tuple[dict[str, Any], frozenset[str]]:
    """Return properties as the SDK's server of dynamic resources reads them, and the keys that contain secrets.

    Numbers are floats, None is left out, and values that a preview does not know are the text `rpc.UNKNOWN`.
    """
    values = PropertyValue.unmarshal_map(struct)
    return _plain_map(values), frozenset(key for key, value in values.items() if value.contains_secret())


def write(values: Mapping[str, Any], secret: Collection[str]) -> struct_pb2.Struct:
    """Return properties for the wire. The given keys are marked as secret."""
    return PropertyValue.marshal_map(
        {key: _marked(value).with_secret(key in secret) for key, value in values.items() if value is not None}
    )


def _plain_map(values: Mapping[str, PropertyValue]) -> dict[str, Any]:
    return {key: _plain(value) for key, value in values.items() if value.value is not None}


def _plain(value: PropertyValue) -> Any:  # noqa: ANN401 any tree of values
    match value.value:
        case str() as text:
            return text
        case Mapping() as items:
            return _plain_map(items)
        case Sequence() as items:
            return [_plain(item) for item in items]
        case scalar:
            return scalar


def _marked(value: object) -> PropertyValue:
    match value:
        case None | bool() | float():
            return PropertyValue(value)
        case str():
            return PropertyValue(str(value))
        case int():
            return PropertyValue(float(value))
        case Mapping():
            return PropertyValue({key: _marked(item) for key, item in value.items()})
        case Sequence():
            return PropertyValue([_marked(item) for item in value])
        case _:
            raise TypeError(f"not a property of a resource: {type(value).__name__}")
