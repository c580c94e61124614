"""Typed arguments of a cluster, `spec/args.py`, generated from the models of the spec.

Editors and type checkers read that module, and the plugin for other languages infers its schema from it.
"""

import itertools
import json
import re
import textwrap
import types
import typing
from collections.abc import Iterable, Iterator
from datetime import timedelta
from enum import Enum
from operator import itemgetter

import pulumi
from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.jail import TarballSource
from soperator_pulumi.spec.platform.platform_spec import PlatformSpec
from soperator_pulumi.spec.secrets import MungeKeyRef, SecretRef, SshHostKeyRef
from soperator_pulumi.spec.slurm_settings import PartitionOptions, SlurmConfExtra
from soperator_pulumi.spec.types.addresses import Ports
from soperator_pulumi.spec.types.duration import duration_text
from soperator_pulumi.spec.types.int_or_percent import Share
from soperator_pulumi.spec.types.quantity import CpuQuantity
from soperator_pulumi.spec.validation.descriptions import field_descriptions
from tools import paths
from tools.docs.annotations import models_below, one_line, types_in

FILE = paths.ROOT / "soperator_pulumi" / "spec" / "args.py"

_HEAD = '''\
"""Descriptions of a cluster and of a platform as typed dictionaries.

They are for editors, type checkers, and the schema of other languages. `make docs` writes this module from the models
next to it, which check the values. A value that may be an Output is a `pulumi.Input` here and a `Maybe` there. A value
that is one of several words is annotated with them.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pulumi

'''

_SHARED: dict[type[BaseModel], type[BaseModel]] = {
    MungeKeyRef: SecretRef,
    SshHostKeyRef: SecretRef,
}
"""Models that differ only in their defaults and share a dictionary."""

_NAMES: dict[type[BaseModel], str] = {TarballSource: "TarballArgs"}

_ANNOTATED: tuple[tuple[object, str], ...] = (
    (CpuQuantity, "str | float"),
    (SlurmConfExtra, "Mapping[str, str | float]"),
    (PartitionOptions, "Mapping[str, str | float]"),
)
_OF_COMPONENTS = ("platform",)
"""Keys that `SlurmClusterArgs` and the plugin declare themselves, as the former also accepts a component."""

_SIMPLE: dict[object, str] = {
    str: "str",
    int: "int",
    float: "float",
    bool: "bool",
    typing.Any: "Any",
    timedelta: "str",
    Share: "int | str",
    Ports: "int | str",
}

_WIDTH = 120
_INDENT = "    "


def text() -> str:
    """Return the whole module."""
    dictionaries: dict[type[BaseModel], list[type[BaseModel]]] = {}
    for model in (*_models(ClusterSpec), *_models(PlatformSpec)):
        group = dictionaries.setdefault(_SHARED.get(model, model), [])
        if model not in group:
            group.append(model)
    body = "".join(f"\n\n{_dictionary(base, models)}" for base, models in dictionaries.items())
    return _HEAD + "".join(_imports(body, dictionaries)) + body


def name_of(model: type[BaseModel]) -> str:
    """Return the name of a model's dictionary: `NodeSetArgs` for `NodeSetSpec`."""
    base = _SHARED.get(model, model)
    return _NAMES.get(base, f"{base.__name__.removesuffix('Spec')}Args")


