"""Objects in the inputs of a `ConfigGroup`: a provider registers them in an engine, but not in a recorded deployment.

Source: https://www.pulumi.com/registry/packages/kubernetes/api-docs/yaml/v2/configgroup/
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import yaml

from soperator_pulumi.policy.value_tree import Path, listed, look
from soperator_pulumi.policy.view import ResourceView

_GROUP = "kubernetes:yaml/v2:ConfigGroup"


def opened(resource: ResourceView) -> Iterator[ResourceView]:
    """Yield the objects of a `ConfigGroup`, named as its provider names them, and any other resource unchanged."""
    yield resource
    if resource.type != _GROUP:
        return
    prefix = resource.props.get("resourcePrefix") or resource.name
    for path, found in _objects(resource.props):
        version = str(found["apiVersion"])
        type_ = f"kubernetes:{version if '/' in version else f'core/{version}'}:{found['kind']}"
        place = "/".join(str(field) for key in ("namespace", "name") if (field := look(found, "metadata", key)))
        name = f"{prefix}:{place}"
        stack, _, _ = resource.urn.rpartition("::")
        yield replace(
            resource,
            type=type_,
            name=name,
            urn=f"{stack}${type_}::{name}",
            parent=resource.urn,
            props=found,
            protect=False,
            secrets=_marks_below(resource, path),
        )


class _Loader(yaml.SafeLoader):
    """Reader of YAML that leaves a date as text, as Kubernetes does."""


_Loader.yaml_implicit_resolvers = {
    first: [resolver for resolver in found if resolver[0] != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _objects(props: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    for index, item in enumerate(listed(props.get("objs"))):
        yield from _unlisted(item, ("objs", index))
    text = props.get("yaml")
    try:
        documents = [*yaml.load_all(text, _Loader)] if isinstance(text, str) else []
        documents = json.loads(json.dumps(documents, default=str))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return  # the provider refuses it
    for document in documents:
        yield from ((("yaml",), found) for _, found in _unlisted(document, ()))


def _unlisted(value: object, path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield an object with its path, and the objects of a `List` one by one."""
    if isinstance(value, Mapping) and value.get("kind") == "List":
        for index, item in enumerate(listed(value.get("items"))):
            yield from _unlisted(item, (*path, "items", index))
    elif isinstance(value, Mapping) and {"apiVersion", "kind"} <= value.keys():
        yield path, value


def _marks_below(resource: ResourceView, path: Path) -> frozenset[Path] | None:
    if resource.secrets is None:
        return None
    if resource.is_secret(path):
        return frozenset({()})
    return frozenset(mark[len(path) :] for mark in resource.secrets if mark[: len(path)] == path)
