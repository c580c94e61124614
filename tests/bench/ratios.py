"""Times of runs that take turns, and how they compare."""

import statistics
import time
from collections.abc import Callable, Sequence


def seconds(work: Callable[[], object]) -> float:
    """Return how long some work takes."""
    started = time.monotonic()
    work()
    return time.monotonic() - started


def report(what: str, ours: Sequence[float], theirs: Sequence[float], against: str, goal: float) -> None:
    """Print two series of seconds, taken in turn: their medians, and the ratio of these and of each pair."""
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    our_median, their_median = statistics.median(ours), statistics.median(theirs)
    print(
        f"\n{what}: median {our_median:.3g} s; {against}: {their_median:.3g} s; ratio {our_median / their_median:.3f} "
        f"(goal: at most {goal}); of {len(ratios)} pairs: median {statistics.median(ratios):.3f}, {spread(ratios)}"
    )


def spread(values: Sequence[float]) -> str:
    """Return what half of the values lie between; of fewer than eight, all of them."""
    if len(values) < 8:
        return f"all from {min(values):.3f} to {max(values):.3f}"
    low, _, high = statistics.quantiles(values, n=4)
    return f"half of them from {low:.3f} to {high:.3f}"
