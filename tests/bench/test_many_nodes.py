"""Cost of changes to 4,096 nodes, against those to a quarter of them: the time of the package grows with the nodes.

The model of Kubernetes and slurmctld takes most of a run. Its time doesn't count.
"""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from soperator_pulumi.operations.nodes.recreation import Recreation
from tests.bench.ratios import Goal, report
from tests.bench.sizes import size
from tests.fakes.kubernetes import Kubernetes
from tests.fakes.slurm_programs import Programs
from tests.unit.faults.world import World
from tests.unit.lifecycle.model import a_model
from tests.unit.lifecycle.test_growth import VERBS, acts
from tests.unit.operations.nodes.test_recreation import OURS, a_job, a_node, a_renewal

MANY = size(4096, 64)
TIMES = 4
FEW = MANY // TIMES
ROUNDS = size(3, 1)
GOAL = Goal(1.4)
"""5.6 times the time for four times the nodes. No function is called more than four times as often, but every one takes
longer when its tables don't fit into the processor's caches. Two joined sets for every node took 6.7 times as long."""


@dataclass
class Stopwatch:
    """Seconds of the processor outside of the model."""

    inside: float = 0.0
    _depth: int = field(default=0, init=False)

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        """Take out the time of all calls of the model."""
        calls = [(Kubernetes, verb) for verb in VERBS] + [(Programs, "run"), (World, "advance"), (World, "settle")]
        for owner, name in calls:
            patch.setattr(owner, name, self._paused(getattr(owner, name)))

    def _paused(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def paused(*arguments: Any, **named: Any) -> Any:
            self._depth += 1
            began = time.process_time()
            try:
                return call(*arguments, **named)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.inside += time.process_time() - began

        return paused

    def seconds(self, act: Callable[[], object]) -> float:
        """Return how long an act takes of a processor, without the garbage collector, which goes through the model."""
        gc.collect()
        gc.disable()
        self.inside, began = 0.0, time.process_time()
        try:
            act()
            return time.process_time() - began - self.inside
        finally:
            gc.enable()


@contextmanager
def a_stopwatch() -> Iterator[Stopwatch]:
    with pytest.MonkeyPatch.context() as patch:
        stopwatch = Stopwatch()
        stopwatch.watch(patch)
        yield stopwatch


@pytest.mark.timeout(1800)
def test_changes_to_many_nodes_against_a_quarter_of_them() -> None:
    found: dict[str, list[float]] = {}
    with a_stopwatch() as stopwatch:
        for nodes in (FEW, MANY):
            with a_model() as model:
                for name, act in acts(model, nodes):
                    found.setdefault(name, []).append(stopwatch.seconds(act))
    for name, (few, many) in found.items():
        report(f"{name} of {MANY} nodes", [many], [few * TIMES], f"{FEW} nodes, times {TIMES}", GOAL)


def half_drained(nodes: int) -> Recreation:
    """Return a full node set, of which every second node is drained for its recreation."""
    names = [f"gpu-{ordinal}" for ordinal in range(nodes)]
    drained = [a_node(name, "IDLE+DRAIN", OURS) for name in names[::2]]
    jobs = [a_job(number, name, float(number)) for number, name in enumerate(names)]
    draining = frozenset(names[::2])
    return a_renewal(drained, jobs=jobs, size=nodes, max_unavailable=nodes * 3 // 4, draining=draining)


def test_the_choice_of_the_next_of_many_nodes_against_a_quarter_of_them() -> None:
    found: dict[int, list[float]] = {}
    with a_stopwatch() as stopwatch:
        for _ in range(ROUNDS):
            for nodes in (FEW, MANY):
                found.setdefault(nodes, []).append(stopwatch.seconds(half_drained(nodes).next))
    quarter = [seconds * TIMES for seconds in found[FEW]]
    report(f"choice of the next of {MANY} nodes", found[MANY], quarter, f"{FEW} nodes, times {TIMES}", GOAL)
