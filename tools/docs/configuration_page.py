"""Page of all inputs, docs/configuration.md, from the spec."""

import json
import re
import types
import typing
from collections.abc import Iterator
from datetime import timedelta
from enum import Enum

import pulumi
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.platform.platform_spec import PlatformSpec
from soperator_pulumi.spec.types.addresses import Ports
from soperator_pulumi.spec.types.duration import duration_text
from soperator_pulumi.spec.types.int_or_percent import Share
from soperator_pulumi.spec.validation.descriptions import field_descriptions
from tools import paths
from tools.docs.annotations import models_below, one_line

FILE = paths.ROOT / "docs" / "configuration.md"

INTRODUCTION = """\
# Configuration

Inputs of a cluster: the keys under `soperator:cluster` in a stack's file ([environments](environments.md)), and the
arguments of `SlurmCluster`. Inputs of a [platform](#platform): the keys under `soperator:platform`, and the
arguments of `Platform`. `make docs` writes this page from the specification.

Where the type has *reference*, a stack's file may name
[an output of another stack](environments.md#values-of-other-stacks), and a program may give an Output.
"""


_SIMPLE: dict[object, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    timedelta: "duration",
    Share: "whole number or percentage",
    Ports: "port or range",
}


def text() -> str:
    """Return the whole page."""
    models = list(dict.fromkeys([*_models(ClusterSpec), *_models(PlatformSpec)]))
    return INTRODUCTION + "".join(_section(model) for model in models)


def _models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield a model and the models of its fields, parents first."""
    yield model
    for part in models_below(model):
        yield from _models(part)


def _section(model: type[BaseModel]) -> str:
    meanings = field_descriptions(model)
    rows = "".join(_row(name, field, meanings[name]) for name, field in model.model_fields.items())
    return (
        f"\n## {_title(model)}\n\n{one_line(model.__doc__)}\n\n"
        f"| input | type | default | meaning |\n|---|---|---|---|\n{rows}"
    )


def _title(model: type[BaseModel]) -> str:
    words = re.findall("[A-Z][a-z]+", model.__name__.removesuffix("Spec"))
    return " ".join([words[0], *(word.lower() for word in words[1:])])


def _row(name: str, field: FieldInfo, meaning: str) -> str:
    default = "required" if field.is_required() else _default(field)
    cell = one_line(meaning).replace("|", "\\|")
    return f"| `{name}` | {_type(field.annotation)} | {default} | {cell} |\n"


def _default(field: FieldInfo) -> str:
    if field.default_factory_takes_validated_data:
        return "see meaning"
    match field.get_default(call_default_factory=True):
        case None:
            return "none"
        case BaseModel():
            return "as below"
        case (tuple() | dict()) as value if not value:
            return "empty"
        case timedelta() as duration:
            return f"`{duration_text(duration)}`"
        case Share() as share:
            return f"`{share}`"
        case Enum(value=value) | value:
            return f"`{json.dumps(value, default=str)}`".replace('"', "")


def _type(annotation: object) -> str:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is pulumi.Output:
        return "reference"
    if origin in {typing.Union, types.UnionType}:
        return " or ".join(dict.fromkeys(_type(argument) for argument in arguments if argument is not types.NoneType))
    if origin is typing.Annotated:
        return _type(arguments[0])
    if origin is tuple:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return "map"
    if origin is typing.Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return ", ".join(f"`{member.value}`" for member in annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        title = _title(annotation)
        return f"[{title.lower()}](#{title.lower().replace(' ', '-')})"
    return _SIMPLE.get(annotation, "any")
