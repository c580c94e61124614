"""Types of components and their properties in other languages, inferred from Python's annotations.

The inference of Pulumi's SDK supports no unions and no inherited descriptions, and would change keys of free mappings.
"""

import ast
import inspect
import sys
import textwrap
import types
import typing
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from itertools import pairwise
from typing import Any

import pulumi
from pydantic import BaseModel

from soperator_pulumi.lifecycle.resource import PACKAGE
from soperator_pulumi.spec.types.addresses import Ports
from soperator_pulumi.spec.types.int_or_percent import Share
from soperator_pulumi.spec.validation.descriptions import field_descriptions, member_descriptions


@dataclass(frozen=True)
class Simple:
    """A type of values without parts."""

    name: str
    """`string`, `integer`, `number` or `boolean`."""


@dataclass(frozen=True)
class Word:
    """An allowed text."""

    name: str
    """Name of the constant in other languages, such as `LoadBalancer`."""
    value: str
    description: str


@dataclass(frozen=True)
class Words:
    """An enumeration of texts."""

    name: str
    """Name of the type in other languages."""
    description: str
    words: tuple[Word, ...]


@dataclass(frozen=True)
class Anything:
    """Any value, passed on as it is."""


@dataclass(frozen=True)
class OneOf:
    """A value of one of several types."""

    types: "tuple[PropertyType, ...]"


@dataclass(frozen=True)
class ListOf:
    """A list."""

    items: "PropertyType"
    plain: bool
    """The items cannot be Outputs."""


@dataclass(frozen=True)
class MapOf:
    """A mapping with user-chosen keys, which keep their spelling in every language."""

    values: "PropertyType"
    plain: bool


@dataclass(frozen=True)
class ObjectType:
    """A mapping with known keys."""

    name: str
    description: str
    properties: "tuple[Property, ...]"


PropertyType = Simple | Words | Anything | OneOf | ListOf | MapOf | ObjectType


@dataclass(frozen=True)
class Property:
    """A property of an object."""

    name: str
    """Name in Python."""
    type: PropertyType
    description: str
    required: bool
    plain: bool
    """The value cannot be an Output: it decides which resources exist, their names, or a file's structure."""

    @property
    def key(self) -> str:
        """Name in other languages."""
        return camel_case(self.name)


@dataclass(frozen=True)
class ComponentType:
    """A component: its name, its description, and its properties."""

    name: str
    description: str
    inputs: ObjectType
    outputs: ObjectType
    needed: frozenset[str] = frozenset()
    """Inputs that a program must give, in addition to those that the type requires."""

    @property
    def token(self) -> str:
        """Type of the component in programs and states."""
        return f"{PACKAGE}:index:{self.name}"

    @property
    def required(self) -> frozenset[str]:
        """Inputs that a program must give, by their names in Python."""
        return self.needed | {property_.name for property_ in self.inputs.properties if property_.required}


def camel_case(name: str) -> str:
    """Return a Python name in the spelling of other languages: `nodeSets` for `node_sets`."""
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def dictionary_type(dictionary: type) -> ObjectType:
    """Return the type of a typed dictionary, with the docstrings of its keys."""
    hints, texts = inspect.get_annotations(dictionary), _texts(dictionary)
    required: frozenset[str] = getattr(dictionary, "__required_keys__", frozenset())
    owner = dictionary.__name__.removeprefix("Remote").removesuffix("Args")

    def key(name: str, hint: object) -> Property:
        type_ = type_of(hint, camel_case(f"{owner}_{name}"))
        return Property(name, type_, texts.get(name, ""), required=name in required, plain=not takes_outputs(hint))

    properties = tuple(key(name, hint) for name, hint in hints.items())
    return ObjectType(dictionary.__name__, inspect.getdoc(dictionary) or "", properties)


def model_type(model: type[BaseModel]) -> ObjectType:
    """Return the type of a pydantic model whose fields may all be Outputs."""
    hints, texts = typing.get_type_hints(model, include_extras=True), field_descriptions(model)
    properties = [
        Property(name, type_of(hints[name]), texts.get(name, ""), required=field.is_required(), plain=False)
        for name, field in model.model_fields.items()
    ]
    return ObjectType(model.__name__, inspect.getdoc(model) or "", tuple(properties))


def output_type(resource: type[pulumi.Resource]) -> ObjectType:
    """Return the type of the Outputs that a resource's class declares."""
    hints, texts = inspect.get_annotations(resource), _texts_below(_definition(resource))
    properties = [
        Property(name, type_of(hint), texts.get(name, ""), required=True, plain=False)
        for name, hint in hints.items()
        if _is_output(hint)
    ]
    return ObjectType(resource.__name__, inspect.getdoc(resource) or "", tuple(properties))


