"""Values of charts: every one is known to its chart, and those that keep jobs alive are there."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from soperator_pulumi.platform.chart_values import known_keys, unknown_keys
from soperator_pulumi.platform.charts import CHART_OF_PART
from tests.rendered.platform.platforms import WHOLE, a_platform, release_of, values_of

EVERYTHING: dict[str, list[dict[str, Any]]] = {
    "cert_manager": [{}, {"highly_available": True}],
    "cilium": [
        {"mode": "own", "pod_cidr": "10.8.0.0/16", "kube_proxy_replacement": {"host": "api.example", "port": 443}},
        {"mode": "chained", "cni_config_map": "cni", "hubble": False},
        {"mode": "eks_chained", "monitors": True},
        {"mode": "eks"},
        {"mode": "gke", "pod_cidr": "10.8.0.0/16"},
        {"mode": "aks"},
    ],
    "kube_prometheus_stack": [
        {},
        {"volume": None, "managed_control_plane": True, "grafana": {"enabled": False}},
        {"volume": {"storage_class": "fast"}, "grafana": {"admin_secret": "mine"}},
    ],
    "mariadb_operator": [{}, {"highly_available": True, "monitors": True}],
    "gpu_operator": [
        {},
        {
            "driver_version": "595.91.07",
            "rdma": True,
            "gdrcopy": True,
            "mig_strategy": "mixed",
            "install_dir": "/home/kubernetes/bin/nvidia",
            "tolerations": [{"key": "pool", "value": "gpu", "effect": "NoSchedule"}],
        },
    ],
    "network_operator": [{}, {"node_selector": {"pool": "gpu"}, "ofed_driver": "doca3.4.1-26.04-1.1.0.0-1"}],
}
"""Descriptions of each part that between them give every value of ours."""


def cases() -> Iterator[Any]:
    for part, descriptions in EVERYTHING.items():
        for index, description in enumerate(descriptions):
            yield pytest.param(part, description, id=f"{part}-{index}")


@pytest.mark.parametrize(("part", "description"), [*cases()])
def test_every_value_of_this_package_is_known_to_the_chart(part: str, description: dict[str, Any]) -> None:
    values = values_of(part.replace("_", "-"), **{part: description})
    chart = CHART_OF_PART[part]
    assert values
    assert [*map(str, unknown_keys(values, known_keys(chart.known_keys), chart.name))] == []


def test_images_of_the_network_come_from_a_mirror() -> None:
    parts = {
        **WHOLE["network_operator"],
        "ofed_driver": "doca3.4.1-26.04-1.1.0.0-1",
        "images": "registry.example.com/nic",
    }
    spec = a_platform(network_operator=parts).one("platform-network-operator-policy").inputs["spec"]
    text = json.dumps(spec)
    assert text.count('"repository": "registry.example.com/nic"') == text.count('"repository"') >= 5
    assert "nvcr.io" not in text


def test_a_network_has_the_packets_and_the_routes_that_are_given() -> None:
    parts = {
        "ip_pools": [{"name": "rail", "subnet": "10.1.0.0/24", "gateway": "10.1.0.1", "routes": ["10.1.0.0/16"]}],
        "networks": [{"name": "rail", "kind": "macvlan", "interface": "eth1", "ip_pool": "rail", "mtu": 9000}],
    }
    deployment = a_platform(network_operator=parts)
    pool = deployment.one("platform-network-operator-pool-rail").inputs["spec"]
    assert (pool["gateway"], pool["routes"]) == ("10.1.0.1", [{"dst": "10.1.0.0/16"}])
    assert deployment.one("platform-network-operator-network-rail").inputs["spec"]["mtu"] == 9000


def test_no_driver_changes_below_running_jobs() -> None:
    driver = values_of("gpu-operator", gpu_operator={})["driver"]
    assert driver == {"enabled": True, "upgradePolicy": {"autoUpgrade": False}}
    policy = a_platform(network_operator={"ofed_driver": "24.10-0.7"}).one("platform-network-operator-policy")
    assert policy.inputs["spec"]["ofedDriver"]["upgradePolicy"] == {"autoUpgrade": False}


def test_metrics_of_gpus_have_the_job() -> None:
    mapping = values_of("gpu-operator", gpu_operator={"job_mapping": "/run/jobs"})["dcgmExporter"]["hpcJobMapping"]
    assert mapping == {"enabled": True, "directory": "/run/jobs"}


@pytest.mark.parametrize("mode", EVERYTHING["cilium"], ids=lambda item: item["mode"])
def test_multus_keeps_its_configuration_next_to_cilium(mode: dict[str, Any]) -> None:
    assert values_of("cilium", cilium=mode)["cni"]["exclusive"] is False


def test_the_certificates_of_hubble_are_not_made_by_each_rendering() -> None:
    assert values_of("cilium", cilium={"mode": "own"})["hubble"]["tls"]["auto"]["method"] == "cronJob"


def test_prometheus_takes_the_monitors_of_every_release() -> None:
    spec = values_of("kube-prometheus-stack", kube_prometheus_stack={})["prometheus"]["prometheusSpec"]
    kinds = ("serviceMonitor", "podMonitor", "rule", "probe", "scrapeConfig")
    assert all(spec[f"{kind}SelectorNilUsesHelmValues"] is False for kind in kinds)


@pytest.mark.parametrize(("kind", "scraped"), [("generic", True), ("eks", False), ("gke", False), ("nebius", False)])
def test_a_control_plane_that_no_one_can_reach_is_not_scraped(kind: str, *, scraped: bool) -> None:
    values = values_of("kube-prometheus-stack", kubernetes=kind, kube_prometheus_stack={})
    parts = ("kubeEtcd", "kubeControllerManager", "kubeScheduler", "kubeProxy")
    assert {values[part]["enabled"] for part in parts} == {scraped}


def test_a_kube_proxy_that_cilium_replaces_is_not_scraped() -> None:
    cilium = {"mode": "own", "kube_proxy_replacement": {"host": "api.example"}}
    values = values_of("kube-prometheus-stack", cilium=cilium, kube_prometheus_stack={})
    assert values["kubeProxy"]["enabled"] is False
    assert values["kubeEtcd"]["enabled"] is True


def test_prometheus_drops_samples_before_its_volume_is_full() -> None:
    spec = values_of("kube-prometheus-stack", kube_prometheus_stack={"volume": {"size_gib": 100}})
    found = spec["prometheus"]["prometheusSpec"]
    assert found["retentionSize"] == "87040MiB"
    assert found["storageSpec"]["volumeClaimTemplate"]["spec"]["resources"]["requests"]["storage"] == "100Gi"


def test_the_driver_is_that_of_the_image_where_the_provider_has_one() -> None:
    assert values_of("gpu-operator", kubernetes="eks", gpu_operator={})["driver"]["enabled"] is False
    assert values_of("gpu-operator", kubernetes="eks", gpu_operator={"driver": "operator"})["driver"]["enabled"] is True


def test_gke_gets_the_directory_whose_programs_may_run() -> None:
    values = values_of("gpu-operator", kubernetes="gke", gpu_operator={})
    assert values["toolkit"]["installDir"] == values["hostPaths"]["driverInstallDir"] == "/home/kubernetes/bin/nvidia"


def test_a_kubernetes_has_one_node_feature_discovery() -> None:
    both: dict[str, Any] = {"gpu_operator": {}, "network_operator": {}}
    assert values_of("network-operator", **both)["nfd"]["enabled"] is False
    assert values_of("gpu-operator", **both)["nfd"]["enabled"] is True
    assert values_of("network-operator", network_operator={})["nfd"]["enabled"] is True
    existing = {"gpu_operator": {"exists": True}, "network_operator": {}}
    assert values_of("network-operator", **existing)["nfd"]["enabled"] is False


def test_the_chart_s_own_taint_stays_next_to_further_ones_everywhere() -> None:
    taint = {"key": "pool", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
    values = values_of("gpu-operator", gpu_operator={"tolerations": [taint]})
    for tolerations in (values["daemonsets"]["tolerations"], values["node-feature-discovery"]["worker"]["tolerations"]):
        assert tolerations[-1] == taint
        assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in tolerations


def test_operators_are_scraped_where_the_platform_has_the_definitions_of_monitors() -> None:
    def scraped(**parts: Any) -> tuple[bool, bool]:
        cilium, mariadb = (values_of(part, **parts) for part in ("cilium", "mariadb-operator"))
        return "prometheus" in cilium, mariadb["metrics"]["enabled"]

    operators: dict[str, Any] = {"cilium": {"mode": "own"}, "mariadb_operator": {}}
    assert scraped(**operators) == (False, False)
    assert scraped(**operators, kube_prometheus_stack={}) == (True, True)
    assert scraped(**operators, kube_prometheus_stack={"exists": True}) == (True, True)


def test_definitions_stay_when_the_platform_leaves() -> None:
    deployment = a_platform(**WHOLE)
    monitors = deployment.one("platform-prometheus-definitions-prometheus-operator-crds")
    assert monitors.inputs["values"] == {"crds": {"annotations": {"helm.sh/resource-policy": "keep"}}}
    assert release_of(deployment, "kube-prometheus-stack").inputs["values"]["crds"] == {"enabled": False}
    assert release_of(deployment, "cert-manager").inputs["values"]["crds"] == {"enabled": True, "keep": True}
    databases = deployment.one("platform-mariadb-operator-mariadb-operator-crds")
    assert databases.request.retainOnDelete
    assert release_of(deployment, "mariadb-operator").inputs["values"]["crds"] == {"enabled": False}


def test_given_values_win_key_by_key_and_null_takes_a_default_away() -> None:
    given = {"driver": {"version": "1.2.3"}, "mig": None, "dcgmExporter": {"hpcJobMapping": None}}
    values = values_of("gpu-operator", gpu_operator={"values": given})
    assert values["driver"] == {"enabled": True, "upgradePolicy": {"autoUpgrade": False}, "version": "1.2.3"}
    assert "mig" not in values
    assert values["dcgmExporter"] == {}


def test_values_of_another_version_pass_unchecked() -> None:
    part = {"version": "v27.1.0", "unchecked_values": {"driver": {"brandNew": 1}}}
    deployment = a_platform(gpu_operator=part)
    release = release_of(deployment, "gpu-operator")
    assert release.inputs["version"] == "v27.1.0"
    assert release.inputs["values"]["driver"]["brandNew"] == 1


def test_null_takes_a_default_away_among_unchecked_values_too() -> None:
    values = values_of(
        "cert-manager", cert_manager={"values": {"crds": {"keep": False}}, "unchecked_values": {"crds": None}}
    )
    assert "crds" not in values


def test_parts_of_the_network_operator_have_the_tag_of_its_version() -> None:
    operator = {**WHOLE["network_operator"], "version": "26.7.0"}
    policy = a_platform(network_operator=operator).one("platform-network-operator-policy").inputs["spec"]
    tags = {policy[part]["version"] for part in ("rdmaSharedDevicePlugin", "sriovDevicePlugin", "nvIpam")}
    assert tags | {part["version"] for part in policy["secondaryNetwork"].values()} == {"network-operator-v26.7.0"}


def test_definitions_go_with_another_version_of_their_operator() -> None:
    stack = {"version": "90.0.0", "definitions_version": "33.0.0"}
    deployment = a_platform(mariadb_operator={"version": "27.1.0"}, kube_prometheus_stack=stack)
    versions = {resource.inputs["name"]: resource.inputs["version"] for resource in deployment.resources("Release")}
    assert versions == {
        "mariadb-operator-crds": "27.1.0",
        "mariadb-operator": "27.1.0",
        "prometheus-operator-crds": "33.0.0",
        "kube-prometheus-stack": "90.0.0",
    }


def test_two_renderings_are_the_same() -> None:
    first, second = (
        json.dumps(
            {resource.name: resource.inputs["values"] for resource in deployment.resources("Release")}, sort_keys=True
        )
        for deployment in (a_platform(**WHOLE), a_platform(**{**WHOLE, "kubernetes": "generic"}))
    )
    assert first == second


def test_the_policy_of_network_adapters_has_each_pool_and_the_programs_of_its_networks() -> None:
    spec = a_platform(**WHOLE).one("platform-network-operator-policy").inputs["spec"]
    shared = json.loads(spec["rdmaSharedDevicePlugin"]["config"])["configList"]
    assert shared == [{"resourceName": "hca", "rdmaHcaMax": 63, "selectors": {"vendors": ["15b3"], "ifNames": ["ib0"]}}]
    whole = json.loads(spec["sriovDevicePlugin"]["config"])["resourceList"]
    assert whole == [
        {
            "resourcePrefix": "nvidia.com",
            "resourceName": "vf",
            "selectors": {"vendors": ["15b3"], "devices": ["1021"], "isRdma": True},
        }
    ]
    assert spec["secondaryNetwork"].keys() == {"multus", "cniPlugins", "ipoib"}
    assert {item["version"] for item in spec["secondaryNetwork"].values()} == {"network-operator-v26.4.1"}
    assert "ofedDriver" not in spec
    assert "ipam" in a_platform(**WHOLE).one("platform-network-operator-network-rail-0").inputs["spec"]
