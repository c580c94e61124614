"""Schema of the package for other languages: its components, and the resources of which they consist."""

from collections.abc import Iterator
from typing import Any

import soperator_pulumi
from soperator_pulumi.lifecycle.connection import CONTEXT, KUBECONFIG
from soperator_pulumi.lifecycle.resource import PACKAGE, ServedBy
from soperator_pulumi.plugin.cluster_types import CLUSTER
from soperator_pulumi.plugin.component_types import ComponentType
from soperator_pulumi.plugin.live_kinds import KINDS, LiveKind
from soperator_pulumi.plugin.platform_types import PLATFORM
from soperator_pulumi.plugin.property_types import (
    Anything,
    ListOf,
    MapOf,
    ObjectType,
    OneOf,
    Property,
    PropertyType,
    Simple,
    model_type,
    output_type,
)
from soperator_pulumi.plugin.spelling import in_other_languages, names_in

Json = dict[str, Any]

COMPONENTS = (CLUSTER, PLATFORM)
"""Components for programs in other languages."""

_NAMES = frozenset(name for each in COMPONENTS for name in names_in(each.inputs))
_ACCESS = (KUBECONFIG, CONTEXT)
_LANGUAGES = ("nodejs", "python", "csharp", "java", "go")

_PART = "A part of SlurmCluster, not for programs: it acts on the live cluster."

_PROVIDER = "Credentials for the clusters of a program, and newer ones than a state has."


def schema() -> Json:
    """Return the schema, as Pulumi reads it."""
    config = _access()
    return {
        "name": PACKAGE,
        "displayName": "Soperator",
        "version": soperator_pulumi.__version__,
        "description": "Slurm on any Kubernetes as one `pulumi up`.",
        "keywords": ["pulumi", "kubernetes", "slurm", "category/infrastructure", "kind/component"],
        "license": "Apache-2.0",
        "language": {language: {"respectSchemaVersion": True} for language in _LANGUAGES},
        "config": {"variables": config},
        "provider": {"description": _PROVIDER, "inputProperties": config},
        "types": {_token(each): _object(each) for each in _objects()},
        "resources": {
            **{each.token: _component(each) for each in COMPONENTS},
            **{kind.token: _part(kind) for kind in KINDS},
        },
    }


def _component(type_: ComponentType) -> Json:
    return {
        "isComponent": True,
        "description": type_.description,
        "inputProperties": _properties(type_.inputs) | _access(),
        "requiredInputs": [each.key for each in type_.inputs.properties if each.name in type_.required],
        "properties": _properties(type_.outputs),
        "required": [each.key for each in type_.outputs.properties if each.required],
    }


def _part(kind: LiveKind) -> Json:
    """Return the schema of a custom resource, whose keys are those of Python, for which no language needs a class."""
    inputs, outputs = model_type(kind.inputs), output_type(kind.resource)
    given = {each.name: _described(each) for each in inputs.properties} | _access()
    return {
        "isOverlay": True,
        "description": f"{outputs.description} {_PART}",
        "inputProperties": given,
        "requiredInputs": [each.name for each in inputs.properties if each.required],
        "properties": given | {each.name: _described(each) for each in outputs.properties},
        "aliases": [{"type": kind.resource.token(ServedBy.PROGRAM)}],
    }


def _access() -> Json:
    found = {each.key: _property(each) for each in CLUSTER.inputs.properties if each.name in _ACCESS}
    return found | {KUBECONFIG: {**found[KUBECONFIG], "secret": True}}


def _object(type_: ObjectType) -> Json:
    return {
        "type": "object",
        "description": in_other_languages(type_.description, _NAMES),
        "properties": _properties(type_),
        **({"required": required} if (required := [each.key for each in type_.properties if each.required]) else {}),
    }


def _properties(type_: ObjectType) -> Json:
    return {each.key: _property(each) for each in type_.properties}


def _property(property_: Property) -> Json:
    return {**_described(property_), **({"plain": True} if property_.plain else {})}


def _described(property_: Property) -> Json:
    text = in_other_languages(property_.description, _NAMES)
    return {**_reference(property_.type), **({"description": text} if text else {})}


def _reference(type_: PropertyType) -> Json:
    match type_:
        case Simple(name):
            return {"type": name}
        case Anything():
            return {"$ref": "pulumi.json#/Any"}
        case OneOf(several):
            return {"oneOf": [_reference(each) for each in several]}
        case ListOf(items, plain):
            return {"type": "array", "items": _reference(items) | ({"plain": True} if plain else {})}
        case MapOf(values, plain):
            return {"type": "object", "additionalProperties": _reference(values) | ({"plain": True} if plain else {})}
        case ObjectType():
            return {"$ref": f"#/types/{_token(type_)}"}


def _token(type_: ObjectType) -> str:
    """Return the name of a type: languages add `Args` themselves."""
    return f"{PACKAGE}:index:{type_.name.removesuffix('Args')}"


def _objects() -> list[ObjectType]:
    """Return the object types in all components, each once, by their names."""
    found = {each.name: each for component in COMPONENTS for each in _objects_in(component.inputs)}
    return [found[name] for name in sorted(found)]


def _objects_in(type_: PropertyType) -> Iterator[ObjectType]:
    """Yield the object types in a type, apart from itself, each once."""
    found: dict[str, ObjectType] = {}

    def collect(part: PropertyType) -> None:
        match part:
            case ObjectType():
                found[part.name] = part
                for each in part.properties:
                    collect(each.type)
            case ListOf(items=inner) | MapOf(values=inner):
                collect(inner)
            case OneOf(several):
                for form in several:
                    collect(form)

    collect(type_)
    yield from (each for each in found.values() if each is not type_)
