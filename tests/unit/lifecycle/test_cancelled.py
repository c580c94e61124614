"""A run that someone cancels: its waits end, its drains stay, and the next run continues or undoes them."""

from collections.abc import Iterator

import pytest

from soperator_pulumi.errors import RunCancelledError
from soperator_pulumi.operations.nodes import lease
from soperator_pulumi.operations.progress import CANCELLED, MachineClock
from tests.unit.lifecycle.model import Model, a_model


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    """Three nodes, with a job on the last one, while a scale-down was cancelled."""
    with a_model() as model:
        model.up(3)
        job = model.submit(seconds=1000, required=frozenset({"gpu-2"}))
        sleeps = model.world.sleep

        def cancel(seconds: float) -> None:
            if model.drained():
                raise RunCancelledError("cancelled")
            sleeps(seconds)

        with monkeypatch.context() as patch:
            patch.setattr(model.world, "sleep", cancel)
            with pytest.raises(RunCancelledError) as raised:
                model.up(2)
        way_out = "the drains stay: pulumi up continues; with replicas: 3 of gpu it undoes them."
        assert str(raised.value) == f"hpc: cancelled. If interrupted, {way_out}"
        assert [*model.drained()] == ["gpu-2"]
        assert job.state == "RUNNING"
        yield model


def test_no_one_waits_for_a_cancelled_run(model: Model) -> None:
    del model
    assert lease._held == {}


def test_the_next_run_continues(model: Model) -> None:
    said = "\n".join(model.up(2))
    assert "gpu-2" in said
    assert [*model.pods] == ["gpu-0", "gpu-1"]


def test_the_change_reverted_undoes_it(model: Model) -> None:
    model.up(3)
    assert model.drained() == {}


def test_a_clock_of_a_cancelled_run_waits_no_more() -> None:
    CANCELLED.set()
    try:
        with pytest.raises(RunCancelledError, match="Run again to continue"):
            MachineClock().sleep(3600)
    finally:
        CANCELLED.clear()
