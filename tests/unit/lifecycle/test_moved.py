"""A resource that another server acts for from now on, the SDK's or a plugin: it is recorded, and nothing is done."""

import base64
import pickle
from typing import Any

import pytest
from pulumi.dynamic.dynamic import serialize_provider

from soperator_pulumi.lifecycle.provider import PROVIDER_KEY, LiveProvider
from soperator_pulumi.spec.drain import DrainSpec
from tests.unit.faults.stage import STAGE, provider
from tests.unit.lifecycle.model import Model, a_model

CANCEL = DrainSpec.model_validate({"timeout": "5s", "on_timeout": "cancel"})
KINDS = ["RemovedNodeSets", "NodeDrain gpu", "DrainGate gpu", "DrainGate", "NodesReady gpu"]


def begin_run(model: Model) -> None:
    STAGE.begin(model.faults)
    model.faults.begin_run()
    model.commands.clear()


def stored(kind: str) -> dict[str, str]:
    """The property of a dynamic resource."""
    return {PROVIDER_KEY: serialize_provider(provider(kind.partition(" ")[0]))}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("to_plugin", [True, False], ids=["to the plugin", "to the program"])
def test_a_move_changes_the_state_and_no_node(name: str, to_plugin: bool) -> None:
    with a_model() as model:
        model.up(2, policy=CANCEL)
        job = model.submit(seconds=1000)
        begin_run(model)
        acts = provider(name.partition(" ")[0])
        recorded, wanted = dict(model.engine.state[name]), dict(dict(model.engine._wanted(model.program))[name])
        wanted = model.engine._with_outputs(name, wanted)
        olds = {**recorded, **(stored(name) if to_plugin else {})}
        news = {**wanted, **({} if to_plugin else stored(name))}

        assert acts.diff(name, olds, news).changes
        assert not acts.diff(name, olds, news).replaces
        moved = acts.update(name, olds, news).outs or {}

        assert {key: value for key, value in moved.items() if value is not None} == recorded
        assert job.state == "RUNNING"
        assert model.drained() == {}
        assert not [command for command in model.commands if "update" in command or "delete" in command]
        if to_plugin:
            assert not acts.diff(name, moved, news).changes


def test_a_move_with_another_change_makes_that_change() -> None:
    with a_model() as model:
        model.up(2, policy=CANCEL)
        begin_run(model)
        recorded = dict(model.engine.state["NodeDrain gpu"])
        wanted: dict[str, Any] = {**recorded, "replicas": 1.0}
        outs = provider("NodeDrain").update("NodeDrain gpu", {**recorded, **stored("NodeDrain")}, wanted).outs
        assert outs is not None
        assert outs["replicas"] == 1
        assert PROVIDER_KEY not in outs
        assert [*model.drained()] == ["gpu-1"]


def test_a_state_of_the_program_names_a_provider_that_a_plugin_need_not_know() -> None:
    found = pickle.loads(base64.b64decode(stored("NodeDrain")[PROVIDER_KEY]))  # noqa: S301 - what we have just stored
    assert isinstance(found, LiveProvider)
