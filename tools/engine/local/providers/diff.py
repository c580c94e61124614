"""Comparison of old and new inputs of objects, path by path, as pulumi-kubernetes does it."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from pulumi.provider.experimental import provider as api

from tools.engine import property_paths
from tools.engine.kubernetes import objects
from tools.engine.local.providers import replacement_rules
from tools.engine.property_paths import Path
from tools.engine.values import UNKNOWN, PlainMap, Properties

_READ_ONLY = (
    "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields",
    "resourceVersion", "uid",
)  # fmt: skip
_QUANTITIES = {"requests", "limits", "capacity", "hard", "overhead"}
"""Names of maps whose values are quantities."""
_QUANTITY = {"sizeLimit", "divisor"}
_MAPS = {"annotations", "binaryData", "data", "labels", "matchLabels", "nodeSelector", "parameters", *_QUANTITIES}
"""Names of maps that mean the same if they are empty or missing."""
_SUFFIXES = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1), "k": Decimal(10**3),
    "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12), "P": Decimal(10**15), "E": Decimal(10**18),
    **{f"{letter}i": Decimal(2 ** (10 * power)) for power, letter in enumerate("KMGTPE", start=1)},
}  # fmt: skip

_MISSING = object()


def normal(obj: Mapping[str, object]) -> dict[str, object]:
    """Return the normal form of an object, which is the same for objects of the same meaning.

    Empty values are left out, quantities are numbers, a Secret's `stringData` is in its `data`.
    """
    result = {key: value for key, value in obj.items() if key != "status"}
    if result.get("kind") == "Secret" and isinstance(texts := result.get("stringData"), Mapping):
        del result["stringData"]
        encoded = {k: _encode(v) for k, v in texts.items()}
        data = result.get("data")
        result["data"] = {**(data if isinstance(data, Mapping) else {}), **encoded}
    if isinstance(metadata := result.get("metadata"), Mapping):
        result["metadata"] = {k: v for k, v in metadata.items() if k not in _READ_ONLY}
    cleaned = _clean(result)
    of_role: dict[str, object] = (
        {"rules": []} if result.get("rules") == [] else {}
    )  # the one list of a Role, and never left out
    return {**(cleaned if isinstance(cleaned, dict) else {}), **of_role}


def _encode(value: object) -> object:
    return base64.b64encode(value.encode()).decode() if isinstance(value, str) else value


def _clean(value: object, *, quantities: bool = False) -> object:
    if isinstance(value, Mapping):
        cleaned = {
            str(key): _quantity(item) if quantities or key in _QUANTITY else _clean(item, quantities=key in _QUANTITIES)
            for key, item in value.items()
            if item is not None
        }
        return {key: item for key, item in cleaned.items() if item != [] and not (item == {} and key in _MAPS)}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value


def _quantity(value: object) -> object:
    """Return the number of a quantity such as 500m or 2Gi; other values unchanged."""
    if isinstance(value, Mapping | list | bool) or value is UNKNOWN:
        return _clean(value)
    text = str(value)
    digits = text.rstrip("numkKMGTPEi")
    try:
        number = Decimal(digits) * _SUFFIXES[text[len(digits) :]]
    except (InvalidOperation, KeyError):
        return value
    return str(number.normalize())


def compare(old: Mapping[str, object], new: Mapping[str, object], forced: list[Path]) -> dict[str, api.PropertyDiff]:
    """Return the paths at which objects differ, with the kind of change: update or replacement."""
    return {
        property_paths.text(path): api.PropertyDiff(kind, input_diff=kind.name.startswith("DELETE"))
        for path, kind in _changes((), old, new, forced)
    }


def _changes(path: Path, old: object, new: object, forced: list[Path]) -> Iterator[tuple[Path, api.PropertyDiffKind]]:
    if new is UNKNOWN and isinstance(old, Mapping) and path:
        # The new value is unknown: each of its fields may go.
        for key in old:
            yield (*path, key), _kind("DELETE", (*path, key), None, forced)
    elif isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*new, *(key for key in old if key not in new)]:
            yield from _changes((*path, key), old.get(key, _MISSING), new.get(key, _MISSING), forced)
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            before = old[index] if index < len(old) else _MISSING
            after = new[index] if index < len(new) else _MISSING
            yield from _changes((*path, index), before, after, forced)
    elif new is _MISSING:
        yield path, _kind("DELETE", path, None, forced)
    elif old is _MISSING:
        yield path, _kind("ADD", path, new, forced)
    elif new is UNKNOWN or old != new:
        yield path, _kind("UPDATE", path, new, forced)


def _kind(word: str, path: Path, value: object, forced: list[Path]) -> api.PropertyDiffKind:
    replaced = replacement_rules.replaces(path, value, forced) or (word == "DELETE" and path == ("metadata",))
    return api.PropertyDiffKind[f"{word}_REPLACE" if replaced else word]


def prune(live: object, shape: object, *, quantities: bool = False) -> object:
    """Return the part of a live value that has a counterpart in a shape, such as a resource's inputs.

    An equal quantity keeps the shape's spelling, and so does an empty value: the API server leaves many of those out.
    """
    if isinstance(live, Mapping) and isinstance(shape, Mapping):
        inside = {key: quantities or key in _QUANTITY or key in _QUANTITIES for key in shape}
        there = {key: value for key, value in shape.items() if key in live or not value}
        return {key: prune(live.get(key, value), value, quantities=inside[key]) for key, value in there.items()}
    if isinstance(live, list) and isinstance(shape, list):
        pruned = [prune(item, shape[i]) for i, item in enumerate(live) if i < len(shape)]
        return pruned + live[len(shape) :]
    return shape if quantities and _quantity(live) == _quantity(shape) else live


def decoded(data: object, names: object) -> dict[str, object]:
    """Return the values of a Secret's `data` for the given names, decoded to the text of `stringData`."""
    texts: dict[str, object] = {}
    for name in names if isinstance(names, Mapping) else ():
        value = data.get(name) if isinstance(data, Mapping) else None
        if isinstance(value, str):
            try:
                texts[name] = base64.b64decode(value).decode()
            except (binascii.Error, UnicodeDecodeError):
                texts[name] = value
    return texts


def read_inputs(live: Mapping[str, Any], inputs: Properties) -> PlainMap:
    """Return the live values of the inputs."""
    shape = objects.to_object(inputs)
    pruned = prune(dict(live), shape)
    found = dict(pruned) if isinstance(pruned, Mapping) else {}
    if shape.get("kind") == "Secret" and "stringData" in shape:
        found["stringData"] = decoded(live.get("data"), shape["stringData"])
    return found
