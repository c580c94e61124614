"""Deletions that belong to a replacement: the resource has a successor, which stands for the same part of the cluster.

Pulumi creates the new resource and then deletes the old one where a user replaces a resource that our diffs would not
(`pulumi state taint`, `--target-replace`). Both are the same in the cluster: the delete would drain or remove what the
successor keeps. Both happen in one run, and so in one process. The next run after a kill in between does not know of
the successor and deletes: it fails closed where jobs run.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from pulumi.dynamic import CreateResult

from soperator_pulumi.operations.progress import report

Create = Callable[[Any, dict[str, Any]], CreateResult]
Delete = Callable[[Any, str, dict[str, Any]], None]

_ABOUT = ("namespace_uid", "component", "guards")
"""Properties that identify a resource besides its id: a resource with that id alone is no successor."""

CREATED: set[tuple[str, ...]] = set()
"""Resources that this process has created."""


def noting_successor(create: Create) -> Create:
    """Note a created resource as the one that stands for its part of the cluster from now on."""

    @functools.wraps(create)
    def run(self: object, props: dict[str, Any]) -> CreateResult:
        created = create(self, props)
        CREATED.add(_key(self, created.id, created.outs or {}))
        return created

    return run


def unless_superseded(delete: Delete) -> Delete:
    """Skip the delete of a resource whose successor exists already."""

    @functools.wraps(delete)
    def run(self: object, id_: str, props: dict[str, Any]) -> None:
        if _key(self, id_, props) in CREATED:
            report(f"{id_}: nothing is drained or deleted, as this run has created its successor")
            return
        delete(self, id_, props)

    return run


def _key(provider: object, id_: str, props: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the identity of a resource."""
    return (type(provider).__name__, id_, *(str(props.get(each) or "") for each in _ABOUT))
