"""Properties of every valid description, as hypothesis makes them."""

import pytest
from hypothesis import given, settings

from soperator_pulumi import ClusterSpec, SlurmCluster
from soperator_pulumi.lifecycle import OWNER_LABEL
from soperator_pulumi.testing import Deployment, deploy
from tests.rendered.cluster.clusters import provided
from tests.soak import times
from tests.strategies import cluster_specs

MAX_LABEL = 63

SERIES = range(times(1, 4))
SPECS = settings().max_examples // 3 // len(SERIES)
"""In a series. A whole deployment for each takes as long as many other examples."""


def deployed(spec: ClusterSpec) -> Deployment:
    return deploy(lambda: SlurmCluster("any", spec), outputs=provided)


@pytest.mark.parametrize("series", SERIES)
@given(spec=cluster_specs())
@settings(max_examples=SPECS)
def test_any_valid_description_becomes_a_safe_and_complete_cluster(spec: ClusterSpec, series: int) -> None:
    deployment = deployed(spec)
    names = [(resource.type, resource.name) for resource in deployment.recorded]
    assert len(names) == len(set(names)), "two resources of one name"

    sets = {resource.inputs["metadata"]["name"]: resource for resource in deployment.resources(":StatefulSet")}
    assert sets.keys() == {
        *("accounting", "admin", "controller", "database", "login"),
        *(node_set.name for node_set in spec.node_sets),
    }
    for node_set in spec.node_sets:
        assert sets[node_set.name].inputs["spec"]["replicas"] == node_set.replicas

    for resource in sets.values():
        template = resource.inputs["spec"]["template"]
        selector = resource.inputs["spec"]["selector"]["matchLabels"]
        assert selector.items() <= template["metadata"]["labels"].items(), "the selector finds its pods"
        volumes = [volume["name"] for volume in template["spec"]["volumes"]]
        assert len(volumes) == len(set(volumes))
        for container in [*template["spec"].get("initContainers", []), *template["spec"]["containers"]]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
            assert {mount["name"] for mount in container["volumeMounts"]} <= set(volumes)
            paths = [mount["mountPath"] for mount in container["volumeMounts"]]
            assert len(paths) == len(set(paths)), "two volumes at one path"

    for resource in deployment.recorded:
        if resource.type.startswith("kubernetes:"):
            labels = resource.inputs["metadata"]["labels"]
            assert OWNER_LABEL in labels
            assert all(len(value) <= MAX_LABEL for value in labels.values())


@pytest.mark.parametrize("series", SERIES)
@given(spec=cluster_specs())
@settings(max_examples=SPECS // 2)  # two deployments for each
def test_the_same_description_gives_the_same_resources(spec: ClusterSpec, series: int) -> None:
    first, second = deployed(spec), deployed(spec)
    assert {(resource.type, resource.name): resource.inputs for resource in first.recorded} == {
        (resource.type, resource.name): resource.inputs for resource in second.recorded
    }
