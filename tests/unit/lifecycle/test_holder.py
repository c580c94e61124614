"""The mark that says which component holds a cluster, and who heeds it."""

from typing import Any

import pytest

from soperator_pulumi.errors import DrainError
from soperator_pulumi.lifecycle.drain_gate import DrainGateProvider
from soperator_pulumi.lifecycle.prerequisites import PrerequisitesProvider
from soperator_pulumi.lifecycle.provider import LiveProvider
from tests.fakes.objects import NAMESPACE, SELECTOR
from tests.fakes.small_world import SmallWorld
from tests.unit.lifecycle.recorded_world import PREREQUISITES

OWN, OTHER = "urn:pulumi:dev::infra::x:index:SlurmCluster::hpc", "urn:pulumi:prod::infra::x:index:SlurmCluster::hpc"
MARK = f"/api/v1/namespaces/{NAMESPACE}/configmaps/soperator-pulumi"
GATE = {
    "namespace": NAMESPACE,
    "namespace_uid": "uid-0",
    "owner": "project.dev.hpc",
    "component": OWN,
    "selector": SELECTOR,
    "policies": {},
}
NODE_SET_GATE = {**GATE, "node_set": "cpu"}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> SmallWorld:
    world = SmallWorld()
    world.objects[f"/api/v1/namespaces/{NAMESPACE}"] = {
        "metadata": {"uid": "uid-0", "labels": {"soperator-pulumi/owner": "project.dev.hpc"}}
    }

    world.connect(monkeypatch)
    return world


def held_by(world: SmallWorld) -> str | None:
    found = world.objects.get(MARK)
    return None if found is None else found["data"]["holder"]


def hold(world: SmallWorld, component: str) -> None:
    DrainGateProvider().create({**GATE, "component": component})
    assert held_by(world) == component


def test_the_gate_holds_the_cluster_while_it_is_there(world: SmallWorld) -> None:
    hold(world, OWN)
    DrainGateProvider().delete("", GATE)
    assert held_by(world) is None


@pytest.mark.parametrize(("provider", "props"), [(DrainGateProvider, GATE), (DrainGateProvider, NODE_SET_GATE)])
def test_what_was_superseded_drains_nothing_and_lets_nothing_be_deleted(
    world: SmallWorld, provider: type[LiveProvider], props: dict[str, Any]
) -> None:
    hold(world, OTHER)
    with pytest.raises(
        DrainError, match=rf"(?s)nothing deleted.*{OTHER}.*`pulumi up` first.*pulumi state delete --target"
    ):
        provider().delete("", props)
    assert held_by(world) == OTHER
    assert world.commands == []


def test_a_gate_of_an_older_release_takes_the_cluster_with_its_first_update(world: SmallWorld) -> None:
    before = {key: value for key, value in GATE.items() if key != "component"}
    DrainGateProvider().delete("", before)
    assert DrainGateProvider().diff("", before, GATE).changes
    DrainGateProvider().update("", before, GATE)
    assert held_by(world) == OWN


def asked(component: str, **more: Any) -> dict[str, Any]:
    return {**PREREQUISITES, "component": component, **more}


def test_a_cluster_that_another_component_holds_is_refused_before_all_else(world: SmallWorld) -> None:
    hold(world, OTHER)
    (failure,) = PrerequisitesProvider().check({}, asked(OWN)).failures
    assert "give it an alias" in failure.reason
    assert "kubectl --namespace hpc delete configmap soperator-pulumi" in failure.reason


def test_a_component_that_was_renamed_holds_it_from_its_first_update_on(world: SmallWorld) -> None:
    hold(world, OTHER)
    assert PrerequisitesProvider().check(asked(OTHER), asked(OWN)).failures == []
    assert PrerequisitesProvider().diff("", asked(OTHER), asked(OWN)).changes
    PrerequisitesProvider().update("", asked(OTHER), asked(OWN))
    assert held_by(world) == OWN
    # As after a run that was killed here, before that was recorded, and after it.
    for before in (OTHER, OWN):
        assert PrerequisitesProvider().check(asked(before), asked(OWN)).failures == []


def test_an_owner_that_was_lost_by_renaming_is_reported(world: SmallWorld) -> None:
    before, now = asked(OWN), asked(OWN, owner="project.prod.hpc")
    (failure,) = PrerequisitesProvider().check(before, now).failures
    assert 'owner: got "project.prod.hpc"' in failure.reason
    assert 'set owner: "project.dev.hpc"' in failure.reason
    (failure,) = PrerequisitesProvider().check({}, now).failures
    assert 'namespace: "hpc" exists already, and belongs to "project.dev.hpc"' in failure.reason
