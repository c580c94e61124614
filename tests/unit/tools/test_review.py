"""The page of a preview, as a reviewer reads it."""

from dataclasses import replace
from itertools import permutations

import pytest

from soperator_pulumi.cli.review import page
from tools import chosen_cluster, review
from tools.console import UserError
from tools.engine import DeployError, Failure, ResourceChange, StackChanges, StepOp

URN = "urn:pulumi:prod::soperator::soperator-pulumi:index:SlurmCluster$kubernetes:apps/v1:StatefulSet::hpc-cpu"
SHRUNK = ResourceChange(
    urn=URN,
    type="kubernetes:apps/v1:StatefulSet",
    name="hpc-cpu",
    operation=StepOp.UPDATE,
    paths=("spec.replicas",),
    messages=("hpc/cpu: 4 -> 2 nodes. Leaving: cpu-[2-3]", "  cpu-2  job 4711 (alice)"),
)
SAME = ResourceChange(urn=f"{URN}-2", type="kubernetes:core/v1:Service", name="nodes", operation=StepOp.SAME)
CHANGES = StackChanges(changes=(SHRUNK, SAME), messages=("a note of the program",))


class Previewer:
    """A deployer whose preview ends in one way."""

    def __init__(self, ends: StackChanges | DeployError) -> None:
        self._ends = ends

    def preview(self) -> StackChanges:
        if isinstance(self._ends, DeployError):
            raise self._ends
        return self._ends


def printed(ends: StackChanges | DeployError, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["review", "--stack", "prod"])
    monkeypatch.setattr(chosen_cluster, "choose", lambda: None)
    monkeypatch.setattr(review, "deployer_of_a_cluster", lambda _stack, _chosen: (Previewer(ends), "an engine"))
    review.main()


def test_the_page_has_the_changes_and_the_nodes_and_jobs_that_they_touch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed(CHANGES, monkeypatch)
    assert capsys.readouterr().out == (
        "## Preview of `prod`: 1 to update\n\n"
        "| step | resource | properties |\n|---|---|---|\n| update | `StatefulSet` `hpc-cpu` | `spec.replicas` |\n\n"
        "````text\nhpc/cpu: 4 -> 2 nodes. Leaving: cpu-[2-3]\n  cpu-2  job 4711 (alice)\na note of the program\n````\n"
    )


def test_the_page_is_the_same_in_whatever_order_an_engine_makes_the_changes() -> None:
    made = replace(SHRUNK, name="hpc-gpu", operation=StepOp.CREATE, messages=("hpc/gpu: 0 -> 4 nodes.",))
    pages = {page("prod", StackChanges(changes=permutation), []) for permutation in permutations((SHRUNK, made, SAME))}
    assert len(pages) == 1
    assert "`prod`: 1 to create, 1 to update\n" in pages.pop()


def test_a_refused_change_is_on_the_page_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failures = [
        Failure(urn=URN, message="[mandatory] scale-down: 2 nodes at once"),
        Failure(urn="", message="and more"),
    ]
    with pytest.raises(UserError, match="Stack prod is refused"):
        printed(DeployError("preview failed", failures=failures, result=CHANGES), monkeypatch)
    out = capsys.readouterr().out
    assert "## Preview of `prod`: refused" in out
    assert "````text\nhpc-cpu: [mandatory] scale-down: 2 nodes at once\n````" in out
    assert "````text\nand more\n````" in out
    assert "job 4711" in out


def test_an_unchanged_stack_says_so() -> None:
    assert page("dev", StackChanges(changes=(SAME,)), []) == "## Preview of `dev`: no change"


def test_the_name_of_a_job_ends_no_block_and_of_a_resource_no_cell() -> None:
    jobs = ("cpu-2  job 4711 (alice, ````)", "````", "<img src=x> @all", "a\x1b[31mb")
    hostile = replace(SHRUNK, name="a | `b` | <b> @all", messages=jobs)
    shown = page("dev", StackChanges(changes=(hostile,)), [])
    assert "| `StatefulSet` `` a \\| `b` \\| <b> @all `` |" in shown
    assert shown.endswith("`````text\ncpu-2  job 4711 (alice, ````)\n````\n<img src=x> @all\na?[31mb\n`````")
