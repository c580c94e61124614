"""Cost of a cluster's program beside an engine: processes that register with mocks, in turn.

Seconds are the processor's: the program waits for nobody, and other work on the machine does not change them.
"""

import resource
import statistics
import subprocess
import sys
from pathlib import Path

from tests.bench.ratios import report
from tools import paths

PROGRAMS = Path(__file__).parent / "programs"
ROUNDS = 5


def run(program: str, count: int) -> int:
    """Run a program from its start to its end, and return how many resources it has registered."""
    command = [sys.executable, "-m", "tests.bench.under_mocks", str(PROGRAMS / program), str(count)]
    done = subprocess.run(command, cwd=paths.ROOT, check=True, capture_output=True, text=True)
    return int(done.stdout)


def processor_seconds(program: str, count: int) -> float:
    """Return the time that the processor works for a program, from its start to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(program, count)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def times(*programs: tuple[str, int]) -> list[list[float]]:
    """Return the seconds of each program in all rounds, taken in turn."""
    for program in programs:
        run(*program)  # compiles, and reads files that the others find read
    taken: list[list[float]] = [[] for _ in programs]
    for _ in range(ROUNDS):
        for program, series in zip(programs, taken, strict=True):
            series.append(processor_seconds(*program))
    return taken


def test_one_node_set_against_a_bare_program() -> None:
    ours, bare, by_hand = times(("node_sets", 1), ("bare_import", 0), ("stateful_sets", 1))
    report("program of one node set", ours, by_hand, "a program of one StatefulSet", 2.0)
    report("the same", ours, bare, "`import pulumi_kubernetes` alone, which loads no kind of object", 2.0)


def test_ten_and_a_hundred_node_sets_against_one() -> None:
    one, ten, hundred, as_many = times(("node_sets", 1), ("node_sets", 10), ("node_sets", 100), ("stateful_sets", 640))
    first = [(b - a) / 9 for a, b in zip(one, ten, strict=True)]
    later = [(b - a) / 90 for a, b in zip(ten, hundred, strict=True)]
    resources = run("node_sets", 100)
    report("each of 90 more node sets", later, first, "each of the first 9 more", 1.5)
    report(f"100 node sets ({resources} resources)", hundred, as_many, "640 StatefulSets", 2.0)
    print(f"a node set more: {statistics.median(first) * 1000:.0f} ms, later {statistics.median(later) * 1000:.0f} ms")
