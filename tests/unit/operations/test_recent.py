"""Diffs of all node sets share what they ask, until something is changed."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.unit.faults.stage import STAGE, provider
from tests.unit.lifecycle.model import Model, a_model

NODES = "scontrol show nodes --json"


@pytest.fixture
def model() -> Iterator[Model]:
    """Four idle nodes, and nothing asked for a minute."""
    with a_model() as model:
        model.up(4)
        model.world.sleep(60)
        STAGE.begin(model.faults)
        model.commands.clear()
        yield model


def diff(model: Model, kind: str, **changes: Any) -> bool:
    state: Mapping[str, Any] = model.engine.state[f"{kind} gpu"]
    return bool(provider(kind).diff("id", dict(state), {**state, **changes}).changes)


def test_diffs_of_the_same_moment_ask_slurmctld_once(model: Model) -> None:
    assert not diff(model, "NodeDrain")
    assert not diff(model, "NodesReady")
    assert [command for command in model.commands if command.startswith("scontrol")] == [NODES]


def test_a_diff_after_a_change_asks_again(model: Model) -> None:
    diff(model, "NodeDrain")
    state = model.engine.state["NodeDrain gpu"]
    provider("NodeDrain").update("id", dict(state), {**state})
    model.commands.clear()
    diff(model, "NodesReady")
    assert NODES in model.commands
