"""Conversion between Python's names and those of other languages, in values, paths and texts."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pulumi

from soperator_pulumi.plugin.property_types import Anything, ListOf, MapOf, ObjectType, OneOf, PropertyType, camel_case

_PYTHON_NAME = re.compile(r"""(?:(?<=Did you mean ")|(?<!["']))(?<!\w)[a-z]+(?:_[a-z]+)+(?!\w)""")
"""A name in a text. A quoted name is a user's value, unless it suggests the key that the user meant."""

_ANYTHING = Anything()


def from_other_language(value: object, type_: PropertyType = _ANYTHING) -> Any:  # noqa: ANN401 any tree of values
    """Return another language's value for Python: keys of objects in snake_case, whole numbers as integers.

    Keys of free mappings (labels, parameters of Slurm) and unknown keys stay; Python's name of a key that is given as
    well is an unknown key, in quotes. So does all that is in an Output: none of
    our inputs that may be an Output has keys. Numbers arrive as floats; as text in a pod, 2.0 would be another than 2.
    """
    match value:
        case pulumi.Output():
            return value
        case Mapping() if isinstance(type_, OneOf):
            objects = (item for item in type_.types if isinstance(item, ObjectType))
            return from_other_language(value, next(objects, _ANYTHING))
        case Mapping() if isinstance(type_, ObjectType):
            known = {property_.key: property_ for property_ in type_.properties}
            ours = {known[key].name: from_other_language(value[key], known[key].type) for key in value if key in known}
            others = {key: from_other_language(value[key]) for key in value if key not in known}
            return {**ours, **{f'"{key}"' if key in ours else key: part for key, part in others.items()}}
        case Mapping():
            inner = type_.values if isinstance(type_, MapOf) else _ANYTHING
            return {key: from_other_language(part, inner) for key, part in value.items()}
        case list():
            inner = type_.items if isinstance(type_, ListOf) else _ANYTHING
            return [from_other_language(part, inner) for part in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


def names_in(type_: PropertyType) -> Iterator[str]:
    """Yield the names of all keys of objects in a type, in Python's spelling."""
    match type_:
        case ObjectType():
            for property_ in type_.properties:
                yield property_.name
                yield from names_in(property_.type)
        case ListOf(items=part) | MapOf(values=part):
            yield from names_in(part)
        case OneOf(several):
            for form in several:
                yield from names_in(form)


def in_other_languages(text: str, names: frozenset[str]) -> str:
    """Return a text for readers of other languages, with these names in camelCase."""
    return _PYTHON_NAME.sub(lambda found: camel_case(found[0]) if found[0] in names else found[0], text)
