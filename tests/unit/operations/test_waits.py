"""Every wait of an operation ends, and shows until when."""

import ast
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import soperator_pulumi
from soperator_pulumi.operations.progress import saying, until
from tests.defined_tests import defined_tests
from tests.fakes.clock import FakeClock

PACKAGE = Path(soperator_pulumi.__file__).parent
ENDS_BY_ITSELF = {
    "DrainRun.looks": "test_whatever_jobs_do_there_is_an_end",
    "JobFollower.end": "test_a_pod_that_starts_for_ever_is_given_up_whatever_reasons_it_has_for_that",
    "Rollout.wait": "test_a_pod_that_never_stops_is_given_up",
}
"""Waits whose end changes with what they see, each with the test of that."""


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield all functions below a node by their qualified names."""
    for item in ast.iter_child_nodes(node):
        if isinstance(item, ast.FunctionDef):
            yield f"{prefix}{item.name}", item
        yield from functions(item, f"{prefix}{item.name}." if isinstance(item, ast.ClassDef) else prefix)


def waiting() -> Iterator[tuple[str, ast.FunctionDef]]:
    for folder in ("lifecycle", "operations"):
        for file in sorted((PACKAGE / folder).rglob("*.py")):
            yield from functions(ast.parse(file.read_text()))


def loops(function: ast.FunctionDef) -> Iterator[tuple[ast.For, ast.Call]]:
    """Yield the loops over `until` in a function."""
    for node in ast.walk(function):
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and called(node.iter) == "until":
            yield node, node.iter


def called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def shows(loop: ast.For, call: ast.Call) -> bool:
    """Return True if the time left is shown by `until`, or in a text of the loop."""
    expressions = (node.value for node in ast.walk(loop) if isinstance(node, ast.FormattedValue))
    names = (getattr(node, "id", "") for expression in expressions for node in ast.walk(expression))
    return any(keyword.arg == "say" for keyword in call.keywords) or ast.unparse(loop.target) in names


def test_every_wait_has_an_end() -> None:
    found = [(name, ast.unparse(call.args[0])) for name, function in waiting() for _, call in loops(function)]
    assert len(found) > 20
    assert not [row for row in found if "inf" in row[1]]


def test_every_wait_shows_until_when_it_lasts() -> None:
    silent = [name for name, function in waiting() for loop, call in loops(function) if not shows(loop, call)]
    assert silent == []


def test_no_other_function_waits_but_those_whose_end_is_tested() -> None:
    sleeps = {
        name
        for name, function in waiting()
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and called(call) == "sleep"
    }
    # Programs of probes, which run in pods of limited life; the waits themselves.
    others = {"is_open", "main", "until", "Clock.sleep", "MachineClock.sleep"}
    assert sleeps - others == ENDS_BY_ITSELF.keys()


@pytest.mark.parametrize("test", ENDS_BY_ITSELF.values())
def test_a_test_shows_that_such_a_wait_ends(test: str) -> None:
    assert test in defined_tests()


def test_a_wait_says_the_time_left_every_ten_seconds() -> None:
    clock, said = FakeClock(), list[str]()
    looks = [*until(25, clock, say=saying(said.append, "waits for slurmctld"))]
    assert (looks[0], looks[-1], clock.time) == (25, 0, 25)
    assert said == ["waits for slurmctld, 15 s left", "waits for slurmctld, 5 s left"]


def test_a_short_wait_says_nothing() -> None:
    clock, said = FakeClock(), list[str]()
    for _ in until(25, clock, say=partial(said.append)):
        if clock.time > 8:
            break
    assert said == []


@pytest.mark.parametrize(("look_seconds", "pause_seconds"), [(0.1, 1.0), (3.0, 3.0), (60.0, 5.0)])
def test_a_pause_is_as_long_as_the_look_before_it_up_to_five_seconds(look_seconds: float, pause_seconds: float) -> None:
    clock, pauses, ended_at = FakeClock(), list[float](), 0.0
    for _ in until(300, clock, first=1.0):
        pauses.append(clock.time - ended_at)
        clock.sleep(look_seconds)
        ended_at = clock.time
    assert pauses[1:-1] == pytest.approx([pause_seconds] * len(pauses[1:-1]))
