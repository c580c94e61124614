"""Prerequisites: the check of the live Kubernetes before anything is applied."""

import base64
from typing import Any

import pytest
from pulumi.output import Unknown
from pulumi.runtime.rpc import UNKNOWN

from soperator_pulumi.cluster.secrets import host_key
from soperator_pulumi.errors import SpecError
from soperator_pulumi.lifecycle.prerequisites import PrerequisitesProvider
from tests.fakes.small_world import API_SLICE, SmallWorld
from tests.unit.lifecycle.recorded_world import PREREQUISITES, reached_world


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> SmallWorld:
    return reached_world(monkeypatch)


def test_a_cluster_that_lacks_nothing_passes_the_check(world: SmallWorld) -> None:
    del world
    assert PrerequisitesProvider().check({}, dict(PREREQUISITES)).failures == []


def test_all_that_is_missing_is_one_failure_of_the_check(world: SmallWorld) -> None:
    world.objects["/api/v1/namespaces/hpc"] = {"metadata": {"labels": {}}}
    missing = {"path": "login.priority_class", "kind": "PriorityClass", "name": "high", "key": "", "holds": ""}
    (failure,) = PrerequisitesProvider().check({}, {**PREREQUISITES, "references": [missing]}).failures
    assert failure.reason.startswith("soperator:cluster has 2 problems:\n  namespace: ")
    assert "login.priority_class" in failure.reason


def test_a_cluster_that_is_not_reached_fails_the_check_in_words(world: SmallWorld) -> None:
    world.unreachable = True
    (failure,) = PrerequisitesProvider().check({}, dict(PREREQUISITES)).failures
    assert failure.reason == "The Kubernetes API at https://x is not reached."


@pytest.mark.parametrize("operation", ["create", "update"])
def test_a_missing_right_ends_an_up_at_its_first_step_and_no_preview(
    world: SmallWorld, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    def review(_path: str, body: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        del dry_run
        return {"status": {"allowed": body["spec"]["resourceAttributes"]["resource"] not in {"leases", "*"}}}

    monkeypatch.setattr(world, "create", review)
    provider, props = PrerequisitesProvider(), dict(PREREQUISITES)
    assert provider.check({}, props).failures == []
    with pytest.raises(SpecError, match="may not get, create, patch leases in the namespace") as refused:
        provider.create(props) if operation == "create" else provider.update("", props, props)
    assert str(refused.value).startswith("soperator:cluster has 1 problem:\n  kubeconfig: ")


def test_a_release_that_is_too_old_fails_the_check(world: SmallWorld) -> None:
    world.objects["/version"] = {"metadata": {}, "gitVersion": "v1.27.3", "minor": "27"}
    (failure,) = PrerequisitesProvider().check({}, dict(PREREQUISITES)).failures
    assert "Kubernetes: the API server is v1.27.3. Needed: Kubernetes 1.29 or newer" in failure.reason


def test_a_kubeconfig_that_is_not_known_yet_is_not_checked_in_a_preview(world: SmallWorld) -> None:
    world.unreachable = True
    assert PrerequisitesProvider().check({}, {**PREREQUISITES, "kubeconfig": UNKNOWN}).failures == []


@pytest.mark.parametrize("unknown", [UNKNOWN, Unknown()], ids=["text", "object"])
def test_names_that_are_not_known_yet_are_passed_over_in_a_preview(world: SmallWorld, unknown: object) -> None:
    del world
    reference = {"path": "storage.homes.storage_class", "kind": "StorageClass", "name": unknown}
    assert PrerequisitesProvider().check({}, {**PREREQUISITES, "references": [reference]}).failures == []


def test_the_addresses_of_the_kubernetes_api_are_inputs_as_a_preview_finds_them(world: SmallWorld) -> None:
    provider = PrerequisitesProvider()
    checked = provider.check({}, {**PREREQUISITES, "api_servers": None}).inputs
    assert checked["api_servers"] == ["10.96.0.1/32", "192.0.2.8/32", "192.0.2.9/32", "fd00:96::1/128"]
    outputs = provider.create(checked).outs
    assert outputs is not None
    assert provider.diff("", outputs, checked).changes is False

    world.objects[API_SLICE]["endpoints"] = [{"addresses": ["192.0.2.10"]}]
    moved = provider.check(checked, {**PREREQUISITES, "api_servers": None}).inputs
    assert provider.diff("", outputs, moved).changes is True


def test_addresses_of_the_kubernetes_api_that_are_given_are_taken(world: SmallWorld) -> None:
    del world.objects[API_SLICE]
    given = {**PREREQUISITES, "api_servers": ["192.0.2.0/24"]}
    assert PrerequisitesProvider().check({}, given).inputs == given


def test_the_public_half_of_an_own_host_key_is_recorded_and_followed(world: SmallWorld) -> None:
    def secret(seed: int) -> dict[str, Any]:
        key = host_key(bytes([seed]) * 32).private_key.encode()
        return {"metadata": {}, "data": {"id": base64.b64encode(key).decode()}}

    path = "/api/v1/namespaces/hpc/secrets/ours"
    own = {"path": "secrets.ssh_host_key", "kind": "Secret", "name": "ours", "key": "id", "holds": "ssh host key"}
    props = {**PREREQUISITES, "references": [own]}
    world.objects[path] = secret(1)
    outputs = PrerequisitesProvider().create(props).outs
    assert outputs is not None
    assert outputs["ssh_host_public_key"] == host_key(b"\1" * 32).public_key
    assert outputs["ssh_host_fingerprint"] == host_key(b"\1" * 32).fingerprint
    assert "PRIVATE" not in str(outputs)
    assert PrerequisitesProvider().diff("", outputs, props).changes is False
    world.objects[path] = secret(2)
    assert PrerequisitesProvider().diff("", outputs, props).changes is True
