"""Selected tests run in the order of their tiers, until one of them fails."""

import re
import sys
from pathlib import Path

import pytest

from tools import paths
from tools.affected.pytest_runs import PytestRun, Step, carry_out, runs_of, steps_of
from tools.affected.selection import Selection

SELECTION = Selection(
    selected={"unit": ["u1", "u2"], "rendered": ["r"], "engine": ["e"], "cluster": ["c"]},
    left_out={},
    nearest=["u2"],
    why_all=(),
)
MAKEFILE = (paths.ROOT / "Makefile").read_text()


def modules(steps: list[Step]) -> list[str]:
    return [step.command[2] for step in steps]


def ends_with(code: int, mark: Path) -> Step:
    program = f"import pathlib, sys; pathlib.Path({str(mark)!r}).touch(); sys.exit({code})"
    return Step(mark.name, [sys.executable, "-c", program])


def test_the_nearest_tests_run_first_and_once() -> None:
    assert [(run.name, *run.files) for run in runs_of(SELECTION)] == [
        ("nearest", "u2"),
        ("unit", "u1"),
        ("rendered", "r"),
        ("engine", "e"),
        ("cluster", "c"),
    ]


def test_tiers_that_are_not_asked_for_do_not_run() -> None:
    assert [run.name for run in runs_of(SELECTION, ["unit", "engine"])] == ["nearest", "unit", "engine"]


def test_a_tier_without_a_selected_test_does_not_run() -> None:
    selection = Selection({**SELECTION.selected, "rendered": [], "engine": []}, {}, (), ())
    assert [run.name for run in runs_of(selection)] == ["unit", "cluster"]


@pytest.mark.parametrize(("tier", "folder"), [("unit", "tests/unit"), ("cluster", "tests/engine")])
def test_a_run_has_the_options_of_make_check_and_make_test(tier: str, folder: str) -> None:
    recipes = MAKEFILE + (paths.ROOT / "tools" / "check.py").read_text()
    (options,) = re.findall(rf"-m pytest (-n .*?) {folder}", recipes)
    files = ["a", "b", "c", "d"]
    assert PytestRun(tier, tier, files).command[3:] == [*options.split(), *files]


def test_a_few_quick_files_run_in_one_process() -> None:
    assert PytestRun("nearest", "unit", ["a", "b"]).command[3:] == ["a", "b"]
    assert PytestRun("cluster", "cluster", ["a", "b"]).command[3] == "-n"


def test_what_tests_on_kubernetes_need_is_built_before_the_first_of_them_alone() -> None:
    builds = ["tools.build", "tests.cluster.fetch"]
    assert modules(steps_of(runs_of(SELECTION))) == ["pytest"] * 3 + builds + ["pytest"] * 2
    assert modules(steps_of(runs_of(SELECTION, ["cluster"]))) == [*builds, "pytest"]
    assert modules(steps_of(runs_of(SELECTION, ["rendered"]))) == ["pytest"]
    assert all(f"-m {module}\n" in MAKEFILE for module in builds)


@pytest.mark.parametrize("code", [0, 5])
def test_all_steps_run_while_they_succeed_or_have_no_test_that_their_marks_let_run(tmp_path: Path, code: int) -> None:
    assert carry_out([ends_with(code, tmp_path / "a"), ends_with(0, tmp_path / "b")]) == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a", "b"]


def test_the_first_step_that_fails_is_the_last(tmp_path: Path) -> None:
    assert carry_out([ends_with(3, tmp_path / "a"), ends_with(0, tmp_path / "b")]) == 3
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_a_run_names_its_files_and_their_number() -> None:
    (step,) = steps_of([PytestRun("rendered", "rendered", ["a", "b"])])
    assert step.title == "rendered: 2 files"
    assert step.command[-2:] == ["a", "b"]