def type_of(hint: object, name: str = "") -> PropertyType:
    """Return the type of an annotation.

    Args:
        hint: The annotation.
        name: Name of the type, if the annotation lists words without one.

    Raises:
        TypeError: Other languages have no such type.
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated and (words := _words(arguments[1], name)):
        return words
    if origin in {typing.NotRequired, typing.Required, typing.Annotated} or _is_output(hint):
        return type_of(arguments[0], name)
    if origin in {typing.Union, types.UnionType}:
        return _union(arguments, name)
    if origin in {Sequence, list, tuple}:
        return ListOf(type_of(arguments[0], name), plain=not takes_outputs(arguments[0]))
    if origin in {Mapping, dict}:
        return MapOf(type_of(arguments[1], name), plain=not takes_outputs(arguments[1]))
    if typing.is_typeddict(hint):
        return dictionary_type(typing.cast("type", hint))
    return _without_parts(hint)


def takes_outputs(hint: object) -> bool:
    """Return True if a value of this annotation may be an Output as a whole."""
    if typing.get_origin(hint) in {typing.NotRequired, typing.Required, typing.Union, types.UnionType}:
        return any(takes_outputs(get_arg) for get_arg in typing.get_args(hint))
    return _is_output(hint)


def _is_output(hint: object) -> bool:
    """Return True for an Output, which `pulumi.Input` contains as a forward reference."""
    if isinstance(hint, typing.ForwardRef):
        return hint.__forward_arg__.startswith("Output[")
    return typing.get_origin(hint) == pulumi.Output


_SIMPLE: dict[object, PropertyType] = {
    str: Simple("string"),
    int: Simple("integer"),
    float: Simple("number"),
    bool: Simple("boolean"),
    timedelta: Simple("string"),
    Share: OneOf((Simple("integer"), Simple("string"))),
    Ports: OneOf((Simple("integer"), Simple("string"))),
    Any: Anything(),
}


def _without_parts(hint: object) -> PropertyType:
    if isinstance(hint, type) and issubclass(hint, Enum):
        return Simple("string")
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return Anything()
    if hint not in _SIMPLE:
        raise TypeError(f"{hint}: not known in other languages")
    return _SIMPLE[hint]


def _words(given: object, name: str) -> Words | None:
    """Return the texts that an annotation lists, as an enumeration or literals; None if it lists none."""
    if isinstance(given, type) and issubclass(given, Enum):
        texts = member_descriptions(given)
        words = [Word(_constant(enum.name.lower()), enum.value, texts.get(enum.name, "")) for enum in given]
        return Words(given.__name__, inspect.getdoc(given) or "", tuple(words))
    if typing.get_origin(given) is typing.Literal:
        return Words(name, "", tuple(Word(_constant(get_arg), get_arg, "") for get_arg in typing.get_args(given)))
    return None


def _constant(word: str) -> str:
    """Return a constant's name in other languages: `NoSchedule` for `no_schedule`, `V24_11` for `24.11`."""
    name = camel_case(f"_{word}")
    return name if name[0].isalpha() else f"V{name.replace('.', '_')}"


def _union(arguments: Sequence[object], name: str) -> PropertyType:
    """Return the type of a union's values. None means a missing key; Outputs and Awaitables are unwrapped."""
    values = [
        argument
        for argument in arguments
        if argument is not types.NoneType and not _is_output(argument) and typing.get_origin(argument) is not Awaitable
    ]
    found = tuple(dict.fromkeys(type_of(value, name) for value in values))
    return found[0] if len(found) == 1 else OneOf(found)


def _texts(dictionary: type) -> dict[str, str]:
    """Return the docstrings of the keys of a typed dictionary and its bases, which Python does not keep."""
    definition = _definition(dictionary)
    known = vars(sys.modules[dictionary.__module__])
    bases = [known[base.id] for base in definition.bases if isinstance(base, ast.Name)]
    inherited = [_texts(base) for base in bases if typing.is_typeddict(base)]
    return {name: text for entry in [*inherited, _texts_below(definition)] for name, text in entry.items()}


def _definition(of: type) -> ast.ClassDef:
    (parsed,) = ast.parse(textwrap.dedent(inspect.getsource(of))).body
    assert isinstance(parsed, ast.ClassDef)  # noqa: S101 - the source of a class
    return parsed


def _texts_below(definition: ast.ClassDef) -> dict[str, str]:
    found: dict[str, str] = {}
    for field, below in pairwise(definition.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = " ".join(text.split())
    return found
