"""Calls as a node set grows: to the API server and to Slurm, of everything that a user does with it.

The bodies of answers grow with the nodes, as do the deletions of pods in a rolling update. Nothing else does. A list of
hosts that was read once is not read again for every node, either.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from soperator_pulumi.cli import status
from soperator_pulumi.operations.nodes import live_node_set
from soperator_pulumi.slurm.hostlist import expand
from soperator_pulumi.slurm.models import Job, Node, Snapshot
from soperator_pulumi.slurm.transport import Answer
from tests.fakes.kubernetes import Kubernetes
from tests.fakes.slurm_programs import Programs
from tests.unit.lifecycle.model import Model, a_model

FEW, MANY = 64, 1024
TIMES = MANY // FEW
VERBS = ("get", "find", "create", "apply", "merge", "delete")


class Calls:
    """Calls since the last `take`, and what came back."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[str] = Counter()
        self.objects = 0
        self.characters = 0
        for verb in VERBS:
            patch.setattr(Kubernetes, verb, self._counted(verb, getattr(Kubernetes, verb)))
        run = Programs.run

        def run_counted(programs: Programs, command: list[str]) -> Answer:
            answer = run(programs, command)
            self.counts[" ".join(command[:2])] += 1
            self.characters += len(answer.stdout)
            return answer

        patch.setattr(Programs, "run", run_counted)

        def expand_counted(expression: str) -> list[str]:
            self.counts["expand"] += 1
            return expand(expression)

        patch.setattr(live_node_set, "expand", expand_counted)

    def _counted(self, verb: str, usual: Callable[..., Any]) -> Callable[..., Any]:
        def call(kubernetes: Kubernetes, *arguments: Any, **named: Any) -> Any:
            found = usual(kubernetes, *arguments, **named)
            self.counts[verb] += 1
            self.objects += len(found) if isinstance(found, list) else 1
            return found

        return call

    def of(self, act: Callable[[], object]) -> tuple[Counter[str], int, int]:
        """Return the calls that an act makes, and the objects and characters that come back."""
        self.counts, self.objects, self.characters = Counter(), 0, 0
        act()
        return self.counts, self.objects, self.characters


def acts(model: Model, size: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what is done with a node set, in its order."""
    yield "up", lambda: model.up(size)
    yield "up without a change", model.again
    yield "preview of a scale-in", lambda: model.preview(size // 2)
    yield "rolling update", lambda: model.up(size, template="b", max_unavailable=size // 4)
    yield "scale-in", lambda: model.up(size // 2, template="b")


@pytest.fixture(scope="module")
def calls() -> Iterator[dict[str, dict[int, tuple[Counter[str], int, int]]]]:
    """Calls of every act, by the number of nodes."""
    found: dict[str, dict[int, tuple[Counter[str], int, int]]] = {}
    with pytest.MonkeyPatch.context() as patch:
        counter = Calls(patch)
        for size in (FEW, MANY):
            with a_model() as model:
                for name, act in acts(model, size):
                    found.setdefault(name, {})[size] = counter.of(act)
        yield found


def test_no_call_but_the_deletion_of_a_pod_is_made_for_every_node(
    calls: dict[str, dict[int, tuple[Counter[str], int, int]]],
) -> None:
    for act, by_size in calls.items():
        few, many = by_size[FEW][0], by_size[MANY][0]
        assert many.pop("delete", 0) == few.pop("delete", 0) * TIMES, act
        assert many == few, act


def test_answers_grow_no_faster_than_the_nodes(calls: dict[str, dict[int, tuple[Counter[str], int, int]]]) -> None:
    for act, by_size in calls.items():
        (_, few_objects, few_characters), (_, many_objects, many_characters) = by_size[FEW], by_size[MANY]
        assert many_objects <= few_objects * TIMES, act
        # Names become longer.
        assert many_characters <= few_characters * TIMES * 1.1, act


class Passes(tuple[Job, ...]):
    """Jobs that count how often they are gone through."""

    __slots__ = ()

    times = 0

    def __iter__(self) -> Iterator[Job]:
        Passes.times += 1
        return super().__iter__()


def passes(act: Callable[[str, Snapshot], object], size: int) -> int:
    """Return how often a status of so many nodes, of which one in two is drained, goes through the jobs."""
    names = [f"gpu-{ordinal}" for ordinal in range(size)]
    nodes = {
        name: Node(name, frozenset({"IDLE", "DRAIN"} if ordinal % 2 else {"IDLE"}), frozenset(), "a fan")
        for ordinal, name in enumerate(names)
    }
    Passes.times = 0
    act("hpc", Snapshot(nodes, Passes([]), (), 0.0))
    return Passes.times


@pytest.mark.parametrize("act", [status.record, lambda name, found: [*status.text(name, found)]])
def test_a_status_goes_through_the_jobs_as_often_for_many_nodes_as_for_few(
    act: Callable[[str, Snapshot], object],
) -> None:
    assert passes(act, MANY) == passes(act, FEW)
