"""Deletions that belong to a replacement: what they are about is in the cluster as before, and has a successor there.

Pulumi creates the new resource and then deletes the old one where somebody has it replaced that our diffs would not
(`pulumi state taint`, `--target-replace`). Both are the same in the cluster: that delete would drain or remove what
lives on. Both happen in one run, and so in one process. A run that was killed in between is not known to the next one,
which deletes in earnest: it fails closed where jobs run.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from pulumi.dynamic import CreateResult

from soperator_pulumi.operations.progress import report

Create = Callable[[Any, dict[str, Any]], CreateResult]
Delete = Callable[[Any, str, dict[str, Any]], None]

_ABOUT = ("namespace_uid", "component", "guards")
"""Properties that tell what a resource is about, besides its id: others of that id are no successors."""

CREATED: set[tuple[str, ...]] = set()
"""Resources that this process has created."""


def noting_successor(create: Create) -> Create:
    """Have a resource that is created known as what stands for its part of the cluster from now on."""

    @functools.wraps(create)
    def run(self: object, props: dict[str, Any]) -> CreateResult:
        created = create(self, props)
        CREATED.add(_key(self, created.id, created.outs or {}))
        return created

    return run


def unless_superseded(delete: Delete) -> Delete:
    """Have nothing done for a resource whose successor is there already."""

    @functools.wraps(delete)
    def run(self: object, id_: str, props: dict[str, Any]) -> None:
        if _key(self, id_, props) in CREATED:
            report(f"{id_}: nothing is drained or deleted, as this run has created its successor")
            return
        delete(self, id_, props)

    return run


def _key(provider: object, id_: str, props: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a resource is about."""
    return (type(provider).__name__, id_, *(str(props.get(each) or "") for each in _ABOUT))
