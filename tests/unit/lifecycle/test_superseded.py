"""A resource that Pulumi deletes after it has created its successor drains and removes nothing of what lives on."""

from typing import Any

import pytest

from soperator_pulumi.lifecycle.drain_gate import DrainGateProvider
from soperator_pulumi.lifecycle.node_drain import NodeDrainProvider
from soperator_pulumi.lifecycle.provider import LiveProvider
from soperator_pulumi.spec.drain import DrainSpec
from tests.unit.faults.stage import STAGE
from tests.unit.lifecycle.model import Model, a_model

CANCEL = DrainSpec.model_validate({"timeout": "5s", "on_timeout": "cancel"})
KINDS: dict[str, type[LiveProvider]] = {
    "DrainGate": DrainGateProvider,
    "DrainGate gpu": DrainGateProvider,
    "NodeDrain gpu": NodeDrainProvider,
}


def begin_run(model: Model) -> None:
    STAGE.begin(model.faults)
    model.faults.begin_run()


def replaced(model: Model, name: str, **changed: Any) -> None:
    """Create a resource again, and then delete the old one, as Pulumi does in one run."""
    recorded = dict(model.engine.state[name])
    made = KINDS[name]().create({**recorded, **changed})
    KINDS[name]().delete(made.id, recorded)


@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_done_for_what_was_superseded(name: str) -> None:
    with a_model() as model:
        model.up(2, policy=CANCEL)
        job = model.submit(seconds=1000)
        begin_run(model)
        replaced(model, name)
        assert job.state == "RUNNING"
        assert model.drained() == {}
        assert len(model.pods) == len(model.records) == 2


def test_a_stateful_set_that_was_replaced_is_drained_whatever_was_created_before() -> None:
    with a_model() as model:
        model.up(2, policy=CANCEL)
        begin_run(model)
        replaced(model, "DrainGate gpu", guards="hpc/corp-gpu")
        assert len(model.drained()) == 2


def test_a_run_that_was_killed_in_between_is_followed_by_one_that_drains() -> None:
    with a_model() as model:
        model.up(2, policy=CANCEL)
        begin_run(model)
        recorded = dict(model.engine.state["DrainGate"])
        made = DrainGateProvider().create(recorded)
        begin_run(model)
        DrainGateProvider().delete(made.id, recorded)
        assert len(model.drained()) == 2
