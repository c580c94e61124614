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
    """Print two series of seconds, taken in turn, and the ratio of their pairs: median and quartiles."""
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    print(
        f"\n{what}: median {statistics.median(ours):.3g} s; {against}: {statistics.median(theirs):.3g} s; "
        f"ratio {statistics.median(ratios):.3f}, {spread(ratios)} (goal: at most {goal}), of {len(ratios)} pairs"
    )


def spread(values: Sequence[float]) -> str:
    """Return what half of the values lie between; of fewer than eight, all of them."""
    if len(values) < 8:
        return f"all from {min(values):.3f} to {max(values):.3f}"
    low, _, high = statistics.quantiles(values, n=4)
    return f"half of them from {low:.3f} to {high:.3f}"
