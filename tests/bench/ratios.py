"""Ratios of what takes turns, and the table of all ratios of a run."""

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """Largest ratio that is good enough."""

    at_most: float
    limit: float | None = None
    """Lowest ratio that can be reached, measured in the same run. None if there is no such bound."""
    reason: str = ""
    """Work behind the limit."""


@dataclass(frozen=True)
class Row:
    """A ratio that a benchmark has measured."""

    what: str
    against: str
    now: float
    goal: Goal

    @property
    def is_met(self) -> bool:
        """Return True for a goal that is reached."""
        return self.now <= self.goal.at_most


rows: list[Row] = []
"""Ratios of this run, in the order in which they were measured."""


def seconds(work: Callable[[], object]) -> float:
    """Return how long some work takes."""
    started = time.monotonic()
    work()
    return time.monotonic() - started


def report(
    what: str, ours: Sequence[float], theirs: Sequence[float], against: str, goal: Goal, *, unit: str = "s"
) -> None:
    """Print two series of measurements, taken in turn, and add the ratio of their medians to the table.

    Args:
        what: Name of what is measured.
        ours: Its measurements.
        theirs: Measurements of the alternative, as many.
        against: Name of the alternative.
        goal: Goal of the ratio. A missed one fails nothing.
        unit: Unit of the measurements; default: seconds.
    """
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    our_median, their_median = statistics.median(ours), statistics.median(theirs)
    rows.append(Row(what, against, our_median / their_median, goal))
    print(
        f"\n{what}: median {our_median:.3g} {unit}; {against}: {their_median:.3g} {unit}; ratio {rows[-1].now:.3f} "
        f"(goal: at most {goal.at_most:g}); of {len(ratios)} pairs: median {statistics.median(ratios):.3f}, "
        f"{spread(ratios)}"
    )


def spread(values: Sequence[float]) -> str:
    """Return what half of the values lie between; of fewer than eight, all of them."""
    if len(values) < 8:
        return f"all from {min(values):.3f} to {max(values):.3f}"
    low, _, high = statistics.quantiles(values, n=4)
    return f"half of them from {low:.3f} to {high:.3f}"


def table(measured: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of the table: goal, ratio, whether the goal is met, and what was measured against what."""
    yield f"{'goal':>8} {'now':>8}  met  what, against what"
    for row in measured:
        met = "yes" if row.is_met else "no"
        yield f"{row.goal.at_most:8.3g} {row.now:8.3g}  {met:3}  {row.what}, against {row.against}"
        if row.goal.limit is not None:
            yield f"{'':23}limit {row.goal.limit:.3g}: {row.goal.reason}"
