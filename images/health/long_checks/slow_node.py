"""Bisection of a failed group, which finds the slow nodes."""

from collections.abc import Callable, Sequence
from itertools import combinations

Passes = Callable[[Sequence[tuple[str, ...]]], list[bool | None]]
"""Function that measures groups in parallel: True for one that passes, None without a result."""

_MOST_PAIRS = 6
"""Pairs to try for a first good link if no group has passed."""


def slow_nodes(group: Sequence[str], passes: Passes, spare: Sequence[str] = ()) -> list[str]:
    """Return the slow nodes of a group; none if no single node is slow.

    Halves are measured until the failing ones have two or three nodes, which are then paired with a node that has
    passed. Halves that all pass are slow only together: the network between them, which is no node's.

    Args:
        group: Nodes that failed together.
        passes: Measures groups.
        spare: Other nodes that have passed.
    """
    good = [*spare]
    small, large = _by_size([tuple(group)])
    while large:
        halves = [half for group in large for half in (group[: len(group) // 2], group[len(group) // 2 :])]
        failed = []
        for half, passed in zip(halves, passes(halves), strict=True):
            if passed:
                good += half
            elif passed is False:
                failed.append(half)
        found, large = _by_size(failed)
        small += found
    suspects = [node for group in small for node in group]
    if not good:
        tried = [pair for pair in combinations(suspects, 2) if pair not in small][:_MOST_PAIRS]
        good = [*next((pair for pair in tried if passes([pair]) == [True]), ())]
    if not good:
        return []
    # One after the other: they share the partner.
    return [node for node in suspects if node not in good and passes([(node, good[0])]) == [False]]


def _by_size(groups: Sequence[tuple[str, ...]]) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Return groups of at most three nodes, and larger ones, whose halves have at least two nodes."""
    return [group for group in groups if len(group) <= 3], [group for group in groups if len(group) > 3]
