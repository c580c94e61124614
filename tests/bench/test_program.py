"""Cost of a cluster's program apart from an engine: processes that register with mocks, in turn.

Seconds are the processor's: the program waits for no one, and other work on the machine does not change them.
"""

import resource
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.bench.ratios import Goal, report
from tests.bench.sizes import size
from tools import paths

PROGRAMS = Path(__file__).parent / "programs"
ROUNDS, WARM_UPS = size(5, 1), size(1, 0)
FEW, MANY = size(10, 2), size(100, 3)
"""Counts of node sets that are compared with one."""


def run(program: str, count: int) -> int:
    """Run a program from its start to its end, and return how many resources it has registered."""
    command = [sys.executable, "-m", "tests.bench.under_mocks", str(PROGRAMS / program), str(count)]
    done = subprocess.run(command, cwd=paths.ROOT, check=True, capture_output=True, text=True)
    return int(done.stdout)


class Measured(NamedTuple):
    """A run of a program."""

    seconds: float
    """Of the processor, from the program's start to its end."""
    resources: int


def measured(program: str, count: int) -> Measured:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    resources = run(program, count)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Measured(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, resources)


class Round(NamedTuple):
    """Runs of all programs in turn."""

    bare: Measured
    stateful_set: Measured
    one: Measured
    few: Measured
    many: Measured
    stateful_sets: Measured
    """As many as the resources of many node sets."""


def a_round() -> Round:
    bare, stateful_set = measured("bare_import", 0), measured("stateful_sets", 1)
    one, few, many = (measured("node_sets", count) for count in (1, FEW, MANY))
    return Round(bare, stateful_set, one, few, many, measured("stateful_sets", many.resources))


@pytest.fixture(scope="module")
def rounds() -> list[Round]:
    """All rounds but the first, which compiles, and reads files that later ones find read."""
    return [a_round() for _ in range(WARM_UPS + ROUNDS)][WARM_UPS:]


def test_one_node_set_against_a_bare_program(rounds: list[Round]) -> None:
    ours, by_hand = [item.one.seconds for item in rounds], [item.stateful_set.seconds for item in rounds]
    bare = [item.bare.seconds for item in rounds]
    what = "program of one node set"
    report(what, ours, by_hand, "a program of one StatefulSet", Goal(2.0))
    limit = statistics.median(by_hand) / statistics.median(bare)
    reason = "a program of one StatefulSet: the SDK loads all kinds of apps/v1, core/v1 and meta/v1 for it"
    goal = Goal(2.0, limit, reason)
    report(what, ours, bare, "`import pulumi_kubernetes` alone, which loads no kind of object", goal)


def test_many_node_sets_against_few_and_few_against_one(rounds: list[Round]) -> None:
    first = [(item.few.seconds - item.one.seconds) / (FEW - 1) for item in rounds]
    later = [(item.many.seconds - item.few.seconds) / (MANY - FEW) for item in rounds]
    report(f"one of {MANY - FEW} later node sets", later, first, f"one of the {FEW - 1} after the first", Goal(1.5))
    many, by_hand = [item.many.seconds for item in rounds], [item.stateful_sets.seconds for item in rounds]
    against = f"a program of as many StatefulSets, {rounds[0].many.resources}"
    report(f"program of {MANY} node sets", many, by_hand, against, Goal(2.0))
