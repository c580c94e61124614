"""A cluster whose resources another server acts for from now on: state changes, and the live cluster does not."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from soperator_pulumi.lifecycle.provider import PROVIDER_KEY
from soperator_pulumi.lifecycle.resource import PACKAGE, ServedBy
from tests.engine import plugin_folder
from tests.engine.conftest import Stack
from tests.engine.test_renamed import HELD, Held, pretend_that_slurmd_runs, stateful_set
from tools.engine import Deployer, StepOp

pytestmark = [pytest.mark.engine, pytest.mark.soak]

ACTING = {"hpc-prerequisites", "hpc-cpu-drain-gate", "hpc-drain-gate"}


@dataclass(frozen=True)
class Moving(Held):
    """A cluster with a node set, in a project that names the plugin."""

    served_by: ServedBy = ServedBy.PROGRAM

    def deployer(self, **environment: str) -> Deployer:
        target = self.stack.target()
        config = {
            "held:component": self.component,
            "held:cluster": {"name": "hpc", "namespace": self.namespace},
            "held:with_workers": True,
            "soperator:served_by": self.served_by.value,
            **{key: value for key, value in target.config.items() if key == "kubernetes:context"},
        }
        variables = {**target.environment, **plugin_folder.ENVIRONMENT, **environment}
        return self.stack.deployer(project=self.project, config=config, environment=variables)

    def types(self) -> set[str]:
        """Types of the resources that act on the cluster, in the state."""
        return {resource.type.rpartition(":")[0] for resource in self.deployer().state() if resource.name in ACTING}


@pytest.fixture
def moving(stack: Stack, tmp_path: Path) -> Iterator[Moving]:
    """A cluster of a Python program, on whose node a job may run."""
    project = tmp_path / "project"
    shutil.copytree(HELD, project)
    folder = plugin_folder.prepare(tmp_path / "components")
    with (project / "Pulumi.yaml").open("a") as file:
        file.write(f"packages: {{{PACKAGE}: {folder}}}\n")
    moving = Moving(stack, project=project)
    moving.up()
    pretend_that_slurmd_runs(moving)
    yield moving
    if moving.is_there():
        stack.kubernetes.core.delete_namespace(moving.namespace)


def test_a_move_to_the_plugin_and_back_updates_what_acts_and_touches_nothing(moving: Moving) -> None:
    before = stateful_set(moving)["metadata"]["uid"]
    for served_by, types in [
        (ServedBy.PLUGIN, {f"{PACKAGE}:index"}),
        (ServedBy.PROGRAM, {"pulumi-python:dynamic/soperator"}),
    ]:
        moving = replace(moving, served_by=served_by)
        foreseen = moving.deployer().preview()
        assert foreseen.names(StepOp.UPDATE) == ACTING
        assert {change.operation for change in foreseen.changed} == {StepOp.UPDATE}
        assert moving.up() == {StepOp.UPDATE}
        assert moving.types() == types
        assert moving.up() == set()
        assert stateful_set(moving)["metadata"]["uid"] == before
        assert moving.holder().endswith("SlurmCluster::hpc")


def test_a_gate_of_the_plugin_stays_shut_with_a_message_alone(moving: Moving) -> None:
    served = replace(moving, served_by=ServedBy.PLUGIN)
    served.up()
    states = [resource.outputs for resource in served.deployer().state()]
    assert not any(PROVIDER_KEY in state for state in states)
    served.deployer().refresh()

    error = str(served.stack.fails(served.deployer().destroy))
    assert "slurmctld does not answer: there is no controller, and jobs may run on cpu-0" in error
    assert "Traceback" not in error
    assert stateful_set(served)["spec"]["replicas"] == 1

    served.deployer(SOPERATOR_CONTROLLER_LOST="hpc").destroy()
    assert not served.is_there()
