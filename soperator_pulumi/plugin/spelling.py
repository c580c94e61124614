"""Names of Python and of other languages: values, paths and texts from the one to the other."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pulumi

from soperator_pulumi.plugin.property_types import ListOf, MapOf, ObjectType, PropertyType, camel_case

_PYTHON_NAME = re.compile(r'(?<!got ")(?<!\w)[a-z]+(?:_[a-z]+)+(?!\w)')
"""A name in a text, unless it is the value that was given."""


def from_other_language(value: object, type_: PropertyType) -> Any:  # noqa: ANN401 any tree of values
    """Return a value of another language as Python has it: the keys of objects in snake_case.

    Keys of free mappings (labels, parameters of Slurm) and unknown keys stay, as does all that is in an Output: none of
    our inputs that may be an Output has keys.
    """
    if isinstance(value, pulumi.Output):
        return value
    match type_:
        case ObjectType() if isinstance(value, Mapping):
            known = {each.key: each for each in type_.properties}
            return {
                known[key].name: from_other_language(part, known[key].type)
                for key, part in value.items()
                if key in known
            } | {key: part for key, part in value.items() if key not in known}
        case ListOf() if isinstance(value, list):
            return [from_other_language(part, type_.items) for part in value]
        case MapOf() if isinstance(value, Mapping):
            return {key: from_other_language(part, type_.values) for key, part in value.items()}
        case _:
            return value


def names_in(type_: PropertyType) -> Iterator[str]:
    """Yield the names of all keys of objects in a type, as Python has them."""
    match type_:
        case ObjectType():
            for each in type_.properties:
                yield each.name
                yield from names_in(each.type)
        case ListOf(items=part) | MapOf(values=part):
            yield from names_in(part)


def in_other_languages(text: str, names: frozenset[str]) -> str:
    """Return a text for readers of other languages: each of these names in camelCase."""
    return _PYTHON_NAME.sub(lambda found: camel_case(found[0]) if found[0] in names else found[0], text)
