"""A cluster in one program with what it stands on: what its resources depend on, and what Pulumi is told about them."""

from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_random as random
import pytest

from soperator_pulumi import SlurmCluster
from soperator_pulumi.testing import Deployment, Recorded, Secret, deploy
from tests.rendered.cluster.clusters import a_deployment, a_spec, provided

KUBECONFIG = "apiVersion: v1\nclusters: []\n"


@pytest.mark.parametrize(
    "given",
    [lambda pool: pool, lambda pool: [pool], lambda pool: pulumi.Output.from_input([pool])],
    ids=["one", "some", "an output"],
)
def test_what_a_cluster_depends_on_all_of_its_resources_depend_on(given: Callable[[pulumi.Resource], Any]) -> None:
    def program() -> None:
        pool = random.RandomUuid("node-pool")
        options = pulumi.ResourceOptions(depends_on=given(pool))
        SlurmCluster("hpc", a_spec(), options, kubeconfig=KUBECONFIG)

    deployment = deploy(program, outputs=provided)
    others = [resource for resource in deployment.recorded if resource.name != "node-pool"]
    assert len(others) > 30
    for other in others:
        assert any(urn.endswith("::node-pool") for urn in other.request.dependencies), other.name


def kept(deployment: Deployment) -> set[str]:
    """Names of what a destroy that excludes what is protected leaves: all that it needs, parents among it."""
    protected = [resource for resource in deployment.recorded if resource.request.protect]
    return {resource.name for one in protected for resource in [one, *deployment.waits_for(one)]}


def test_what_a_destroy_keeps_needs_no_more_than_its_namespace() -> None:
    names = kept(a_deployment())
    assert {"hpc-jail", "hpc-slurmctld-state", "hpc-namespace"} <= names
    assert names <= {"hpc", "hpc-jail", "hpc-slurmctld-state", "hpc-namespace", "hpc-prerequisites"}


def test_the_network_is_closed_before_a_pod_of_the_jail_is_there() -> None:
    deployment = a_deployment()
    (job,) = deployment.resources(":Job")
    waits = {awaited.name for awaited in deployment.waits_for(job)}
    assert {resource.name for resource in deployment.resources(":NetworkPolicy")} <= waits


def depends_by(resource: Recorded, key: str) -> list[str]:
    return [urn.rpartition("::")[2] for urn in resource.request.propertyDependencies[key].urns]


def test_pulumi_asks_a_gate_before_it_replaces_a_stateful_set_or_the_namespace() -> None:
    deployment = a_deployment()
    assert depends_by(deployment.one("hpc-cpu-drain-gate"), "guards") == ["hpc-cpu"]
    assert depends_by(deployment.one("hpc-drain-gate"), "guards") == ["hpc-namespace"]


def test_a_kubeconfig_is_secret_wherever_it_is_given_to() -> None:
    deployment = deploy(lambda: SlurmCluster("hpc", a_spec(), kubeconfig=KUBECONFIG, context="west"), outputs=provided)
    holders = [resource for resource in deployment.recorded if resource.inputs.get("kubeconfig") is not None]
    assert {holder.type for holder in holders} > {"pulumi:providers:kubernetes"}
    for holder in holders:
        assert isinstance(holder.inputs["kubeconfig"], Secret), holder.name
