"""What happens to a resource, and in which order resources go: decisions of Pulumi's engine, without side effects."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from tools.engine import property_paths
from tools.engine.local.state import Resource
from tools.engine.protocol import StepOp


@dataclass(frozen=True, kw_only=True)
class Diff:
    """What a provider says of the difference between a resource's state and its new inputs.

    Attributes:
        changes: Whether there is any.
        changed: The paths that differ.
        replaces: The paths because of which it can't be updated in place.
        delete_before_replace: Old and new can't be there at the same time.
    """

    changes: bool
    changed: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    delete_before_replace: bool = False


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What is done to a resource that is in the state already."""

    operation: StepOp
    paths: tuple[str, ...] = ()
    delete_before_replace: bool = False


def with_replace_on_changes(diff: Diff, patterns: Iterable[str]) -> Diff:
    """Return the difference with the paths added that the program wants replacement for."""
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
    """Decide between same, update and replace.

    Args:
        diff: What the provider says.
        old: The resource as it is in the state.
        new: The resource as the program wants it.
        delete_before_replace: The program's wish; None leaves it to the provider.
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
    """Return what depends on a resource, directly or not, dependencies first.

    Args:
        root: The resource.
        resources: The state, dependencies first.
        done: URNs that this run has come to already: they can't depend on what it comes to now.
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
    """Return waves of resources to delete: a wave begins when the one before it is through.

    Within a wave nothing depends on anything else; nothing is deleted before all that needs it.

    Args:
        doomed: What is to be deleted.
        resources: The state, dependencies first. A need is one for resources further up only: of a resource
            and its successor, both in the state, that is the one that was meant.
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
    """Return the URNs of the resources to keep and of all that those need."""
    kept = {resource.urn for resource in resources if keep(resource)}
    for resource in reversed(resources):
        if resource.urn in kept:
            kept |= resource.needs()
    return kept
