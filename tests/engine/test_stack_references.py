"""A stack takes values from another one, as outputs."""

from pathlib import Path
from typing import Any

import pytest

from tests import warm_python
from tests.engine.engines import ENGINES, PROGRAM
from tools.engine import Deployer, DeployError, StepOp, Target

pytestmark = pytest.mark.engine

STORAGE = "organization/declared/storage"


@pytest.fixture
def stack(engine: str, tmp_path: Path) -> Any:
    """Make deployers of stacks with these exports, all in one state folder."""
    (tmp_path / "things").mkdir()

    def make(name: str, exports: dict[str, Any], *resources: dict[str, Any]) -> Deployer:
        thing = {"name": name, "type": "Thing", "properties": {"folder": str(tmp_path / "things")}}
        config = {"declared:resources": [thing, *resources], "declared:exports": exports}
        python = warm_python.executable()
        target = Target(project=PROGRAM, stack=name, state=tmp_path / "state", config=config, python=python)
        return ENGINES[engine](target, lambda _: None)

    return make


def test_outputs_of_another_stack_are_read_in_preview_and_up_and_secrets_stay_secret(stack: Any) -> None:
    stack("storage", {"class": "fast", "made": {"from": "storage.made"}, "key": {"secret": "hush"}}).up()
    taken = {name: {"stack": STORAGE, "output": name} for name in ("class", "made", "key")}
    cluster = stack("cluster", taken)

    foreseen = cluster.preview()
    result = cluster.up()

    assert cluster.outputs() == {"class": "fast", "made": "storage-made", "key": "hush"}
    assert {change.name for change in result.of(StepOp.READ)} == {STORAGE}
    assert foreseen.names(StepOp.CREATE) == {"cluster", "declared-cluster"}
    (exported,) = [item for item in cluster.state() if item.type == "pulumi:pulumi:Stack"]
    assert exported.outputs["key"] == "[secret]"
    assert exported.outputs["class"] == "fast"


def test_a_stack_that_is_not_there_stops_the_run_and_is_named(stack: Any) -> None:
    with pytest.raises(DeployError, match=STORAGE):
        stack("cluster", {"class": {"stack": STORAGE, "output": "class"}}).preview()


def test_a_stack_that_is_read_twice_under_one_name_is_refused(stack: Any) -> None:
    """The program of all stacks reads each stack once, whatever it takes from it."""
    stack("storage", {"class": "fast"}).up()
    again = {"name": STORAGE, "type": "StackReference", "properties": {"stack": STORAGE}}
    with pytest.raises(DeployError, match="URN"):
        stack("cluster", {"class": {"stack": STORAGE, "output": "class"}}, again).preview()
