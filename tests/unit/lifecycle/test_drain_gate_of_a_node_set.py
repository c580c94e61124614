"""The resource that is recorded as soon as a node set's pods can be, and whose deletion frees them of jobs."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pulumi.runtime.rpc import UNKNOWN

from soperator_pulumi.errors import DrainError, NotReadyError
from soperator_pulumi.lifecycle.drain_gate import DrainGateProvider
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from soperator_pulumi.spec.drain import DrainSpec
from tests.fakes.workers import OWNER
from tests.unit.lifecycle.model import Model, a_model

NAME = "DrainGate gpu"


@pytest.fixture
def model() -> Iterator[Model]:
    """Three idle workers; jobs get half a minute."""
    with a_model() as model:
        model.up(3, policy=DrainSpec.model_validate({"timeout": "30s"}))
        yield model


def recorded(model: Model) -> dict[str, Any]:
    model.commands.clear()
    return dict(model.engine.state[NAME])


def test_it_asks_slurm_for_nothing_until_it_is_deleted(model: Model) -> None:
    state = recorded(model)
    assert DrainGateProvider().create(state).outs == state
    assert DrainGateProvider().update("", state, state).outs == state
    assert DrainGateProvider().diff("", state, {**state, "kubeconfig": "other", "context": "new"}).changes
    assert model.commands == []


@pytest.mark.parametrize(
    "change", [{"policies": {"gpu": {"timeout": "5m"}}}, {"selector": {"a": "b"}}, {"owner": UNKNOWN}]
)
def test_what_a_deletion_needs_is_recorded_again_when_it_changes(model: Model, change: dict[str, Any]) -> None:
    state = recorded(model)
    result = DrainGateProvider().diff("", state, {**state, **change})
    assert result.changes
    assert not result.replaces


def test_a_gate_that_is_replaced_with_its_stateful_set_shows_the_jobs_that_this_drains(model: Model) -> None:
    model.submit(seconds=1000, limit_seconds=7200)
    model.begin()
    state = recorded(model)
    found = DrainGateProvider().diff("gpu", state, {**state, "guards": UNKNOWN})
    assert (found.replaces, found.delete_before_replace) == (["guards"], True)
    assert model.world.reported[0] == "hpc/gpu: 3 nodes to be recreated: gpu-[0-2]"
    assert any("job 1 (alice, job1), ends by" in line for line in model.world.reported)
    assert model.drained() == {}


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda model: model.world.slurm.crash(1000), "hpc: gpu-[0-2] will be drained; their jobs are not known: "),
        (
            lambda model: setattr(model.world.kubernetes, "namespace_uid", "another"),
            "hpc: cannot read its nodes and jobs: ",
        ),
    ],
    ids=["slurmctld is down", "another namespace"],
)
def test_what_a_deletion_would_drain_is_said_to_be_unknown_where_it_is(
    model: Model, spoil: Callable[[Model], None], words: str
) -> None:
    state = recorded(model)
    spoil(model)
    (line,) = DrainGateProvider().preview_delete(state)
    assert line.startswith(words)


def test_deleting_drains_all_nodes_for_a_removal(model: Model) -> None:
    DrainGateProvider().delete("", recorded(model))
    markers = [Marker.read(reason, OWNER) for reason in model.drained().values()]
    assert [marker.operation for marker in markers if marker] == [Operation.REMOVAL] * 3


def test_deleting_fails_and_puts_all_back_when_a_job_does_not_end_in_time(model: Model) -> None:
    job = model.submit(seconds=1000)
    with pytest.raises(DrainError):
        DrainGateProvider().delete("", recorded(model))
    assert model.drained() == {}
    assert job.state == "RUNNING"


def test_it_is_there_when_nodes_never_join_so_that_a_destroy_waits_for_the_jobs_of_the_others(model: Model) -> None:
    model.engine.destroy()
    model.world.advance(10)
    model.world.kubernetes.on_pod = lambda pod: setattr(pod, "schedulable", pod.name != "gpu-2")
    model.world.kubernetes.new_pods_fit = False
    with pytest.raises(NotReadyError):
        model.up(3, policy=DrainSpec.model_validate({"timeout": "30s"}))
    job = model.submit(seconds=1000)
    with pytest.raises(DrainError):
        model.engine.destroy()
    assert "gpu" in model.world.kubernetes.sets
    assert job.state == "RUNNING"
