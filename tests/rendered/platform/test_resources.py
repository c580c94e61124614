"""Resources of a platform: names, parents and options, which states refer to, and their order."""

import pulumi
import pytest

from soperator_pulumi.platform import CHARTS, CertManager, Platform
from soperator_pulumi.platform.charts import Chart
from soperator_pulumi.testing import Secret, deploy
from tests.rendered.cluster.test_contract import tree
from tests.rendered.platform.platforms import WHOLE, a_platform

EXPECTED = """\
platform                                                     soperator-pulumi:index:Platform
  platform-cert-manager                                      soperator-pulumi:index:CertManager
    platform-cert-manager                                    kubernetes:helm.sh/v3:Release
    platform-cert-manager-namespace                          kubernetes:core/v1:Namespace
  platform-cilium                                            soperator-pulumi:index:Cilium
    platform-cilium                                          kubernetes:helm.sh/v3:Release
  platform-gpu-operator                                      soperator-pulumi:index:GpuOperator
    platform-gpu-operator                                    kubernetes:helm.sh/v3:Release
    platform-gpu-operator-namespace                          kubernetes:core/v1:Namespace
  platform-installed                                         pulumi-python:dynamic/soperator:InstalledParts
  platform-kube-prometheus-stack                             soperator-pulumi:index:KubePrometheusStack
    platform-kube-prometheus-stack                           kubernetes:helm.sh/v3:Release
    platform-kube-prometheus-stack-grafana-admin             random:index/randomPassword:RandomPassword
    platform-kube-prometheus-stack-grafana-admin-secret      kubernetes:core/v1:Secret
  platform-mariadb-operator                                  soperator-pulumi:index:MariadbOperator
    platform-mariadb-operator                                kubernetes:helm.sh/v3:Release
    platform-mariadb-operator-mariadb-operator-crds          kubernetes:helm.sh/v3:Release retain
    platform-mariadb-operator-namespace                      kubernetes:core/v1:Namespace
  platform-network-operator                                  soperator-pulumi:index:NetworkOperator
    platform-network-operator                                kubernetes:helm.sh/v3:Release
    platform-network-operator-namespace                      kubernetes:core/v1:Namespace
    platform-network-operator-network-fabric-ip              kubernetes:mellanox.com/v1alpha1:IPoIBNetwork
    platform-network-operator-network-rail-0                 kubernetes:mellanox.com/v1alpha1:HostDeviceNetwork
    platform-network-operator-network-storage                kubernetes:mellanox.com/v1alpha1:MacvlanNetwork
    platform-network-operator-policy                         kubernetes:mellanox.com/v1alpha1:NicClusterPolicy
    platform-network-operator-pool-fabric                    kubernetes:nv-ipam.nvidia.com/v1alpha1:IPPool
  platform-prometheus-definitions                            soperator-pulumi:index:PrometheusDefinitions
    platform-prometheus-definitions-namespace                kubernetes:core/v1:Namespace retain
    platform-prometheus-definitions-prometheus-operator-crds kubernetes:helm.sh/v3:Release
"""


def test_a_platform_consists_of_exactly_these_resources() -> None:
    assert tree(a_platform(**WHOLE).recorded, width=61) == EXPECTED.splitlines()


def before(part: str) -> set[str]:
    deployment = a_platform(**WHOLE)
    releases = deployment.waits_for(deployment.one(f"platform-{part}", "Release"))
    return {release.inputs["name"] for release in releases if release.type.endswith("Release")}


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("cilium", {"prometheus-operator-crds"}),
        ("cert-manager", {"prometheus-operator-crds", "cilium"}),
        ("kube-prometheus-stack", {"prometheus-operator-crds", "cilium", "cert-manager"}),
        ("mariadb-operator", {"mariadb-operator-crds", "kube-prometheus-stack", "cilium"}),
        ("gpu-operator", {"kube-prometheus-stack", "cilium"}),
        ("network-operator", {"gpu-operator", "cilium"}),
    ],
)
def test_a_part_waits_for_what_it_stands_on(part: str, expected: set[str]) -> None:
    assert expected <= before(part)


def test_no_part_waits_for_one_that_it_does_not_need() -> None:
    assert not before("cilium") & {"cert-manager", "kube-prometheus-stack"}
    assert not before("gpu-operator") & {"mariadb-operator", "network-operator"}


def test_networks_come_after_the_pools_of_their_addresses_and_the_policy() -> None:
    deployment = a_platform(**WHOLE)
    waited = {
        awaited.name for awaited in deployment.waits_for(deployment.one("platform-network-operator-network-rail-0"))
    }
    assert {"platform-network-operator-policy", "platform-network-operator-pool-fabric"} <= waited


