"""Application of a policy's edits to the properties of a resource."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from soperator_pulumi.policy.definition import MARK_AS_SECRET, Edit
from soperator_pulumi.policy.value_tree import Path
from soperator_pulumi.policy.view import ResourceView


def edited(resource: ResourceView, edits: Iterable[Edit]) -> ResourceView:
    """Return a resource with the edits applied."""
    props, marks = resource.props, set(resource.secrets or ())
    for edit in edits:
        if edit.value is MARK_AS_SECRET:
            marks.add(edit.path)
        else:
            props = with_value(props, edit.path, edit.value)
    return replace(resource, props=props, secrets=None if resource.secrets is None else frozenset(marks))


def with_value(tree: Any, path: Path, value: object) -> Any:  # noqa: ANN401 any tree of values
    """Return a tree of values with a new value at a path; missing mappings on the way are created."""
    if not path:
        return value
    key, rest = path[0], path[1:]
    if isinstance(tree, list) and isinstance(key, int):
        return [with_value(item, rest, value) if index == key else item for index, item in enumerate(tree)]
    given = tree if isinstance(tree, Mapping) else {}
    return {**given, key: with_value(given.get(key), rest, value)}
