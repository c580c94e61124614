"""JSON schema of a stack's file, stacks/schema.json, for editors."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import JsonSchemaValue

from soperator_pulumi.policy.registry import POLICIES
from soperator_pulumi.policy.stack_rules import PolicySpec
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.node_set import NodeSetSpec
from soperator_pulumi.spec.platform.platform_spec import PlatformSpec
from soperator_pulumi.spec.types.deferred import MAY_BE_OUTPUT
from soperator_pulumi.spec.types.machine_size import NUMBER_OF_MACHINE, PLACEHOLDER
from soperator_pulumi.stack import stack_config, stack_outputs
from tools import paths
from tools.docs.model_schema import DEFINITIONS, Definitions, describe

FILE = paths.ROOT / "stacks" / "schema.json"

_REFERENCE = "Reference"
_MERGED = "OverDefaults"
"""End of a definition's name in the form that is merged over defaults."""


def schema() -> JsonSchemaValue:
    """Return the schema, in draft 7, which editors support."""
    definitions = _definitions()
    cluster = _merged({"$ref": f"{DEFINITIONS}ClusterSpec"}, definitions)
    keys = _keys(cluster, _policy(definitions))
    config = {
        "description": "Configuration of the stack. Keys of other namespaces are for other programs and providers.",
        "type": "object",
        "properties": keys,
        "patternProperties": {f"^soperator:(?!({'|'.join(key.partition(':')[2] for key in keys)})$)": False},
        "not": {"required": [stack_config.ONE, stack_config.SEVERAL]},
        "anyOf": [{"required": [key]} for key in (stack_config.ONE, stack_config.SEVERAL, stack_config.PLATFORM)],
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Stack of soperator-pulumi",
        "type": "object",
        "properties": {"config": config},
        "required": ["config"],
        "definitions": dict(sorted(_reached(config, definitions).items())),
    }


def text() -> str:
    """Return the file's content."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _keys(cluster: JsonSchemaValue, policy: JsonSchemaValue) -> dict[str, JsonSchemaValue]:
    """Return the schemas of the keys under `soperator:`."""
    secure = {"type": "object", "properties": {"secure": {"type": "string"}}, "required": ["secure"]}
    name = {"type": "string", "minLength": 1}
    return {
        stack_config.ONE: {**cluster, "description": "The cluster of the stack, merged over `soperator:defaults`."},
        stack_config.SEVERAL: {
            "description": "Several clusters by their names, each merged over `soperator:defaults`.",
            "type": "object",
            "additionalProperties": cluster,
            "propertyNames": {"pattern": f"^{stack_config.COMPONENT_NAME.pattern}$"},
            "minProperties": 1,
        },
        stack_config.PLATFORM: {
            "$ref": f"{DEFINITIONS}{PlatformSpec.__name__}",
            "description": "The platform of the Kubernetes, before the clusters: docs/platform.md.",
        },
        stack_config.DEFAULTS: {
            **cluster,
            "description": "Descriptions that the clusters are merged over, in place of those in Pulumi.yaml.",
        },
        stack_config.LOCAL: {
            **_closed({"user": {**name, "description": "User of `make ssh`, who gets this machine's key."}}, ["user"]),
            "description": "Marks the stack of a cluster on this machine, with the images that are built here.",
        },
        stack_config.KUBECONFIG: {
            "description": "Kubernetes of the clusters: content or path of a kubeconfig. Default: the ambient one.",
            "anyOf": [{"type": "string"}, secure, {"$ref": f"{DEFINITIONS}{_REFERENCE}"}],
        },
        stack_config.CONTEXT: {"description": "Context in the kubeconfig. Default: its current one.", "type": "string"},
        stack_config.POLICY: {**policy, "description": "Policies of the stack: docs/policies.md."},
        stack_config.SERVED_BY: {
            "description": "Process that acts on the live cluster: docs/languages.md. Default: program.",
            "enum": ["program", "plugin"],
        },
    }


def _definitions() -> Definitions:
    """Return the schemas of all models, with placeholders for sizes, and of a reference to another stack.

    Every deferred value may be such a reference.
    """
    found: Definitions = {}
    describe(ClusterSpec, found)
    describe(PlatformSpec, found)
    reference = {
        stack_outputs.STACK: {
            "description": "Stack as `<organization>/<project>/<stack>`.",
            "type": "string",
            "pattern": f"^{stack_outputs.STACK_PATTERN}$",
        },
        stack_outputs.OUTPUT: {"description": "Name of the stack's output.", "type": "string"},
    }
    definitions = {name: _with_references(entry) for name, entry in found.items()}
    fields = definitions[NodeSetSpec.__name__]["properties"]
    placeholder = {"type": "string", "pattern": f"^(?:{PLACEHOLDER.pattern})$"}
    for name, field in NodeSetSpec.model_fields.items():
        if NUMBER_OF_MACHINE in field.metadata:
            fields[name] = _or(placeholder, fields[name])
    return {
        **definitions,
        _REFERENCE: {**_closed(reference, [*reference]), "description": "An output of another stack."},
    }


def _policy(definitions: Definitions) -> JsonSchemaValue:
    """Return the schema of `soperator:policy`: this package's policies by name, and any names for other packs."""
    reference = describe(PolicySpec, definitions)
    parts = definitions[PolicySpec.__name__]["properties"]
    exception = parts["exceptions"]["additionalProperties"]
    parts["exceptions"]["properties"] = {
        policy.name: {**exception, "description": policy.description} for policy in POLICIES if policy.exceptable
    }
    parts["settings"]["properties"] = {
        policy.name: {**describe(policy.settings, definitions), "description": policy.description}
        for policy in POLICIES
    }
    return reference


