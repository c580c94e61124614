"""SlurmCluster(platform=...): the order of both, and the platform's offers as defaults of the cluster."""

from typing import Any

import pytest

from soperator_pulumi import Platform, SlurmCluster, parse_cluster
from soperator_pulumi.errors import SpecError
from soperator_pulumi.testing import Deployment, deploy
from tests.rendered.cluster.clusters import a_node_set, a_spec, pod_of


def on_platform(platform: dict[str, Any], *, checked: bool = False, **cluster: Any) -> Deployment:
    def program() -> None:
        made = Platform("platform", platform)
        described = a_spec(**cluster)
        spec = parse_cluster({"name": "hpc", **described}) if checked else described
        SlurmCluster("hpc", spec, platform=made)

    return deploy(program)


@pytest.mark.parametrize("checked", [False, True], ids=["described", "checked"])
def test_every_object_of_the_cluster_comes_after_the_platform(*, checked: bool) -> None:
    deployment = on_platform({"gpu_operator": {}, "cert_manager": {}}, checked=checked)
    objects = [
        resource
        for resource in deployment.recorded
        if resource.name.startswith("hpc") and ":index:" not in resource.type
    ]
    assert len(objects) > 30
    for object_ in objects:
        waited = {other.name for other in deployment.waits_for(object_) if other.type.endswith("Release")}
        assert waited == {"platform-gpu-operator", "platform-cert-manager"}, object_.name


def test_node_sets_take_the_names_of_devices() -> None:
    platform = {"gpu_operator": {"runtime_class": "nvidia-cdi"}, "network_operator": {"shared_rdma": [{"name": "hca"}]}}
    gpus = {**a_node_set(name="gpu"), "gpus": {"count": 8}, "rdma": {}}
    deployment = on_platform(platform, node_sets=[a_node_set(), gpus])
    with_gpus, without = pod_of(deployment, "hpc-gpu"), pod_of(deployment, "hpc-cpu")
    assert with_gpus["runtimeClassName"] == "nvidia-cdi"
    assert "runtimeClassName" not in without
    (limits,) = [
        container["resources"]["limits"] for container in with_gpus["containers"] if container["name"] == "slurmd"
    ]
    assert limits["nvidia.com/gpu"] == "8"
    assert limits["rdma/hca"] == "1"


def jail_class(deployment: Deployment) -> str:
    claim: Any = deployment.one("hpc-jail", "PersistentVolumeClaim").inputs["spec"]
    return str(claim["storageClassName"])


def test_the_jail_is_of_the_platform_s_class_unless_it_names_one() -> None:
    assert jail_class(on_platform({"storage_class": "shared"})) == "shared"
    assert jail_class(on_platform({"storage_class": "shared"}, jail={"storage": {"storage_class": "own"}})) == "own"


def test_a_class_that_the_platform_creates_need_not_be_there_before_it() -> None:
    nfs = {"nfs": {"server": "10.0.0.7", "path": "/export"}, "size_gib": 10}
    deployment = on_platform({"shared_storage": nfs})
    volume: Any = deployment.one("hpc-jail", "PersistentVolumeClaim").inputs["spec"]
    assert volume["volumeName"]
    asked = deployment.one("hpc-prerequisites").inputs["references"]
    assert not [item for item in asked if item["path"].startswith("jail.storage")]
    assert [item for item in asked if item["path"].startswith("storage.state")]


MONITORED = {"pod_monitor": True, "alerts": {}}
BY_OPERATOR = {"database": {"mariadb_operator": {"size_gib": 8}}}


@pytest.mark.parametrize(
    ("platform", "needed"),
    [
        ({}, ["metrics.pod_monitor", "metrics.alerts", "accounting.database.mariadb_operator"]),
        ({"kube_prometheus_stack": {}}, ["accounting.database.mariadb_operator"]),
        ({"mariadb_operator": {}}, ["metrics.pod_monitor", "metrics.alerts"]),
        ({"kube_prometheus_stack": {"exists": True}, "mariadb_operator": {}}, []),
    ],
)
def test_kinds_of_operators_must_be_there_unless_the_platform_brings_them(
    platform: dict[str, Any], needed: list[str]
) -> None:
    deployment = on_platform(platform, metrics=MONITORED, accounting=BY_OPERATOR)
    asked = deployment.one("hpc-prerequisites").inputs["references"]
    assert [item["path"] for item in asked if item["kind"] == "CustomResourceDefinition"] == needed


@pytest.mark.parametrize("platform", [{"storage_class": "shared"}, {"shared_storage": {"existing_class": "shared"}}])
def test_a_class_that_the_platform_names_is_checked_by_the_platform(platform: dict[str, Any]) -> None:
    (asked,) = on_platform(platform).one("platform-installed").inputs["requirements"]
    assert asked["rules"][0]["path"].endswith("/storageclasses/shared")


def test_offers_of_another_stack_s_platform_are_defaults_as_well() -> None:
    deployment = deploy(lambda: SlurmCluster("hpc", a_spec(), platform={"storage_class": "shared"}))
    assert jail_class(deployment) == "shared"
    assert deployment.resources("Release") == ()


@pytest.mark.parametrize(
    ("access", "problems"),
    [
        ({}, ["kubeconfig: missing", "context: missing"]),
        ({"kubeconfig": "one"}, ["context: missing"]),
        ({"kubeconfig": "two", "context": "prod"}, ["kubeconfig: another"]),
        ({"kubeconfig": "one", "context": "prod"}, []),
    ],
)
def test_a_cluster_is_in_the_kubernetes_of_its_platform(access: Any, problems: list[str]) -> None:
    def program() -> None:
        made = Platform("platform", {"cert_manager": {}}, kubeconfig="one", context="prod")
        SlurmCluster("hpc", a_spec(), platform=made, **access)

    if not problems:
        assert deploy(program).one("platform-cert-manager", "Release").inputs["name"] == "cert-manager"
        return
    with pytest.raises(SpecError) as caught:
        deploy(program)
    found = [str(problem) for problem in caught.value.problems]
    assert [text.partition(",")[0] for text in found] == problems
