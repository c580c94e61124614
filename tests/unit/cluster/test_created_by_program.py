"""Objects of a cluster that the same program creates: a preview does not look for them, and an up requires them."""

from typing import Any

import pulumi
import pytest
from pulumi_kubernetes.core.v1 import Namespace, Secret

from soperator_pulumi import SlurmCluster
from soperator_pulumi.errors import SpecError
from soperator_pulumi.lifecycle.prerequisites import PrerequisitesProvider
from soperator_pulumi.testing import deploy
from tests.strategies import a_cluster
from tests.unit.lifecycle.recorded_world import NAMESPACE_PATH, PREREQUISITES, reached_world

CERTIFICATE: dict[str, Any] = {"path": "rest.tls", "kind": "Secret", "name": "certificate", "holds": ""}
KEYS = [{**CERTIFICATE, "key": "tls.key"}, {**CERTIFICATE, "key": "tls.crt"}]
PROPS = {
    **PREREQUISITES,
    "create_namespace": False,
    "references": KEYS,
}
CREATED = {
    **PROPS,
    "namespace_created_by_program": True,
    "references": [{**reference, "created_by_program": True} for reference in KEYS],
}


def recorded(program: Any, **given: Any) -> dict[str, Any]:
    """Return the inputs of the cluster's prerequisites."""
    return dict(deploy(program, **given).one("hpc-prerequisites").inputs)


def a_cluster_with(secret: pulumi.Input[str], opts: pulumi.ResourceOptions | None = None) -> None:
    cluster = a_cluster(create_namespace=False)
    cluster["images"]["rest"] = "registry.example/soperator/rest:1"
    SlurmCluster("hpc", cluster, opts, rest={"tls": {"secret": secret}})


def test_the_name_of_a_secret_and_the_namespace_of_the_same_program_are_marked() -> None:
    def program() -> None:
        namespace = Namespace("slurm", metadata={"name": "hpc"})
        certificate = Secret("certificate", metadata={"name": "certificate", "namespace": namespace.metadata.name})
        a_cluster_with(certificate.metadata.name, pulumi.ResourceOptions(depends_on=[namespace]))

    inputs = recorded(program)
    marks = {
        entry["key"]: entry.get("created_by_program") for entry in inputs["references"] if entry["kind"] == "Secret"
    }
    assert (inputs["namespace_created_by_program"], marks) == (True, {"tls.key": True, "tls.crt": True})


def test_a_plain_name_and_an_output_of_another_stack_are_not() -> None:
    def from_elsewhere() -> None:
        base = pulumi.StackReference("acme/base/prod")
        a_cluster_with(base.get_output("certificate"), pulumi.ResourceOptions(depends_on=base))

    plain = recorded(lambda: a_cluster_with("certificate"))
    elsewhere = recorded(from_elsewhere, stacks={"acme/base/prod": {"certificate": "certificate"}})

    assert "namespace_created_by_program" not in plain
    assert elsewhere["namespace_created_by_program"] is False
    assert not [entry for entry in plain["references"] if "created_by_program" in entry]
    assert not [entry for entry in elsewhere["references"] if entry.get("created_by_program")]


def test_a_preview_does_not_miss_what_the_program_creates(monkeypatch: pytest.MonkeyPatch) -> None:
    world = reached_world(monkeypatch)
    del world.objects[NAMESPACE_PATH]
    assert PrerequisitesProvider().check({}, CREATED).failures == []


def test_a_missing_secret_of_two_keys_is_one_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    reached_world(monkeypatch)
    (failure,) = PrerequisitesProvider().check({}, PROPS).failures
    assert failure.reason.startswith("soperator:cluster has 1 problem:\n  rest.tls: got ")


@pytest.mark.parametrize("operation", ["create", "update"])
def test_an_up_requires_what_the_program_should_have_created(monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
    world = reached_world(monkeypatch)
    del world.objects[NAMESPACE_PATH]
    provider = PrerequisitesProvider()
    with pytest.raises(SpecError) as refused:
        provider.create(CREATED) if operation == "create" else provider.update("", CREATED, CREATED)
    text = str(refused.value)
    assert "2 problems" in text
    assert 'namespace: "hpc" does not exist' in text
    assert 'there is no Secret of that name in the namespace "hpc"' in text
