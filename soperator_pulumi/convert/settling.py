"""Last step of a conversion: what the spec refuses is removed from the stack, with the reason in the report."""

import re
from collections.abc import Iterator
from typing import Any

from soperator_pulumi.convert.conversion import TO_ADD, Addition, Conversion, Placed
from soperator_pulumi.convert.slurm_text import give_every_node_set_a_partition
from soperator_pulumi.errors import Problem, SpecError
from soperator_pulumi.spec.cluster import parse_cluster

_ROUNDS = 20
"""Most rounds. A round reveals problems of values that do not fit together."""

_ITEMS = ("partitions", "jail.submounts")
"""Lists whose items are removed as a whole: without one field, an item means something else, or nothing."""

_NEEDED = re.compile(r"name|node_sets\[\d+\]\.(name|cpus|memory_gib)|jail\.submounts\[\d+\]\.node_sets\[\d+\]")
"""Values that a cluster cannot do without, and names of node sets that need another name."""


def settle(work: Conversion) -> None:
    """Remove what the spec refuses, until only placeholders and problems of the whole stack remain."""
    _prune(work.stack)
    give_every_node_set_a_partition(work)
    for _ in range(_ROUNDS):
        problems = [problem for problem in _problems(work) if not _is_expected(work, problem)]
        removed = [_remove(work, problem) for problem in problems]
        _prune(work.stack)
        give_every_node_set_a_partition(work)
        if not any(removed):
            break
    work.to_correct = [
        Addition(problem.path, problem.text) for problem in _problems(work) if not _is_expected(work, problem)
    ]


def _problems(work: Conversion) -> tuple[Problem, ...]:
    try:
        parse_cluster(work.plain(), where="")
    except SpecError as error:
        return error.problems
    return ()


def _is_expected(work: Conversion, problem: Problem) -> bool:
    """Return True if the problem is that of a placeholder."""
    found = _at(work.stack, problem.path)
    return isinstance(found, Placed) and found.value == TO_ADD


def _remove(work: Conversion, problem: Problem) -> bool:
    """Remove the value that a problem is about from the stack; return True if there was one."""
    place, key = _owner(work.stack, problem.path)
    if place is None or key is None:
        return False
    reason = f"the spec refuses it: {problem.text}"
    for _, placed in _walk(place[key]):
        work.refuse(placed, reason)
    if _NEEDED.fullmatch(problem.path):
        place[key] = Placed(TO_ADD, to_add=f"another value than the input's: {reason}")
    elif isinstance(place, list):
        place[key] = None
    else:
        del place[key]
    return True


def _owner(stack: dict[str, Any], path: str) -> tuple[Any, Any]:
    """Return the container and key of a problem's value, or of the list item to remove with it."""
    for items in _ITEMS:
        if (found := re.match(rf"{re.escape(items)}\[(\d+)\]", path)) and not re.search("options|node_sets", path):
            return _at(stack, items), int(found[1])
    *_, (place, key) = [(None, None), *_way(stack, path)]
    return (place, key) if place is not None and isinstance(place[key], Placed) else (None, None)


def _at(stack: Any, path: str) -> Any:  # noqa: ANN401 any tree of values
    """Return the deepest place of the stack on the way to a path."""
    *_, found = [stack, *(place[key] for place, key in _way(stack, path))]
    return found


def _way(stack: Any, path: str) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 any tree of values
    """Yield the containers and keys on the way to a path. Keys of labels and annotations may contain dots."""
    place, rest = stack, path
    while isinstance(place, (dict, list)):
        is_list = isinstance(place, list)
        steps = [f"[{index}]" for index in range(len(place))] if is_list else [*place]
        step = max((step for step in steps if re.match(rf"{re.escape(step)}([.\[]|$)", rest)), key=len, default="")
        if not step:
            return
        key: Any = int(step[1:-1]) if is_list else step
        yield place, key
        place, rest = place[key], rest.removeprefix(step).removeprefix(".")


def _walk(tree: Any) -> Iterator[tuple[str, Placed]]:  # noqa: ANN401 any tree of values
    if isinstance(tree, Placed):
        yield "", tree
    elif isinstance(tree, (list, dict)):
        for item in tree if isinstance(tree, list) else tree.values():
            yield from _walk(item)


def _prune(tree: Any) -> bool:  # noqa: ANN401 any tree of values
    """Remove empty containers and removed items; return True if nothing is left."""
    if isinstance(tree, dict):
        for key in [key for key, item in tree.items() if _prune(item)]:
            del tree[key]
        return not tree
    if isinstance(tree, list):
        tree[:] = [item for item in tree if not _prune(item)]
        return not tree
    return tree is None
