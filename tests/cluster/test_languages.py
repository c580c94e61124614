"""A cluster that moves from Python to another language, is scaled down there with a job on a node, and destroyed.

The CLI runs a program in YAML. The local engine, which runs Python alone, has one in Python that asks the plugin for
the component, as a program in any language does.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from soperator_pulumi.lifecycle.resource import PACKAGE
from soperator_pulumi.plugin.cluster_types import CLUSTER, INPUTS
from soperator_pulumi.plugin.property_types import ListOf, ObjectType, PropertyType
from tests import warm_python
from tests.cluster.slurm import Slurm, a_cluster, a_node_set, unique
from tests.cluster.workers import UNTIL_DRAINED, drained, ended_well, in_service, job_on, pods, said, set_size
from tests.conftest import Kubernetes
from tests.engine import plugin_folder
from tests.engine.conftest import AVAILABLE
from tests.engine.engines import ENGINES
from tools import console
from tools.engine import Deployer, StepOp, Target

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

LOGIN_HOST_KEY = "login_host_key"
PYTHON = """\
import json
from pathlib import Path

import pulumi

from soperator_pulumi import SlurmCluster

given = json.loads(Path(__file__).with_name("cluster.json").read_text())
cluster = SlurmCluster("hpc", given["python"])
pulumi.export("login_host_key", cluster.login.host_public_key)
"""
REMOTE = """\
import json
from pathlib import Path

import pulumi

given = json.loads(Path(__file__).with_name("cluster.json").read_text())
inputs = {**given["other"], "loginHostPublicKey": None}
cluster = pulumi.ComponentResource("soperator-pulumi:index:SlurmCluster", "hpc", inputs, remote=True)
pulumi.export("login_host_key", cluster.loginHostPublicKey)
"""


def in_other_language(value: Any, type_: PropertyType = INPUTS) -> Any:
    """Return a description as a program in another language has it."""
    match type_:
        case ObjectType() if isinstance(value, Mapping):
            known = {each.name: each for each in type_.properties}
            return {known[name].key: in_other_language(part, known[name].type) for name, part in value.items()}
        case ListOf():
            return [in_other_language(part, type_.items) for part in value]
        case _:
            return value


@dataclass
class Program(Slurm):
    """A cluster of a program that is written in Python first, and then in another language."""

    runs_on: str = "local"
    in_python: bool = field(default=True, init=False)

    def deployer(self, environment: Mapping[str, str] | None = None, *, warm: bool = True) -> Deployer:
        target = Target(
            project=self._written(),
            stack="test",
            state=self._state,
            config={"languages:described": "in the program"},
            environment={**self._environment, **plugin_folder.ENVIRONMENT, **(environment or {})},
            python=warm_python.executable() if warm else None,
        )
        return ENGINES[self.runs_on](target, console.say)

    def _written(self) -> Path:
        """Write the program, and return its folder."""
        folder, components = self.folder / "program", self.folder / "components"
        if not folder.exists():
            folder.mkdir()
            plugin_folder.prepare(components)
        described = {"python": self._completed(), "other": in_other_language(self._completed())}
        project: dict[str, Any] = {"name": "languages", "runtime": "python", "packages": {PACKAGE: str(components)}}
        (folder / "cluster.json").write_text(json.dumps(described))
        (folder / "__main__.py").write_text(PYTHON if self.in_python else REMOTE)
        if self.runs_on == "pulumi" and not self.in_python:
            resource = {"type": CLUSTER.token, "properties": described["other"]}
            outputs = {LOGIN_HOST_KEY: "${hpc.loginHostPublicKey}"}
            project |= {"runtime": "yaml", "resources": {"hpc": resource}, "outputs": outputs}
        (folder / "Pulumi.yaml").write_text(json.dumps(project))
        return folder


@pytest.fixture(params=AVAILABLE)
def program(
    request: pytest.FixtureRequest, kubernetes: Kubernetes, built_images: None, tmp_path: Path
) -> Iterator[Program]:
    """A cluster of a program in Python, on each engine that is there."""
    cluster = a_cluster(name=unique("lang"), node_sets=[a_node_set("cpu", replicas=2)])
    program = Program(kubernetes, tmp_path, cluster, runs_on=str(request.param))
    program.up()
    yield program
    program.destroy()


def identities(slurm: Slurm) -> set[str]:
    """Return what must not be another one after a move: pods and claims."""
    found = [
        *slurm.api.list_namespaced_pod(slurm.namespace).items,
        *slurm.api.list_namespaced_persistent_volume_claim(slurm.namespace).items,
    ]
    return {f"{each.metadata.name} {each.metadata.uid}" for each in found}


def test_a_cluster_moves_to_another_language_is_scaled_down_there_and_destroyed(program: Program) -> None:
    job, before = job_on(program, "cpu-1", UNTIL_DRAINED), identities(program)
    program.in_python = False
    moved = program.up()
    assert {each.operation for each in moved.changed} == {StepOp.UPDATE}
    assert identities(program) == before
    assert program.job(job)["JobState"] == "RUNNING"
    assert drained(program) == {}
    assert not program.deployer().up().changed

    set_size(program, 1)
    foreseen = said(program.deployer().preview())
    assert f"{program.cluster['name']}/cpu: 2 -> 1 node. Leaving: cpu-1" in foreseen
    assert f"job {job} (alice" in foreseen
    assert "drains cpu-1" in said(program.up())
    assert ended_well(program, job)
    assert [*pods(program)] == ["cpu-0"]
    assert in_service(program) == {"cpu-0"}

    program.deployer().destroy()
    assert program.deployer().state() == []