def _with_references(node: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a schema in which every value that may be an Output may also be a reference."""
    if isinstance(node, list):
        return [_with_references(item) for item in node]
    if not isinstance(node, dict):
        return node
    inner = {key: _with_references(value) for key, value in node.items() if key != MAY_BE_OUTPUT}
    if "anyOf" in inner:
        inner["anyOf"] = [
            part for item in inner["anyOf"] for part in (item["anyOf"] if {*item} == {"anyOf"} else [item])
        ]
    return _or({"$ref": f"{DEFINITIONS}{_REFERENCE}"}, inner) if MAY_BE_OUTPUT in node else inner


def _merged(node: JsonSchemaValue, definitions: Definitions) -> JsonSchemaValue:
    """Return the form of a schema that is merged over defaults: no key of a mapping is required, null removes one.

    Lists are not merged, so their items keep their form.
    """
    name = node.get("$ref", "").removeprefix(DEFINITIONS)
    if name == _REFERENCE or (name and definitions[name].get("type") != "object"):
        return node
    if name:
        merged = f"{name}{_MERGED}"
        if merged not in definitions:
            definitions[merged] = _merged(definitions[name], definitions)
        return {**node, "$ref": f"{DEFINITIONS}{merged}"}
    changed = {key: value for key, value in node.items() if key != "required"}
    for key in ("properties", "patternProperties"):
        if key in node:
            changed[key] = {item: _or_null(_merged(value, definitions)) for item, value in node[key].items()}
    if isinstance(node.get("additionalProperties"), Mapping):
        changed["additionalProperties"] = _or_null(_merged(node["additionalProperties"], definitions))
    if "anyOf" in node:
        changed["anyOf"] = [_merged(item, definitions) for item in node["anyOf"]]
    return changed


def _or_null(node: JsonSchemaValue) -> JsonSchemaValue:
    """Return a schema that also accepts null."""
    if not node or {"type": "null"} in node.get("anyOf", []):
        return node
    if "type" in node and "enum" not in node:
        types = node["type"] if isinstance(node["type"], list) else [node["type"]]
        return {**node, "type": [*types, "null"]}
    return _or({"type": "null"}, node)


def _or(another: JsonSchemaValue, node: JsonSchemaValue) -> JsonSchemaValue:
    """Return a schema that also accepts another form, with description and default outside, where editors look."""
    outside: JsonSchemaValue = {key: node[key] for key in ("description", "default") if key in node}
    inner = {key: value for key, value in node.items() if key not in outside}
    return {**outside, "anyOf": [*inner.get("anyOf", [inner]), another]}


def _reached(root: object, definitions: Definitions) -> Definitions:
    """Return the definitions that a schema refers to, directly or through others."""
    found: Definitions = {}
    looked_at: list[object] = [root]
    while looked_at:
        node = looked_at.pop()
        if isinstance(node, Mapping):
            name = str(node.get("$ref", "")).removeprefix(DEFINITIONS)
            if name and name not in found:
                found[name] = definitions[name]
                looked_at.append(found[name])
            looked_at += node.values()
        elif isinstance(node, list):
            looked_at += node
    return found


def _closed(properties: Mapping[str, JsonSchemaValue], required: list[str] | None = None) -> JsonSchemaValue:
    """Return the schema of a mapping without further keys."""
    needs = {"required": required} if required else {}
    return {"type": "object", "properties": dict(properties), **needs, "additionalProperties": False}
