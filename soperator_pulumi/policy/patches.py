"""Patches of a program on objects of the same program: policies judge what Kubernetes makes of both."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from soperator_pulumi.policy.value_tree import UNKNOWN, look
from soperator_pulumi.policy.view import ResourceView

_ATOMIC = ("podSelector", "selector")
"""Fields that a patch replaces as a whole: `x-kubernetes-map-type: atomic` of a LabelSelector."""


def patched(resources: Sequence[ResourceView]) -> list[ResourceView]:
    """Return the resources without patches, each after all patches on it."""
    patches = [each for each in resources if each.is_patch]
    return [_after(each, patches) for each in resources if not each.is_patch]


def changes(patch: ResourceView, resource: ResourceView) -> bool:
    """Return True where a patch is on an object, also where a preview does not know the namespace yet."""
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
    """Return a value after a change: mappings by key, lists of named parts by name, anything else replaced."""
    if change is None:
        return given
    if isinstance(given, Mapping) and isinstance(change, Mapping):
        return {**given, **{key: _changed(given, key, each) for key, each in change.items()}}
    if _has_names(given) and _has_names(change):
        by_name = {each["name"]: each for each in given}
        return [*{**by_name, **{each["name"]: _merged(by_name.get(each["name"]), each) for each in change}}.values()]
    return change


def _changed(given: Mapping[str, Any], key: str, change: Any) -> Any:  # noqa: ANN401 any tree of values
    return change if key in _ATOMIC and change is not None else _merged(given.get(key), change)


def _has_names(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, Mapping) and isinstance(each.get("name"), str) for each in value
    )
