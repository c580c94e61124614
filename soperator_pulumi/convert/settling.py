"""Last step of a conversion: our spec checks the stack, and what it refuses leaves the stack with its reason."""

import re
from collections.abc import Iterator
from typing import Any

from soperator_pulumi.convert.conversion import TO_ADD, Addition, Conversion, Placed
from soperator_pulumi.convert.slurm_text import give_every_node_set_a_partition
from soperator_pulumi.errors import Problem, SpecError
from soperator_pulumi.spec.cluster import parse_cluster

_ROUNDS = 20
"""Each round removes what the one before could not see: values that do not fit together."""

_ITEMS = ("partitions", "jail.submounts")
"""Lists whose items go as a whole: without one field an item means something else, or nothing."""

_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")


def settle(work: Conversion) -> None:
    """Remove what our spec refuses, until it refuses nothing but placeholders and problems of the whole."""
    _prune(work.stack)
    give_every_node_set_a_partition(work)
    for _ in range(_ROUNDS):
        problems = [each for each in _problems(work) if not _is_expected(work, each)]
        removed = [_remove(work, problem) for problem in problems]
        _prune(work.stack)
        give_every_node_set_a_partition(work)
        if not any(removed):
            break
    work.to_correct = [Addition(each.path, each.text) for each in _problems(work) if not _is_expected(work, each)]


def _problems(work: Conversion) -> tuple[Problem, ...]:
    try:
        parse_cluster(work.plain(), where="")
    except SpecError as error:
        return error.problems
    return ()


def _is_expected(work: Conversion, problem: Problem) -> bool:
    """Return True for the problem of a placeholder."""
    found = _at(work.stack, problem.path)
    return isinstance(found, Placed) and found.value == TO_ADD


def _remove(work: Conversion, problem: Problem) -> bool:
    """Remove the value of a problem from the stack; return True where there was one."""
    place, key = _owner(work.stack, problem.path)
    if place is None or key is None:
        return False
    reason = f"refused by our specification: {problem.text}"
    for _, placed in _walk(place[key]):
        work.refuse(placed, reason)
    if isinstance(place, list):
        place[key] = None
    else:
        del place[key]
        _ask_again(work, place, str(key), reason)
    return True


def _ask_again(work: Conversion, place: dict[str, Any], key: str, reason: str) -> None:
    """Ask for a required value in the place of one that was refused."""
    if key in {"name", "cpus", "memory_gib"}:
        work.require(place, key, f"another value than that of the input, {reason}")


def _owner(stack: dict[str, Any], path: str) -> tuple[Any, Any]:
    """Return container and key of what a problem is about: a value, or a whole item of a list."""
    for items in _ITEMS:
        if (found := re.match(rf"{re.escape(items)}\[(\d+)\]", path)) and "options" not in path:
            return _at(stack, items), int(found[1])
    place: Any = stack
    owner: tuple[Any, Any] = (None, None)
    for step in _steps(path):
        if isinstance(place, Placed) or not _has(place, step):
            break
        owner = (place, step)
        place = place[step]
    return owner if isinstance(place, Placed) else (None, None)


def _at(stack: Any, path: str) -> Any:  # noqa: ANN401 any tree of values
    place = stack
    for step in _steps(path):
        if isinstance(place, Placed) or not _has(place, step):
            return place if isinstance(place, Placed) else None
        place = place[step]
    return place


def _steps(path: str) -> Iterator[str | int]:
    for key, index in _STEP.findall(path):
        yield int(index) if index else key


def _has(place: Any, step: str | int) -> bool:  # noqa: ANN401 any tree of values
    if isinstance(place, list):
        return isinstance(step, int) and step < len(place)
    return isinstance(place, dict) and step in place


def _walk(tree: Any) -> Iterator[tuple[str, Placed]]:  # noqa: ANN401 any tree of values
    if isinstance(tree, Placed):
        yield "", tree
    elif isinstance(tree, (list, dict)):
        for each in tree if isinstance(tree, list) else tree.values():
            yield from _walk(each)


def _prune(tree: Any) -> bool:  # noqa: ANN401 any tree of values
    """Remove empty containers and removed items; return True where nothing is left."""
    if isinstance(tree, dict):
        for key in [key for key, each in tree.items() if _prune(each)]:
            del tree[key]
        return not tree
    if isinstance(tree, list):
        tree[:] = [each for each in tree if not _prune(each)]
        return not tree
    return tree is None
