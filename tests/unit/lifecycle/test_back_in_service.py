"""A run that ends well leaves no node that is wanted drained by us: what comes later puts itself back."""

from collections.abc import Iterator
from typing import Any

import pytest

from soperator_pulumi.errors import NotReadyError
from tests.fakes.slurmctld import Job
from tests.fakes.workers import Pod
from tests.unit.lifecycle.model import Model, a_model

HOUR = 3600.0


@pytest.fixture
def model() -> Iterator[Model]:
    with a_model() as model:
        model.up(3)
        yield model


def drained_an_hour_later(model: Model) -> dict[str, str]:
    model.world.advance(HOUR)
    return model.drained()


def keep(model: Model, name: str) -> None:
    """Have the record of a node stay in Slurm when its pod goes."""
    model.world.slurm.reservations["maint"] = frozenset({name})


@pytest.mark.parametrize("between", [0, 1])
@pytest.mark.parametrize("waits", [True, False])
def test_a_node_whose_record_was_kept_takes_jobs_when_it_is_wanted_again(
    model: Model, between: int, *, waits: bool
) -> None:
    keep(model, "gpu-2")
    model.up(between)
    assert "gpu-2" in model.records

    model.up(3, wait_until_ready=waits)

    assert drained_an_hour_later(model) == {}
    assert len(model.pods) == 3


def test_a_job_that_has_waited_for_such_a_node_runs(model: Model) -> None:
    keep(model, "gpu-2")
    model.up(1)
    model.up(3, wait_until_ready=False)
    job = model.world.slurm.submit(Job(0, required=frozenset({"gpu-2"})))

    model.world.advance(HOUR)

    assert job.nodes == ("gpu-2",)


@pytest.mark.parametrize("changes", [{"wait_until_ready": False}, {"max_unready": 3}])
def test_all_nodes_take_jobs_after_a_replacement_that_waits_for_none(model: Model, changes: dict[str, Any]) -> None:
    model.up(3, identity="2", **changes)

    assert drained_an_hour_later(model) == {}


def test_nodes_that_have_joined_take_jobs_though_another_one_never_does(model: Model) -> None:
    """The StatefulSet is replaced, and one of its new pods finds no machine."""

    usual = model.world.kubernetes.on_pod

    def the_last_finds_no_machine(pod: Pod) -> None:
        usual(pod)
        if pod.name == "gpu-2" and not pod.ran:
            pod.schedulable = model.world.kubernetes.new_pods_fit = False

    model.world.kubernetes.on_pod = the_last_finds_no_machine
    with pytest.raises(NotReadyError, match="1 of 3 nodes have not joined"):
        model.up(3, identity="2")

    assert drained_an_hour_later(model).keys() == {"gpu-2"}
    model.world.kubernetes.new_pods_fit = True
    assert drained_an_hour_later(model) == {}
