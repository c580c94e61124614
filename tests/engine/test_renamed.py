"""A cluster whose stack, project, component or parent has another name goes on, or nothing of it is touched."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from soperator_pulumi.operations import holder
from tests.engine.conftest import Stack
from tests.engine.engines import PROGRAM
from tests.waiting import wait_until
from tools.engine import Deployer, StepOp, cli_environment
from tools.engine.protocol import STACK_TYPE

pytestmark = pytest.mark.engine

HELD = PROGRAM.with_name("held")
CLUSTER = "soperator-pulumi:index:SlurmCluster"


@dataclass(frozen=True)
class Held:
    """A cluster without pods, in a stack that can be renamed."""

    stack: Stack
    name: str = "test"
    project: Path = HELD
    component: str = "hpc"
    settings: dict[str, Any] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        return f"{self.stack.namespace}-held"

    def deployer(self) -> Deployer:
        config = {
            "component": self.component,
            "cluster": {"name": "hpc", "namespace": self.namespace, **self.spec},
            **self.settings,
        }
        context = {key: value for key, value in self.stack.target().config.items() if key == "kubernetes:context"}
        given = {f"{project_name(self.project)}:{key}": value for key, value in config.items()}
        return self.stack.deployer(stack=self.name, project=self.project, config={**context, **given})

    def up(self) -> set[StepOp]:
        """Deploy, and return what was done to resources, other than nothing."""
        return {change.operation for change in self.deployer().up().changed}

    def refused(self) -> str:
        """Return the error of a preview: nothing was begun."""
        return str(self.stack.fails(self.deployer().preview))

    def holder(self) -> str:
        body = self.stack._get(f"/api/v1/namespaces/{self.namespace}/configmaps/{holder.MARK}")
        return str((body or {}).get("data", {}).get("holder", ""))

    def is_there(self) -> bool:
        found = self.stack._get(f"/api/v1/namespaces/{self.namespace}")
        return found is not None and "deletionTimestamp" not in found["metadata"]

    def renamed(self, name: str, project: Path | None = None) -> "Held":
        """Rename the stack, as `pulumi stack rename` does, and return it."""
        new = replace(self, name=name, project=project or self.project)
        rename = {"pulumi": rename_with_cli, "local": rename_in_state}[self.stack.engine]
        rename(self.stack, (project_name(self.project), self.name), (project_name(new.project), name))
        return new


def project_name(folder: Path) -> str:
    return (folder / "Pulumi.yaml").read_text().splitlines()[0].removeprefix("name: ")


def rename_with_cli(stack: Stack, old: tuple[str, str], new: tuple[str, str]) -> None:
    state = stack.folder / "state"
    before, after = (state / "pulumi-project" / project / name for project, name in (old, new))
    subprocess.run(
        ["pulumi", "stack", "rename", "--stack", old[1], "/".join(["organization", *new])],
        cwd=before,
        env={**os.environ, **cli_environment(state)},
        check=True,
        capture_output=True,
    )
    after.parent.mkdir(exist_ok=True)
    before.rename(after)


def rename_in_state(stack: Stack, old: tuple[str, str], new: tuple[str, str]) -> None:
    """Do what the CLI does: URNs are renamed wherever they say which resource it is, and not in inputs and outputs."""
    folder = stack.folder / "state" / "local"
    before, after = (folder / project / f"{name}.json" for project, name in (old, new))
    state = json.loads(before.read_text())

    def renamed(value: Any) -> Any:
        if isinstance(value, str):
            value = value.replace(f"urn:pulumi:{old[1]}::{old[0]}::", f"urn:pulumi:{new[1]}::{new[0]}::")
            return value.replace(f"{STACK_TYPE}::{old[0]}-{old[1]}", f"{STACK_TYPE}::{new[0]}-{new[1]}")
        if isinstance(value, list):
            return [renamed(item) for item in value]
        if isinstance(value, dict):
            return {key: item if key in {"inputs", "outputs"} else renamed(item) for key, item in value.items()}
        return value

    after.parent.mkdir(exist_ok=True)
    after.write_text(json.dumps(renamed(state)))
    before.unlink()


@pytest.fixture
def held(stack: Stack) -> Iterator[Held]:
    """A cluster that is deployed."""
    held = Held(stack)
    held.up()
    yield held
    if held.is_there():
        stack.kubernetes.core.delete_namespace(held.namespace)


def urn(held: Held, parents: str = "") -> str:
    return f"urn:pulumi:{held.name}::{project_name(held.project)}::{parents}{CLUSTER}::{held.component}"


def test_a_cluster_is_held_by_its_component(held: Held) -> None:
    assert held.holder() == urn(held)
    assert held.up() == set()


def test_a_renamed_stack_continues_with_the_owner_that_the_error_names(held: Held) -> None:
    renamed = held.renamed("other")
    assert 'Keep that name: set owner: "held.test.hpc"' in renamed.refused()
    renamed = replace(renamed, spec={"owner": "held.test.hpc"})
    assert renamed.up() == {StepOp.UPDATE}
    assert renamed.holder() == urn(renamed)
    assert renamed.up() == set()


def test_a_renamed_stack_can_be_destroyed_as_it_is_and_what_it_stands_on_goes_last(held: Held) -> None:
    result = held.renamed("other").deployer().destroy()
    assert not held.is_there()
    deleted = [change.name for change in result.of(StepOp.DELETE)]
    own = [deleted.index(name) for name in deleted if name.startswith("hpc-")]
    assert deleted[0] == "hpc-drain-gate"
    assert max(own) < deleted.index("node-pool")


def test_a_renamed_project_continues_with_the_owner_that_the_error_names(held: Held, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(HELD, project)
    (project / "Pulumi.yaml").write_text((HELD / "Pulumi.yaml").read_text().replace("name: held", "name: infra"))
    renamed = held.renamed("test", project)
    assert 'Keep that name: set owner: "held.test.hpc"' in renamed.refused()
    assert replace(renamed, spec={"owner": "held.test.hpc"}).up() == {StepOp.UPDATE}


def test_a_component_with_another_parent_continues_with_an_alias(held: Held) -> None:
    moved = replace(held, settings={"in_platform": True, "was_at_the_root": True})
    assert StepOp.DELETE not in moved.up()
    assert moved.holder() == urn(moved, "tests:index:Platform$")
    assert replace(moved, settings={"in_platform": True}).up() == set()


def test_a_renamed_component_continues_with_an_alias_and_the_owner(held: Held) -> None:
    renamed = replace(held, component="blue", settings={"aliases": [{"name": "hpc"}]})
    assert 'Keep that name: set owner: "held.test.hpc"' in renamed.refused()
    renamed = replace(renamed, spec={"owner": "held.test.hpc"})
    assert StepOp.DELETE not in renamed.up()
    assert renamed.holder() == urn(renamed)


def test_without_an_alias_it_is_refused_before_anything_is_made_or_deleted(held: Held) -> None:
    moved = replace(held, settings={"in_platform": True})
    assert "give it an alias" in moved.refused()
    assert "give it an alias" in str(held.stack.fails(moved.deployer().up))
    assert held.holder() == urn(held)
    left = held.deployer().up().changed
    assert {change.type for change in left} == {CLUSTER, "tests:index:Platform"}, "components, which are names alone"
    assert StepOp.DELETE not in replace(held, settings={"in_platform": True, "was_at_the_root": True}).up()


def test_a_stateful_set_that_a_transformation_replaces_is_drained_before(stack: Stack) -> None:
    held = Held(stack, settings={"with_workers": True})
    held.up()
    before = stateful_set(held)
    pretend_that_slurmd_runs(held)

    for change in ({"other_name": "corp-cpu"}, {"other_service": "other"}):
        moved = replace(held, settings={"with_workers": True, **change})
        error = held.stack.fails(moved.deployer().up)
        assert "slurmctld does not answer: there is no controller, and jobs may run on cpu-0" in str(error)
        assert stateful_set(held)["metadata"]["uid"] == before["metadata"]["uid"]

    os.environ["SOPERATOR_CONTROLLER_LOST"] = "hpc"
    try:
        moved.up()
    finally:
        del os.environ["SOPERATOR_CONTROLLER_LOST"]
    after = stateful_set(held)
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["spec"]["serviceName"] == "other"
    assert moved.up() == set()
    stack.kubernetes.core.delete_namespace(held.namespace)


def stateful_set(held: Held) -> dict[str, Any]:
    found = held.stack._get(f"/apis/apps/v1/namespaces/{held.namespace}/statefulsets/cpu")
    assert found is not None
    return found


def pretend_that_slurmd_runs(held: Held) -> None:
    """Have the pod, which no kubelet has, say that slurmd runs in it, so that jobs may be there."""
    core = held.stack.kubernetes.core
    pods = f"/api/v1/namespaces/{held.namespace}/pods/cpu-0"
    wait_until(lambda: held.stack._get(pods) is not None, "the pod is there")
    state = {"running": {"startedAt": "2026-11-22T00:00:00Z"}}
    status = {"name": "slurmd", "image": "none", "imageID": "", "ready": True, "restartCount": 0, "state": state}
    core.patch_namespaced_pod_status("cpu-0", held.namespace, {"status": {"containerStatuses": [status]}})


def test_a_kubeconfig_that_a_cluster_is_given_is_nowhere_in_the_state_in_plain(stack: Stack) -> None:
    kubeconfig = stack.kubernetes.kubeconfig.read_text()
    key = max(re.findall(r"[A-Za-z0-9+/=]+", kubeconfig), key=len)  # the longest word is a key or a certificate
    context = yaml.safe_load(kubeconfig)["current-context"]
    for access in ({"with_kubeconfig": True}, {"with_context": context}):
        held = Held(stack, settings=access)
        held.up()
        states = [path.read_bytes() for path in (stack.folder / "state").rglob("*.json*") if path.is_file()]
        assert any(b"hpc-kubernetes" in state for state in states)
        assert not any(key.encode() in state for state in states)
    # What the program no longer gives is forgotten, where nothing else has changed as well.
    dynamic = [resource for resource in held.deployer().state() if resource.type.startswith("pulumi-python:dynamic/")]
    assert {resource.outputs.get("context") for resource in dynamic} == {context}
    assert not [resource.name for resource in dynamic if resource.outputs.get("kubeconfig")]
    stack.kubernetes.core.delete_namespace(held.namespace)


def test_what_another_component_has_taken_over_is_not_deleted(held: Held) -> None:
    """As when someone has let go of the mark, and another provider than the tested ones has taken all over."""
    mark = {"data": {"holder": "urn:pulumi:prod::infra::other"}}
    held.stack.kubernetes.core.patch_namespaced_config_map(holder.MARK, held.namespace, mark)
    error = held.stack.fails(held.deployer().destroy)
    assert "nothing is drained and nothing deleted" in str(error)
    assert held.is_there()
    listed = held.stack._get(f"/apis/networking.k8s.io/v1/namespaces/{held.namespace}/networkpolicies")
    assert listed is not None
    assert len(listed["items"]) > 1
