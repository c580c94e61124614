"""Conversion of property values between protobuf, the SDK's PropertyValue, and plain Python.

Plain values are JSON plus `UNKNOWN`, for values of resources that do not exist yet, as in a preview.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from typing import Final

from google.protobuf import struct_pb2
from pulumi.provider.experimental.property_value import PropertyValue, PropertyValueType
from pulumi.runtime.rpc import UNKNOWN as UNKNOWN_ON_THE_WIRE

from tools.console import UserError

SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
"""Key that marks an object of the Pulumi protocol as more than its fields."""
SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - the protocol's mark, not a password
ASSET: Final = "c44067f5952c0a294b673a41bacd8c17"
ASSETS: Final = {ASSET: "an asset", "0def7320c3a5731c473e5ecbe6d01bc7": "an archive"}

Properties = dict[str, PropertyValue]


class Unknown(Enum):
    """Type of `UNKNOWN`."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN
Plain = None | bool | int | float | str | Unknown | list["Plain"] | dict[str, "Plain"]
PlainMap = dict[str, Plain]


def from_struct(struct: struct_pb2.Struct, *, assets: Collection[str] = ()) -> Properties:
    """Read the properties of a request. Assets are refused, except in the properties `assets`."""
    return {key: _from_protobuf(struct.fields[key], assets=key in assets) for key in sorted(struct.fields)}


def _from_protobuf(value: struct_pb2.Value, *, assets: bool = False) -> PropertyValue:
    match value.WhichOneof("kind"):
        case "string_value" if value.string_value == UNKNOWN_ON_THE_WIRE:
            return PropertyValue.computed()
        case "bool_value" | "number_value" | "string_value" as kind:
            return PropertyValue(getattr(value, kind))
        case "list_value":
            return PropertyValue([_from_protobuf(item, assets=assets) for item in value.list_value.values])
        case "struct_value":
            return _from_object(value.struct_value, assets=assets)
        case _:
            return PropertyValue.null()


def _from_object(struct: struct_pb2.Struct, *, assets: bool) -> PropertyValue:
    if SIGNATURE not in struct.fields:
        return PropertyValue(from_struct(struct))
    signature = struct.fields[SIGNATURE].string_value
    if signature == ASSET and assets:
        return PropertyValue.unmarshal(struct_pb2.Value(struct_value=struct))
    if signature != SECRET:
        raise UserError(f"{ASSETS.get(signature, f'a value of kind {signature}')} is not supported")
    return _from_protobuf(struct.fields["value"], assets=assets).with_secret(True)


def to_struct(properties: Mapping[str, PropertyValue], *, secrets: bool = True) -> struct_pb2.Struct:
    """Return properties for a request or an answer; without `secrets`, without secret marks."""
    return struct_pb2.Struct(fields={k: _to_protobuf(v, secrets=secrets) for k, v in properties.items()})


def _to_protobuf(value: PropertyValue, *, secrets: bool) -> struct_pb2.Value:
    if value.is_secret and secrets:
        inner = _to_protobuf(value.with_secret(False), secrets=True)
        marked = {SIGNATURE: struct_pb2.Value(string_value=SECRET), "value": inner}
        return struct_pb2.Value(struct_value=struct_pb2.Struct(fields=marked))
    match value.value:  # scalars first: they are many, and the test for a Mapping is slow
        case None:
            return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
        case bool() as truth:
            return struct_pb2.Value(bool_value=truth)
        case str() as text:
            return struct_pb2.Value(string_value=text)
        case float() as number:
            return struct_pb2.Value(number_value=number)
        case Mapping() as items:
            return struct_pb2.Value(struct_value=to_struct(items, secrets=secrets))
        case Sequence() as items:
            values = [_to_protobuf(item, secrets=secrets) for item in items]
            return struct_pb2.Value(list_value=struct_pb2.ListValue(values=values))
        case _ if value.type is PropertyValueType.COMPUTED:
            return struct_pb2.Value(string_value=UNKNOWN_ON_THE_WIRE)
        case _:
            return value.with_secret(False).marshal()


def plain(value: PropertyValue, secret: Callable[[Plain], Plain] = lambda inner: inner) -> Plain:
    """Return the plain value. `secret` replaces values marked as secret, by default with themselves."""
    if value.is_secret:
        return secret(plain(value.with_secret(False), secret))
    match value.value:
        case None | bool() | str() as scalar:
            return scalar
        case float() as number:
            return int(number) if number.is_integer() else number
        case Mapping() as items:
            return plain_map(items, secret)
        case Sequence() as items:
            return [plain(item, secret) for item in items]
        case _:
            return UNKNOWN


def plain_map(
    properties: Mapping[str, PropertyValue], secret: Callable[[Plain], Plain] = lambda inner: inner
) -> PlainMap:
    """Return plain values of properties, as `plain` does for one."""
    return {key: plain(value, secret) for key, value in properties.items()}


def value_of(plain_value: object) -> PropertyValue:
    """Return the property value for a plain one."""
    match plain_value:
        case None | bool() | str() | float() as scalar:
            return PropertyValue(scalar)
        case int() as number:
            return PropertyValue(float(number))
        case Mapping() as items:
            return PropertyValue(properties_of(items))
        case Sequence() as items:
            return PropertyValue([value_of(item) for item in items])
        case Unknown():
            return PropertyValue.computed()
        case other:
            raise TypeError(f"not a property value: {type(other).__name__}")


def properties_of(plain_values: Mapping[str, object]) -> Properties:
    """Return the properties of a plain map."""
    return {key: value_of(value) for key, value in plain_values.items()}


def has_unknown(value: object) -> bool:
    """Return True if any part of a plain value is unknown."""
    match value:
        case str():
            return False
        case Mapping() as items:
            return any(has_unknown(item) for item in items.values())
        case list() as items:
            return any(has_unknown(item) for item in items)
        case _:
            return value is UNKNOWN


def mark_secrets(outputs: Mapping[str, PropertyValue], inputs: Mapping[str, PropertyValue]) -> Properties:
    """Mark outputs as secret if inputs of the same name are, as a provider may drop the marks.

    Objects are marked key by key, a list with any secret as a whole.
    """
    marked = dict(outputs)
    for key, given in inputs.items():
        value = marked.get(key)
        if value is None or value.is_secret:
            continue
        if isinstance(value.value, Mapping) and isinstance(given.value, Mapping) and not given.is_secret:
            marked[key] = value.with_value(mark_secrets(value.value, given.value))
        elif given.contains_secret():
            marked[key] = value.with_secret(True)
    return marked
