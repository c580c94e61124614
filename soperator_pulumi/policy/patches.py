"""Patches that a program applies to its own objects: policies judge the patched object."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from soperator_pulumi.policy.value_tree import UNKNOWN, look
from soperator_pulumi.policy.view import ResourceView

_ATOMIC = ("podSelector", "selector")
"""Fields that a patch replaces as a whole: a LabelSelector is `x-kubernetes-map-type: atomic`."""


def patched(resources: Sequence[ResourceView]) -> list[ResourceView]:
    """Return the resources that are not patches, with all patches to them applied."""
    patches = [resource for resource in resources if resource.is_patch]
    return [_after(resource, patches) for resource in resources if not resource.is_patch]


def objects_and_patches(resources: Sequence[ResourceView]) -> list[ResourceView]:
    """Return the Kubernetes objects with all patches applied, then the patches, which may patch objects elsewhere."""
    patches = [resource for resource in resources if resource.is_patch]
    return [resource for resource in (*patched(resources), *patches) if resource.is_kubernetes]


def changes(patch: ResourceView, resource: ResourceView) -> bool:
    """Return True if a patch applies to this object, or may: a preview may not know the namespace yet."""
    spaces, names = (patch.namespace, resource.namespace), (_name(patch), _name(resource))
    same_space = UNKNOWN in spaces or spaces[0] == spaces[1]
    return resource.is_kubernetes and patch.kind == resource.kind and same_space and names[0] == names[1] is not None


def _name(resource: ResourceView) -> Any:  # noqa: ANN401 a text, UNKNOWN or None
    return look(resource.props, "metadata", "name")


def _after(resource: ResourceView, patches: Sequence[ResourceView]) -> ResourceView:
    props: Any = resource.props
    for patch in patches:
        if changes(patch, resource):
            props = _merged(props, patch.props)
    return replace(resource, props=props)


def _merged(given: Any, change: Any) -> Any:  # noqa: ANN401 any tree of values
    """Return a value after a change: mappings merge by key, lists of named items by name, the rest is replaced."""
    if change is None:
        return given
    if isinstance(given, Mapping) and isinstance(change, Mapping):
        changed = {
            key: item if key in _ATOMIC and item is not None else _merged(given.get(key), item)
            for key, item in change.items()
        }
        return {**given, **changed}
    if _has_names(given) and _has_names(change):
        by_name = {item["name"]: item for item in given}
        return [*{**by_name, **{item["name"]: _merged(by_name.get(item["name"]), item) for item in change}}.values()]
    return change


def _has_names(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, Mapping) and isinstance(item.get("name"), str) for item in value
    )
