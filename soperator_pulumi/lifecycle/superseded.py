"""Deletions as part of a replacement: the deleted resource has a successor for the same part of the cluster.

If a user makes Pulumi replace a resource (`pulumi state taint`, `--target-replace`), Pulumi creates the new resource
and then deletes the old one. Both stand for the same part of the cluster, so the delete would drain or remove what the
successor keeps. Both happen in one run, and so in one process. If the run is killed in between, the next one does not
know of the successor and deletes: it fails closed if jobs run.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from pulumi.dynamic import CreateResult

from soperator_pulumi.operations.progress import report

Create = Callable[[Any, dict[str, Any]], CreateResult]
Delete = Callable[[Any, str, dict[str, Any]], None]

_ABOUT = ("namespace_uid", "component", "guards")
"""Properties that identify a resource together with its id: an equal id alone does not make a successor."""

CREATED: set[tuple[str, ...]] = set()
"""Resources that this process has created."""


def noting_successor(create: Create) -> Create:
    """Note a created resource as the current one for its part of the cluster."""

    @functools.wraps(create)
    def run(self: object, props: dict[str, Any]) -> CreateResult:
        created = create(self, props)
        CREATED.add(_key(self, created.id, created.outs or {}))
        return created

    return run


def unless_superseded(delete: Delete) -> Delete:
    """Skip the delete of a resource that has a successor."""

    @functools.wraps(delete)
    def run(self: object, id_: str, props: dict[str, Any]) -> None:
        if _key(self, id_, props) in CREATED:
            report(f"{id_}: nothing is drained or deleted, as this run has created its successor")
            return
        delete(self, id_, props)

    return run


def _key(provider: object, id_: str, props: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the identity of a resource: provider, id and the properties in `_ABOUT`."""
    return (type(provider).__name__, id_, *(str(props.get(key) or "") for key in _ABOUT))
