"""Cost of a rolling update of a full cluster, simulated: docs/scaling.md shows the figures.

A node takes jobs without a break until it is drained. Lengths of jobs are log-normal, with 5 minutes and 7 days two
standard deviations from the median, and time limits are up to three times as long. Batches, which wait for the slowest
of their nodes, are the comparison. The bound is the longest job that runs when the update begins, and the node-hours
of the restarts alone.
"""

import heapq
import math
import random
from dataclasses import dataclass, field

import pytest

from soperator_pulumi.operations.nodes.recreation import next_nodes
from tools import paths

PAGE = (paths.ROOT / "docs" / "scaling.md").read_text()

SIZE, BUDGET, RESTART_HOURS = 1000, 100, 90 / 3600
SHORTEST_HOURS, LONGEST_HOURS = 5 / 60, 7 * 24.0
MEDIAN = (math.log(SHORTEST_HOURS) + math.log(LONGEST_HOURS)) / 2
DEVIATION = (math.log(LONGEST_HOURS) - math.log(SHORTEST_HOURS)) / 4


@dataclass(frozen=True)
class Cost:
    """Cost of an update."""

    days: float
    node_hours: float
    """Time for which nodes, or parts of them, held no job because they were drained or restarted."""


@dataclass
class Slot:
    """A part of a node that runs one job after another."""

    chance: random.Random
    end: float = 0.0
    limit: float = 0.0

    def __post_init__(self) -> None:
        """Begin long before the update, at a moment of its own."""
        self.end = -5 * LONGEST_HOURS * self.chance.random() - LONGEST_HOURS
        self.pass_to(0.0)

    def pass_to(self, now: float) -> None:
        while self.end <= now:
            length = self.chance.lognormvariate(MEDIAN, DEVIATION)
            length = min(LONGEST_HOURS, max(SHORTEST_HOURS, length))
            self.limit = self.end + length * self.chance.uniform(1, 3)
            self.end += length


@dataclass
class Cluster:
    """Nodes that are full of jobs; what waits in the queue has no end."""

    slots: int
    nodes: dict[str, list[Slot]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        chance = random.Random(20261126)  # noqa: S311 no secret
        for ordinal in range(SIZE):
            slots = [Slot(random.Random(chance.random())) for _ in range(self.slots)]  # noqa: S311 the same
            self.nodes[f"gpu-{ordinal}"] = slots

    def next(self, left: set[str], draining: set[str], now: float) -> tuple[str, ...]:
        """Return the nodes that the package would drain now."""
        for name in left:
            for slot in self.nodes[name]:
                slot.pass_to(now)
        ordered = sorted(left, key=lambda name: max(slot.limit for slot in self.nodes[name]))
        return next_nodes(ordered, frozenset(), frozenset(), draining, BUDGET)

    def free_at(self, name: str) -> float:
        return max(slot.end for slot in self.nodes[name])

    def idle_hours(self, name: str, until: float) -> float:
        """Return the node-hours that a drained node loses until it is in service again."""
        return sum(until - slot.end for slot in self.nodes[name]) / self.slots


def sliding(cluster: Cluster) -> Cost:
    left, out, lost, now = {*cluster.nodes}, set[str](), 0.0, 0.0
    back: list[tuple[float, str]] = []
    while left or back:
        for name in cluster.next(left, out, now):
            left.remove(name)
            out.add(name)
            heapq.heappush(back, (cluster.free_at(name) + RESTART_HOURS, name))
        now, name = heapq.heappop(back)
        out.remove(name)
        lost += cluster.idle_hours(name, now)
    return Cost(now / 24, lost)


def batches(cluster: Cluster) -> Cost:
    left, lost, now = {*cluster.nodes}, 0.0, 0.0
    while left:
        batch = cluster.next(left, set(), now)
        left -= {*batch}
        now = max(map(cluster.free_at, batch)) + RESTART_HOURS
        lost += sum(cluster.idle_hours(name, now) for name in batch)
    return Cost(now / 24, lost)


def bound(cluster: Cluster) -> Cost:
    longest = max(map(cluster.free_at, cluster.nodes)) + RESTART_HOURS
    return Cost(max(longest, SIZE * RESTART_HOURS / BUDGET) / 24, SIZE * RESTART_HOURS)


@pytest.mark.parametrize(("slots", "jobs"), [(1, "one job on a node"), (8, "eight jobs on a node")])
def test_the_page_shows_what_an_update_costs(slots: int, jobs: str) -> None:
    costs = [how(Cluster(slots)) for how in (batches, sliding, bound)]
    columns = [f"{cost.days:.0f} days, {cost.node_hours:,.0f} node-hours" for cost in costs]

    assert f"| {' | '.join([jobs, *columns])} |" in PAGE
