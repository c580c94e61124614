"""Trees of values as policies read them: a value that a preview does not know yet is UNKNOWN."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final

Path = tuple[str | int, ...]
"""Keys and indices from a resource's properties down to a value."""


class _NotKnown(Enum):
    NOT_KNOWN = "not known"


UNKNOWN: Final = _NotKnown.NOT_KNOWN
"""Value that a preview does not know yet."""

_MOST_DIGITS = 18
"""Digits of the largest number that Kubernetes accepts."""


def look(value: Any, *path: str | int) -> Any:  # noqa: ANN401 any tree of values
    """Return the value at a path; None if there is none, UNKNOWN if a value on the way is not known."""
    for key in path:
        if value is UNKNOWN:
            return UNKNOWN
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return value


def listed(value: object) -> list[Any]:
    """Return a list unchanged, and an empty list for anything else."""
    return value if isinstance(value, list) else []


def mapped(value: object) -> Mapping[str, Any]:
    """Return a mapping unchanged, and an empty mapping for anything else."""
    return value if isinstance(value, Mapping) else {}


def whole_number(value: object) -> int | None:
    """Return a whole number that an engine gives as a float or as text; None for anything else, UNKNOWN included."""
    if isinstance(value, str) and value.isdecimal() and len(value) <= _MOST_DIGITS:
        return int(value)
    return int(value) if isinstance(value, (int, float)) and value == value // 1 else None


def texts_in(value: object, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield all texts in a tree of values, with their paths."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from texts_in(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from texts_in(item, (*path, index))


def written(path: Path) -> str:
    """Return a path in Pulumi's notation: `spec.template.spec.containers[0].image`, `data["munge.key"]`."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        elif key.replace("_", "").replace("-", "").isalnum():
            text += f".{key}"
        else:
            text += f'["{key}"]'
    return text.removeprefix(".")


def snake_keys(value: object) -> Any:  # noqa: ANN401 any tree of values
    """Return a tree of values with its keys in snake_case, as in Python."""
    if isinstance(value, Mapping):
        return {_snake(key): snake_keys(item) for key, item in value.items()}
    return [snake_keys(item) for item in value] if isinstance(value, list) else value


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def camel_case(name: str) -> str:
    """Return a Python key as other languages spell it."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
