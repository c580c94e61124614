"""Ownership of an object's fields, as server-side apply records it in `managedFields`."""

from collections.abc import Mapping, Sequence
from typing import Any

from tools.engine import property_paths
from tools.engine.kubernetes.api_client import Object

LOCAL_MANAGER = "pulumi-local-engine-"
"""Prefix of the local engine's field managers."""


def local_manager(live: Mapping[str, Any], manager: str) -> str:
    """Return the field manager for changes to a stack's object: its creator, even under a former URN."""
    ours = {str(entry.get("manager")) for entry in _entries(live)} - {manager}
    before = [our for our in ours if our.startswith(LOCAL_MANAGER)]
    return before[0] if len(before) == 1 and not made_by(live, manager) else manager


def made_by(live: Mapping[str, Any], manager: str) -> bool:
    """Return True if a field manager manages any field of an object."""
    return any(entry.get("manager") == manager for entry in _entries(live))


def adoption_patch(live: Mapping[str, Any], manager: str) -> list[dict[str, object]]:
    """Return the JSON patch after which apply manages the fields that create has set.

    Kubernetes keeps created and applied fields apart even under one manager; without the patch, a field that the
    program has removed would stay.
    """
    version = {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]}
    for index, entry in enumerate(_entries(live)):
        if entry.get("manager") == manager and entry.get("operation") == "Update" and not entry.get("subresource"):
            path = f"/metadata/managedFields/{index}/operation"
            return [{"op": "replace", "path": path, "value": "Apply"}, version]
    return []


def without_ignored(wanted: Object, live: Mapping[str, Any], manager: str, ignored: Sequence[str]) -> Object:
    """Return the object to apply if some paths are ignored.

    Fields of other managers are left out; all others keep their live value, since apply would remove them.
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
