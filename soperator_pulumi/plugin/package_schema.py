"""Schema of the package for other languages: its components, and the resources that they create."""

from collections.abc import Iterator
from typing import Any

import soperator_pulumi
from soperator_pulumi.lifecycle.connection import CONTEXT, KUBECONFIG
from soperator_pulumi.lifecycle.resource import PACKAGE, ServedBy
from soperator_pulumi.plugin.cluster_types import CLUSTER
from soperator_pulumi.plugin.live_kinds import KINDS, LiveKind
from soperator_pulumi.plugin.platform_types import PLATFORM
from soperator_pulumi.plugin.property_types import (
    Anything,
    ComponentType,
    ListOf,
    MapOf,
    ObjectType,
    OneOf,
    Property,
    PropertyType,
    Simple,
    Words,
    model_type,
    output_type,
)
from soperator_pulumi.plugin.spelling import in_other_languages, names_in

Json = dict[str, Any]

COMPONENTS = (CLUSTER, PLATFORM)
"""Components for programs in other languages."""

_NAMES = frozenset(name for component in COMPONENTS for name in names_in(component.inputs))
_ACCESS = (KUBECONFIG, CONTEXT)
_LANGUAGES = ("nodejs", "python", "csharp", "java", "go")
_SETTINGS = {"respectSchemaVersion": True}

_PART = "A part of SlurmCluster, not for programs: it acts on the live cluster."

_PROVIDER = "Credentials for a program's clusters. They replace older ones in a state."


def schema() -> Json:
    """Return the schema, as Pulumi reads it."""
    config = _access()
    named = {type_.name: type_ for component in COMPONENTS for type_ in _named_types_in(component.inputs)}
    return {
        "name": PACKAGE,
        "displayName": "Soperator",
        "version": soperator_pulumi.__version__,
        "description": "Slurm on any Kubernetes as one `pulumi up`.",
        "keywords": ["pulumi", "kubernetes", "slurm", "category/infrastructure", "kind/component"],
        "license": "Apache-2.0",
        "namespace": soperator_pulumi.NAMESPACE,
        "repository": soperator_pulumi.REPOSITORY,
        "meta": {"supportPack": True},  # otherwise Go's files import each other from wrong places
        "language": {
            **dict.fromkeys(_LANGUAGES, _SETTINGS),
            "java": _SETTINGS | {"basePackage": soperator_pulumi.NAMESPACE},
        },
        "config": {"variables": config},
        "provider": {"description": _PROVIDER, "inputProperties": config},
        "types": {_token(named[name]): _named_type(named[name]) for name in sorted(named)},
        "resources": {
            **{component.token: _component(component) for component in COMPONENTS},
            **{kind.token: _part(kind) for kind in KINDS},
        },
    }


def _component(type_: ComponentType) -> Json:
    return {
        "isComponent": True,
        "description": type_.description,
        "inputProperties": _properties(type_.inputs) | _access(),
        "requiredInputs": [property_.key for property_ in type_.inputs.properties if property_.name in type_.required],
        "properties": _properties(type_.outputs),
        "required": [property_.key for property_ in type_.outputs.properties if property_.required],
    }


def _part(kind: LiveKind) -> Json:
    """Return the schema of a custom resource. It keeps Python's keys, as no language needs a class for it."""
    inputs, outputs = model_type(kind.inputs), output_type(kind.resource)
    given = {property_.name: _described(property_) for property_ in inputs.properties} | _access()
    return {
        "isOverlay": True,
        "description": f"{outputs.description} {_PART}",
        "inputProperties": given,
        "requiredInputs": [property_.name for property_ in inputs.properties if property_.required],
        "properties": given | {property_.name: _described(property_) for property_ in outputs.properties},
        "aliases": [{"type": kind.resource.token(ServedBy.PROGRAM)}],
    }


def _access() -> Json:
    found = {
        property_.key: _property(property_) for property_ in CLUSTER.inputs.properties if property_.name in _ACCESS
    }
    return found | {KUBECONFIG: {**found[KUBECONFIG], "secret": True}}


def _named_type(type_: ObjectType | Words) -> Json:
    parts: Json
    match type_:
        case ObjectType(_, description, properties):
            required = [property_.key for property_ in properties if property_.required]
            parts = {"type": "object", "properties": _properties(type_)} | ({"required": required} if required else {})
        case Words(_, description, words):
            parts = {
                "type": "string",
                "enum": [_with_text({"name": word.name, "value": word.value}, word.description) for word in words],
            }
    return _with_text(parts, description)


def _properties(type_: ObjectType) -> Json:
    return {property_.key: _property(property_) for property_ in type_.properties}


def _property(property_: Property) -> Json:
    return _with_text(_reference(property_.type, plain=property_.plain), property_.description)


def _described(property_: Property) -> Json:
    return _with_text(_reference(property_.type, plain=False), property_.description)


def _with_text(part: Json, description: str) -> Json:
    text = in_other_languages(description, _NAMES)
    return {**part, **({"description": text} if text else {})}


def _reference(type_: PropertyType, *, plain: bool) -> Json:
    """Return the reference to a type. No form of a plain value can be an Output."""
    return _form(type_, plain=plain) | ({"plain": True} if plain else {})


def _form(type_: PropertyType, *, plain: bool) -> Json:
    match type_:
        case Simple(name):
            return {"type": name}
        case Anything():
            return {"$ref": "pulumi.json#/Any"}
        case OneOf(several):
            return {"oneOf": [_alternative(item, plain=plain) for item in several]}
        case ListOf(items, plain_items):
            return {"type": "array", "items": _reference(items, plain=plain_items)}
        case MapOf(values, plain_values):
            return {"type": "object", "additionalProperties": _reference(values, plain=plain_values)}
        case ObjectType() | Words():
            return {"$ref": f"#/types/{_token(type_)}"}


def _alternative(type_: PropertyType, *, plain: bool) -> Json:
    """Return the reference to one of several forms of a value.

    Go makes a union with an enumeration a plain string, which excludes all other forms. So the enumeration is put into
    a union of its own. As that needs two members, both are the enumeration.
    """
    reference = _reference(type_, plain=plain)
    if not isinstance(type_, Words):
        return reference
    return {"oneOf": [reference, reference]} | ({"plain": True} if plain else {})


def _token(type_: ObjectType | Words) -> str:
    """Return the name of a type. Languages append `Args` themselves."""
    return f"{PACKAGE}:index:{type_.name.removesuffix('Args')}"


def _named_types_in(type_: PropertyType) -> Iterator[ObjectType | Words]:
    """Yield the named types inside a type, without duplicates."""
    found: dict[str, ObjectType | Words] = {}

    def collect(part: PropertyType) -> None:
        match part:
            case Words():
                found[part.name] = part
            case ObjectType():
                found[part.name] = part
                for property_ in part.properties:
                    collect(property_.type)
            case ListOf(items=inner) | MapOf(values=inner):
                collect(inner)
            case OneOf(several):
                for form in several:
                    collect(form)

    collect(type_)
    yield from (item for item in found.values() if item is not type_)