def test_a_release_leaves_before_its_successor_takes_the_cluster_wide_objects() -> None:
    releases = a_platform(**WHOLE).resources("Release")
    assert len(releases) == len(CHARTS)
    assert all(release.request.deleteBeforeReplace for release in releases)


@pytest.mark.parametrize("chart", CHARTS, ids=lambda item: item.name)
def test_a_release_has_the_chart_of_the_table_under_a_fixed_name(chart: Chart) -> None:
    releases = {resource.inputs["name"]: resource.inputs for resource in a_platform(**WHOLE).resources("Release")}
    found = releases[chart.release]
    assert found["version"] == chart.version
    assert found["namespace"] == chart.namespace
    assert found["chart"].rpartition("/")[2] == chart.name
    place = found["chart"].rpartition("/")[0] or found["repositoryOpts"]["repo"]
    assert place == chart.repository


def test_every_object_names_its_part_and_its_manager() -> None:
    for resource in a_platform(**WHOLE).recorded:
        if resource.type.startswith("kubernetes:") and not resource.type.endswith(":Release"):
            labels = resource.inputs["metadata"]["labels"]
            assert labels["app.kubernetes.io/managed-by"] == "pulumi", resource.name
            assert labels["app.kubernetes.io/part-of"] == "soperator-platform", resource.name
            assert labels["app.kubernetes.io/name"] in {chart.name for chart in CHARTS}, resource.name


def test_a_namespace_has_the_level_that_its_pods_need_and_the_reason_of_the_highest() -> None:
    namespaces = {
        resource.inputs["metadata"]["name"]: resource.inputs["metadata"]
        for resource in a_platform(**WHOLE).resources("Namespace")
    }
    levels = {name: metadata["labels"]["pod-security.kubernetes.io/enforce"] for name, metadata in namespaces.items()}
    assert levels == {
        "cert-manager": "baseline",
        "gpu-operator": "privileged",
        "mariadb-operator": "baseline",
        "monitoring": "privileged",
        "network-operator": "privileged",
    }
    for name, level in levels.items():
        reason = namespaces[name].get("annotations", {}).get("soperator-pulumi/privileged-because", "")
        assert bool(reason) is (level == "privileged")


def test_an_existing_namespace_is_not_created() -> None:
    deployment = a_platform(gpu_operator={"namespace": "nvidia", "create_namespace": False})
    assert deployment.resources("Namespace") == ()
    assert deployment.one("platform-gpu-operator", "Release").inputs["namespace"] == "nvidia"


def test_the_password_of_grafana_is_a_secret_of_the_state() -> None:
    secret = a_platform(**WHOLE).one("platform-kube-prometheus-stack-grafana-admin-secret")
    assert isinstance(secret.inputs["stringData"], Secret)


def test_a_part_by_itself_is_the_same_component() -> None:
    deployment = deploy(lambda: CertManager("certificates", {"values": {"replicaCount": 2}}))
    release = deployment.one("certificates", "Release")
    assert release.inputs["values"] == {"crds": {"enabled": True, "keep": True}, "replicaCount": 2}
    assert release.parent == "certificates"


def test_options_of_the_platform_reach_every_resource() -> None:
    def program() -> None:
        first = pulumi.ComponentResource("test:index:Nodes", "nodes")
        namespace = pulumi.CustomResource("test:index:Thing", "thing", {}, pulumi.ResourceOptions(parent=first))
        opts = pulumi.ResourceOptions(depends_on=[namespace], protect=True, aliases=[pulumi.Alias(name="before")])
        Platform("platform", {"gpu_operator": {}}, opts)

    deployment = deploy(program)
    for name, type_ in (("platform-gpu-operator", "Release"), ("platform-gpu-operator-namespace", "Namespace")):
        found = deployment.one(name, type_)
        assert found.request.protect
        assert "thing" in {awaited.name for awaited in deployment.waits_for(found)}
    assert deployment.request("platform", "Platform").aliases


def test_a_kubeconfig_of_the_platform_is_that_of_every_object() -> None:
    deployment = deploy(lambda: Platform("platform", {"cert_manager": {}}, kubeconfig="apiVersion: v1\n"))
    objects = [resource for resource in deployment.recorded if resource.type.startswith("kubernetes:")]
    assert objects
    for object_ in objects:
        assert object_.request.provider.rpartition("::")[0].rpartition("::")[2] == "platform-kubernetes"
    assert deployment.one("platform-kubernetes").inputs["clusterIdentifier"] == "project.test.platform"