def _models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield the models that a model needs, followed by itself."""
    for needed in (*_bases(model), *models_below(model)):
        yield from _models(needed)
    yield model


def _bases(model: type[BaseModel]) -> list[type[BaseModel]]:
    """Return the models whose fields a model has unchanged, and whose dictionaries its own inherits from."""
    return [
        base
        for base in model.__bases__
        if issubclass(base, BaseModel) and base.model_fields and not base.model_fields.keys() & model.__annotations__
    ]


def _imports(body: str, models: Iterable[type[BaseModel]]) -> Iterator[str]:
    """Yield the imports of enumerations whose members a text uses."""
    used = {*re.findall(r"Annotated\[str, (\w+)\]", body)}
    parts = {type_ for model in models for field in model.model_fields.values() for type_ in types_in(field.annotation)}
    found = [part for part in parts if isinstance(part, type) and part.__name__ in used]
    for module, names in itertools.groupby(sorted((kind.__module__, kind.__name__) for kind in found), itemgetter(0)):
        yield f"from {module} import {', '.join(name for _, name in names)}\n"


def _dictionary(base: type[BaseModel], models: list[type[BaseModel]]) -> str:
    """Return the dictionary of a model, or of several that differ only in defaults."""
    inherited = _bases(base)
    left_out = {name for model in inherited for name in model.model_fields}
    left_out |= {*_OF_COMPONENTS} if base is ClusterSpec else set()
    own = {name: field for name, field in base.model_fields.items() if name not in left_out}
    required = {name for name in own if all(model.model_fields[name].is_required() for model in models)}
    total = bool(required) and base is not ClusterSpec
    bases = [*(map(name_of, inherited) if inherited else ["TypedDict"]), *([] if total else ["total=False"])]
    written, meanings = typing.get_type_hints(base, include_extras=True), field_descriptions(base)
    lines = [f"class {name_of(base)}({', '.join(bases)}):", *_docstring(_about(base)), ""]
    for name, field in own.items():
        key = _key(written[name])
        lines.append(f"{_INDENT}{name}: {key if not total or name in required else f'NotRequired[{key}]'}")
        meaning = one_line(meanings[name])
        # A description may explain the values itself.
        values = [*_values(field.annotation)]
        more = [text for text in values if not all(word in meaning for word in re.findall("`.*?`", text))]
        more += [] if "Default: " in meaning else _default(field)
        lines += _docstring(" ".join([meaning, *more]))
    return "\n".join(lines) + "\n"


def _about(model: type[BaseModel]) -> str:
    about = one_line(model.__doc__)
    if model is not ClusterSpec:
        return about
    needed = [f"`{name}`" for name, field in model.model_fields.items() if field.is_required()]
    needed[0] += " (a component has a default)"
    return f"{about} Required: {', '.join(needed[:-1])} and {needed[-1]}."


def _key(annotation: object) -> str:
    """Return the type of a key for a user who writes the value."""
    for known, text in _ANNOTATED:
        if annotation == known:
            return text
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in {typing.Union, types.UnionType}:
        return _union(arguments)
    if origin is typing.Annotated:
        return _key(_given(arguments))
    if origin is tuple:
        return f"Sequence[{_key(arguments[0])}]"
    if origin is dict:
        return f"Mapping[str, {_key(arguments[1])}]"
    if origin is typing.Literal:
        return f"Annotated[str, Literal[{', '.join(json.dumps(argument) for argument in arguments)}]]"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return f"Annotated[str, {annotation.__name__}]"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return name_of(annotation)
    return _SIMPLE[annotation]


def _given(annotated: tuple[object, ...]) -> object:
    """Return the type that a validator accepts, if it names one, instead of the model's."""
    validators = [value for value in annotated[1:] if isinstance(value, BeforeValidator)]
    named = [
        validator.json_schema_input_type
        for validator in validators
        if validator.json_schema_input_type is not PydanticUndefined
    ]
    return named[0] if named else annotated[0]


def _union(arguments: tuple[object, ...]) -> str:
    """Return the type of a union. None means a missing key, and a union with an Output becomes an input."""
    outputs = [argument for argument in arguments if typing.get_origin(argument) is pulumi.Output]
    plain = [argument for argument in arguments if argument is not types.NoneType and argument not in outputs]
    written = " | ".join(dict.fromkeys(map(_key, plain)))
    return f"pulumi.Input[{written}]" if outputs else written


def _values(annotation: object) -> Iterator[str]:
    """Yield the allowed values, if they are texts."""
    for part in types_in(annotation):
        if isinstance(part, type) and issubclass(part, Enum):
            yield f"One of {', '.join(f'`{member.value}`' for member in part)}."
    for literal in _literals(annotation):
        yield f"Only {', '.join(f'`{value}`' for value in typing.get_args(literal))}."


def _literals(annotation: object) -> Iterator[object]:
    if typing.get_origin(annotation) is typing.Literal:
        yield annotation
        return
    for argument in typing.get_args(annotation):
        yield from _literals(argument)


def _default(field: FieldInfo) -> Iterator[str]:
    """Yield the default, unless the description has it."""
    if field.is_required() or field.default_factory_takes_validated_data:
        return
    match field.get_default(call_default_factory=True):
        case None | BaseModel() | dict() | tuple():
            return
        case timedelta() as duration:
            yield f"Default: {duration_text(duration)}."
        case Enum(value=value) | value:
            yield f"Default: {str(value).lower() if isinstance(value, bool) else value}."


def _docstring(text: str) -> list[str]:
    escaped = text.replace("\\", "\\\\")
    whole = f'"""{escaped}"""'
    wrapped = textwrap.wrap(whole, _WIDTH - len(_INDENT), break_long_words=False, break_on_hyphens=False)
    return [f"{_INDENT}{line}" for line in wrapped]
