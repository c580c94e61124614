"""Nodes and jobs of a cluster that leaves the program, in the preview of that."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from soperator_pulumi.kube.verbs import Kube
from soperator_pulumi.lifecycle.provider import LiveProvider
from tests.unit.faults.stage import STAGE
from tests.unit.lifecycle.model import Model, a_model
from tools import chosen_cluster, review
from tools.chosen_cluster import ChosenCluster
from tools.engine import ResourceChange, ResourceState, StackChanges, StepOp
from tools.leaving_clusters import with_their_jobs

CHOSEN = ChosenCluster(Path("kubeconfig"), "prod", None, Path("state"))
TYPE = "pulumi-python:dynamic/soperator:DrainGate"
GATE = ResourceChange(urn="urn::gate", type=TYPE, name="hpc-drain-gate", operation=StepOp.DELETE)
CHANGES = StackChanges(changes=(GATE,), messages=("a note of the program",))


class Deployed:
    """A deployer of a stack with one drain gate."""

    def __init__(self, outputs: dict[str, Any]) -> None:
        self._outputs = outputs

    def preview(self) -> StackChanges:
        return CHANGES

    def state(self) -> list[ResourceState]:
        return [
            ResourceState(urn=urn, type=TYPE, name="g", id="g", protect=False, inputs={}, outputs=self._outputs)
            for urn in ("urn::another", "urn::gate")
        ]


@pytest.fixture
def model() -> Iterator[Model]:
    """Three workers, with a job of a hundred seconds on one."""
    with a_model() as model:
        model.up(3)
        model.submit(seconds=100, limit_seconds=7200)
        model.begin()
        yield model


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, object]]:
    """The accesses by which clusters are asked."""
    noted: list[tuple[object, object]] = []

    def kube(provider: LiveProvider, props: dict[str, Any]) -> Kube:
        noted.append((props.get("kubeconfig"), props.get("context")))
        return STAGE.kube(provider, props)

    monkeypatch.setattr(LiveProvider, "kube", kube)
    return noted


def messages(model: Model, found: StackChanges = CHANGES, **outputs: Any) -> tuple[str, ...]:
    deployed: Any = Deployed({**model.engine.state["DrainGate"], **outputs})
    return with_their_jobs(found, deployed, CHOSEN).messages


def test_a_cluster_that_is_deleted_shows_its_nodes_and_jobs_and_is_left_alone(model: Model) -> None:
    note, first, *lines = messages(model)
    assert note == "a note of the program"
    assert first == "hpc/gpu: 3 -> 0 nodes. Leaving: gpu-[0-2]"
    assert any("job 1 (alice, job1), ends by" in line for line in lines)
    assert lines[-1] == "Drains now, waits up to 2 h, then abort: all nodes are undrained."
    assert model.drained() == {}


def test_they_are_printed_and_on_the_page_for_a_reviewer(
    model: Model, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed = Deployed(model.engine.state["DrainGate"])
    monkeypatch.setattr("sys.argv", ["review", "--stack", "prod"])
    monkeypatch.setattr(chosen_cluster, "choose", lambda: CHOSEN)
    monkeypatch.setattr(review, "deployer_of_a_cluster", lambda _stack, _chosen: (deployed, "an engine"))
    review.main()
    out, err = capsys.readouterr()
    assert "job 1 (alice, job1), ends by" in out
    assert "job 1 (alice, job1), ends by" in err


@pytest.mark.parametrize("operation", [step_op for step_op in StepOp if step_op is not StepOp.DELETE])
def test_a_cluster_that_stays_is_not_asked(model: Model, asked: list[object], operation: StepOp) -> None:
    found = StackChanges(changes=(replace(GATE, operation=operation),))
    assert messages(model, found) == ()
    assert asked == []


def test_a_node_set_that_leaves_is_shown_by_its_removal_alone(model: Model, asked: list[object]) -> None:
    assert messages(model, node_set="gpu") == CHANGES.messages
    assert asked == []


@pytest.mark.parametrize(
    ("recorded", "access"),
    [
        ({}, ("kubeconfig", "prod")),
        ({"context": "other"}, ("kubeconfig", "other")),
        ({"kubeconfig": "[secret]", "context": "in that one"}, ("kubeconfig", "prod")),
        ({"kubeconfig": "own", "context": "other"}, ("own", "other")),
    ],
    ids=["ambient", "a context", "a secret kubeconfig", "a kubeconfig"],
)
def test_it_is_asked_by_the_access_that_is_recorded_or_else_chosen(
    model: Model, asked: list[object], recorded: dict[str, Any], access: tuple[str, str]
) -> None:
    assert "job 1" in "".join(messages(model, **recorded))
    assert asked == [access]


def test_another_cluster_under_its_name_is_said_and_not_looked_at(model: Model) -> None:
    _, line = messages(model, namespace_uid="another")
    assert line.startswith("hpc: cannot read its nodes and jobs: The namespace hpc is not the one")
