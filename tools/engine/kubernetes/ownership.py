"""Who manages which field of an object, as server-side apply keeps it in `managedFields`."""

from collections.abc import Mapping, Sequence
from typing import Any

from tools.engine import property_paths

Object = dict[str, Any]


LOCAL_MANAGER = "pulumi-local-engine-"
"""With this begin the names of the field managers of the local engine."""


def local_manager(live: Mapping[str, Any], manager: str) -> str:
    """Return under which field manager an object of ours is changed: the one that made it, also under another URN."""
    ours = {str(entry.get("manager")) for entry in _entries(live)} - {manager}
    before = [each for each in ours if each.startswith(LOCAL_MANAGER)]
    return before[0] if len(before) == 1 and not made_by(live, manager) else manager


def made_by(live: Mapping[str, Any], manager: str) -> bool:
    """Say whether a field manager has a part in an object."""
    return any(entry.get("manager") == manager for entry in _entries(live))


def adoption_patch(live: Mapping[str, Any], manager: str) -> list[dict[str, object]]:
    """Return the JSON patch after which apply manages what create has set.

    Kubernetes keeps what was created and what was applied apart even under one name; without this, a field
    that is no longer asked for would stay.
    """
    version = {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]}
    for index, entry in enumerate(_entries(live)):
        if entry.get("manager") == manager and entry.get("operation") == "Update" and not entry.get("subresource"):
            path = f"/metadata/managedFields/{index}/operation"
            return [{"op": "replace", "path": path, "value": "Apply"}, version]
    return []


def without_ignored(wanted: Object, live: Mapping[str, Any], manager: str, ignored: Sequence[str]) -> Object:
    """Return what to apply where some paths are ignored.

    What somebody else manages is left to them, anything else keeps its live value: left out, it would be removed.
    """
    for text in ignored:
        path = property_paths.parse(text)
        owners = {entry.get("manager") for entry in _entries(live) if _owns(entry.get("fieldsV1") or {}, path)}
        parent, value = _walk(wanted, path[:-1]), _walk(live, path)
        if not isinstance(parent, dict):
            continue
        key = path[-1]
        if owners and manager not in owners:
            parent.pop(key, None)
        elif value is not None:
            parent[key] = value
    return wanted


def _entries(live: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(live.get("metadata", {}).get("managedFields") or [])


def _owns(fields: Mapping[str, Any], path: property_paths.Path) -> bool:
    here: Any = fields
    for step in path:
        here = here.get(f"f:{step}") if isinstance(here, Mapping) else None
    return here is not None


def _walk(obj: object, path: property_paths.Path) -> object:
    here = obj
    for step in path:
        here = here.get(step) if isinstance(here, Mapping) else None
    return here
