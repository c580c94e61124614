"""The resource that checks installed parts: all problems in one failure, versions as outputs, nothing changed."""

from typing import Any

import pytest
from pulumi.runtime.rpc import UNKNOWN

from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.lifecycle import provider as provider_module
from soperator_pulumi.lifecycle.installed_parts import InstalledPartsProvider
from soperator_pulumi.platform import parse_platform
from soperator_pulumi.platform.requirements import requirements
from tests.fakes.small_world import SmallWorld
from tests.unit.operations.test_installed import PARTS, a_world, image


def inputs(**changes: Any) -> dict[str, Any]:
    asked = [requirement.model_dump(mode="json") for requirement in requirements(parse_platform(PARTS))]
    return {"where": "soperator:platform", "requirements": asked, "kubeconfig": None, "context": None, **changes}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> SmallWorld:
    made = a_world()
    monkeypatch.setattr(provider_module, "_cluster", lambda _access: made)
    return made


@pytest.mark.usefixtures("world")
def test_a_good_installation_passes_and_its_versions_are_recorded() -> None:
    provider = InstalledPartsProvider()
    assert provider.check({}, inputs()).failures == []
    created = provider.create(inputs())
    assert created.outs is not None
    assert created.outs["versions"]["cilium"] == "v1.17.1"
    assert not provider.diff("installed", created.outs, inputs()).changes


def test_every_problem_is_in_one_failure(world: SmallWorld) -> None:
    world.objects.clear()
    (failure,) = InstalledPartsProvider().check({}, inputs()).failures
    assert failure.reason.startswith("soperator:platform has ")
    assert all(f"\n  {part}: " in failure.reason for part in PARTS)


def test_a_version_that_changed_is_a_change_of_the_resource_alone(world: SmallWorld) -> None:
    provider = InstalledPartsProvider()
    before = provider.create(inputs()).outs
    assert before is not None
    image(world.objects, "gpu-operator", "nvcr.example/gpu-operator:v26.7.0")
    assert provider.diff("installed", before, inputs()).changes
    updated = provider.update("installed", before, inputs()).outs
    assert updated is not None
    assert updated["versions"]["gpu_operator"] == "v26.7.0"
    assert world.changes == 0


@pytest.mark.usefixtures("world")
def test_a_part_of_our_own_that_has_to_exist_is_refused_before_it_is_removed() -> None:
    before = inputs(requirements=[], own={"cilium": False, "cert_manager": True})
    (failure,) = InstalledPartsProvider().check(before, inputs(kubeconfig=UNKNOWN)).failures
    assert "\n  cilium: exists: true, but this stack installed it" in failure.reason
    assert "cert_manager" not in failure.reason
    with pytest.raises(Exception, match="cilium: exists: true, but this stack installed it"):
        InstalledPartsProvider().diff("installed", before, inputs())


def test_a_platform_of_our_own_alone_reads_no_kubernetes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_module, "_cluster", lambda _access: pytest.fail("read"))
    provider, own = InstalledPartsProvider(), inputs(requirements=[], own={"cilium": False})
    assert provider.check({}, own).failures == []
    created = provider.create(own).outs
    assert created is not None
    assert not provider.diff("installed", created, own).changes
    assert provider.diff("installed", created, inputs(requirements=[], own={"cilium": True})).changes


def test_a_kubernetes_that_a_preview_does_not_know_is_checked_by_the_deployment() -> None:
    assert InstalledPartsProvider().check({}, inputs(kubeconfig=UNKNOWN)).failures == []


def test_a_kubernetes_that_does_not_answer_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_access: object) -> SmallWorld:
        raise KubernetesError("https://world does not answer")

    monkeypatch.setattr(provider_module, "_cluster", refuse)
    (failure,) = InstalledPartsProvider().check({}, inputs()).failures
    assert "does not answer" in failure.reason
