"""Decisions of Pulumi's engine, without side effects: the step for a resource, and the order of deletions."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from soperator_pulumi.cli.stack_changes import StepOp
from tools.engine import property_paths
from tools.engine.local.state import Resource


@dataclass(frozen=True, kw_only=True)
class Diff:
    """Difference between a resource's state and its new inputs, according to its provider.

    Attributes:
        changes: True if there is any.
        changed: Paths that differ.
        replaces: Paths that rule out an update in place.
        delete_before_replace: Old and new can't exist at the same time.
    """

    changes: bool
    changed: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    delete_before_replace: bool = False


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Step for a resource in the state."""

    operation: StepOp
    paths: tuple[str, ...] = ()
    delete_before_replace: bool = False


def with_replace_on_changes(diff: Diff, patterns: Iterable[str]) -> Diff:
    """Return the difference with the paths of `replace_on_changes` added."""
    parsed = [property_paths.parse(pattern) for pattern in patterns]
    more = [
        p for p in diff.changed if any(property_paths.contains(pattern, property_paths.parse(p)) for pattern in parsed)
    ]
    return Diff(
        changes=diff.changes,
        changed=diff.changed,
        replaces=tuple(dict.fromkeys([*diff.replaces, *more])) if diff.changes else diff.replaces,
        delete_before_replace=diff.delete_before_replace,
    )


def decide(diff: Diff, old: Resource, new: Resource, *, delete_before_replace: bool | None) -> Decision:
    """Choose between same, update and replace.

    Args:
        diff: Difference by the provider.
        old: Resource in the state.
        new: Resource of the program.
        delete_before_replace: Option in the program; None for the provider's default.
    """
    diff = with_replace_on_changes(diff, new.replace_on_changes)
    if old.pending_replacement or (diff.changes and diff.replaces):
        delete_first = diff.delete_before_replace if delete_before_replace is None else delete_before_replace
        return Decision(
            operation=StepOp.REPLACE,
            paths=diff.changed,
            delete_before_replace=delete_first or old.pending_replacement,
        )
    if diff.changes or old.init_errors:
        return Decision(operation=StepOp.UPDATE, paths=diff.changed)
    return Decision(operation=StepOp.SAME)


def dependents(root: Resource, resources: Sequence[Resource], done: Collection[str]) -> list[Resource]:
    """Return the dependents of a resource, direct or not, dependencies first.

    Args:
        root: Resource to start at.
        resources: State, dependencies first.
        done: URNs that this run has reached already, which can't depend on later ones.
    """
    reached = {root.urn}
    found = []
    start = next(i for i, resource in enumerate(resources) if resource is root)
    for resource in resources[start + 1 :]:
        if resource.urn not in done and resource.needs() & reached:
            reached.add(resource.urn)
            found.append(resource)
    return found


def deletion_order(doomed: Sequence[Resource], resources: Sequence[Resource]) -> list[list[Resource]]:
    """Return groups of resources to delete. A group begins after the previous one has ended.

    Within a group, no resource depends on another; no resource is deleted before its dependents.

    Args:
        doomed: Resources to delete.
        resources: State, dependencies first. A resource depends on resources further up alone, which decides
            between a resource and its successor if the state has both.
    """
    position = {id(resource): i for i, resource in enumerate(resources)}
    left = sorted(doomed, key=lambda resource: position[id(resource)])
    waves: list[list[Resource]] = []
    while left:
        wave: list[Resource] = []
        waiting: list[Resource] = []
        above: set[str] = set()
        for resource in left:
            (waiting if resource.needs() & above else wave).append(resource)
            above.add(resource.urn)
        waves.append(wave)
        left = waiting
    return waves[::-1]


def kept_with(resources: Sequence[Resource], keep: Callable[[Resource], bool]) -> set[str]:
    """Return the URNs of the resources to keep and of all their dependencies."""
    kept = {resource.urn for resource in resources if keep(resource)}
    for resource in reversed(resources):
        if resource.urn in kept:
            kept |= resource.needs()
    return kept
