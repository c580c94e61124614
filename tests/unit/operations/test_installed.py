"""Parts that someone else installed: every fault is named with its cure, all at once, and nothing is changed."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from soperator_pulumi.kube.verbs import Json
from soperator_pulumi.operations.installed import installed_problems, installed_versions
from soperator_pulumi.platform import parse_platform
from soperator_pulumi.platform.requirements import namespace_requirements, requirements
from tests.fakes.small_world import SmallWorld

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
EVERYTHING: Json = {
    f"{kind}{end}": {} for kind in ("serviceMonitor", "podMonitor", "rule") for end in ("Selector", "NamespaceSelector")
}
PARTS: dict[str, dict[str, Any]] = {
    "cert_manager": {"exists": True},
    "cilium": {"exists": True},
    "kube_prometheus_stack": {"exists": True},
    "mariadb_operator": {"exists": True},
    "gpu_operator": {"exists": True},
    "network_operator": {"exists": True},
}


def definition(world: SmallWorld, name: str, version: str, **annotations: str) -> None:
    body = {"spec": {"versions": [{"name": "v0", "served": False}, {"name": version, "served": True}]}}
    world.objects[f"{DEFINITIONS}/{name}"] = {"metadata": {"name": name, "annotations": annotations}, **body}


def workload(world: SmallWorld, kind: str, labels: dict[str, str], container: str, image: str) -> None:
    plural = f"{kind.lower()}s"
    containers = [{"name": "sidecar", "image": "other:9.9.9"}, {"name": container, "image": image}]
    world.objects[f"/apis/apps/v1/{plural}/{container}"] = {
        "metadata": {"name": container, "namespace": "there", "labels": labels},
        "spec": {"template": {"spec": {"containers": containers}}},
        "status": {"readyReplicas": 1, "numberReady": 10, "desiredNumberScheduled": 10},
    }


def a_world() -> SmallWorld:
    """A Kubernetes with every part as we need it."""
    world = SmallWorld()
    app = "app.kubernetes.io/name"
    definition(world, "certificates.cert-manager.io", "v1")
    labels = {app: "cert-manager", "app.kubernetes.io/component": "controller"}
    workload(world, "Deployment", labels, "cert-manager-controller", "quay.example/controller:v1.18.2")
    definition(world, "ciliumnetworkpolicies.cilium.io", "v2")
    workload(
        world, "DaemonSet", {"k8s-app": "cilium"}, "cilium-agent", f"quay.example:5000/cilium:v1.17.1@sha256:{'0' * 64}"
    )
    for plural in ("prometheuses", "servicemonitors", "podmonitors", "prometheusrules"):
        version = {"operator.prometheus.io/version": "0.93.1"}
        definition(world, f"{plural}.monitoring.coreos.com", "v1", **version)
    world.objects["/apis/monitoring.coreos.com/v1/prometheuses/main"] = an_object("main", spec=EVERYTHING)
    world.objects["/apis/monitoring.coreos.com/v1/prometheuses/other"] = an_object("other", spec={})
    for plural in ("mariadbs", "databases", "users", "grants", "backups"):
        definition(world, f"{plural}.k8s.mariadb.com", "v1alpha1")
    workload(world, "Deployment", {app: "mariadb-operator"}, "controller", "ghcr.example/mariadb-operator:26.6.0")
    definition(world, "clusterpolicies.nvidia.com", "v1")
    workload(
        world,
        "Deployment",
        {"app.kubernetes.io/component": "gpu-operator"},
        "gpu-operator",
        "nvcr.example/gpu-operator:v25.3.4",
    )
    world.objects[POLICY] = an_object("cluster-policy", spec=copy.deepcopy(DRIVER), status={"state": "ready"})
    world.objects["/apis/node.k8s.io/v1/runtimeclasses/nvidia"] = an_object("nvidia")
    definition(world, "nicclusterpolicies.mellanox.com", "v1alpha1")
    workload(
        world, "Deployment", {app: "network-operator"}, "network-operator", "nvcr.example/network-operator:v25.7.0"
    )
    world.objects[ADAPTERS] = an_object("nic-cluster-policy", spec={"ofedDriver": {}}, status={"state": "ready"})
    return world


POLICY = "/apis/nvidia.com/v1/clusterpolicies/cluster-policy"
ADAPTERS = "/apis/mellanox.com/v1alpha1/nicclusterpolicies/nic-cluster-policy"
DRIVER: Json = {"driver": {"enabled": True, "upgradePolicy": {"autoUpgrade": False}}}


def an_object(name: str, **body: Any) -> Json:
    return {"metadata": {"name": name}, **body}


def problems(world: SmallWorld, **parts: Any) -> list[str]:
    spec = parse_platform({**PARTS, **parts})
    return [*map(str, installed_problems(world, [*requirements(spec)]))]


def test_a_kubernetes_that_has_everything_as_we_need_it_has_no_problem_and_stays_as_it_is() -> None:
    world = a_world()
    assert problems(world) == []
    assert world.changes == 0


def test_the_installed_versions_are_found() -> None:
    assert installed_versions(a_world(), [*requirements(parse_platform(PARTS))]) == {
        "cert_manager": "v1.18.2",
        "cilium": "v1.17.1",
        "kube_prometheus_stack": "0.93.1",
        "mariadb_operator": "26.6.0",
        "gpu_operator": "v25.3.4",
        "network_operator": "v25.7.0",
    }


def test_all_parts_that_are_missing_are_named_at_once() -> None:
    found = problems(SmallWorld())
    assert {text.partition(":")[0] for text in found} == PARTS.keys()
    assert all("exists: true, but " in text for text in found)


@pytest.mark.parametrize(
    ("labels", "level"), [({}, "unset"), ({"pod-security.kubernetes.io/enforce": "baseline"}, "baseline")]
)
def test_a_namespace_of_the_user_must_admit_privileged_pods_once_it_is_there(
    labels: dict[str, str], level: str
) -> None:
    spec = parse_platform({"gpu_operator": {"create_namespace": False, "namespace": "gpus"}})
    needs = [*namespace_requirements(spec)]
    world = SmallWorld()
    assert [*installed_problems(world, needs)] == []
    world.objects["/api/v1/namespaces/gpus"] = {"metadata": {"name": "gpus", "labels": labels}}
    (found,) = installed_problems(world, needs)
    assert str(found).startswith(
        f"gpu_operator.create_namespace: Namespace gpus: label pod-security.kubernetes.io/enforce is {level}, "
    )
    world.objects["/api/v1/namespaces/gpus"]["metadata"]["labels"] = {
        "pod-security.kubernetes.io/enforce": "privileged"
    }
    assert [*installed_problems(world, needs)] == []


FAULTS: dict[str, tuple[Callable[[Json], None], str, str]] = {
    "not ready": (
        lambda objects: objects[POLICY].update(status={"state": "notReady"}),
        "gpu_operator: ClusterPolicy cluster-policy: status.state is notReady, needs ready. To see why, run: ",
        "kubectl describe clusterpolicies.nvidia.com",
    ),
    "drivers change by themselves": (
        lambda objects: objects[POLICY]["spec"]["driver"]["upgradePolicy"].update(autoUpgrade=True),
        "gpu_operator: ClusterPolicy cluster-policy: spec.driver.upgradePolicy.autoUpgrade is true, ",
        "evicts slurmd while jobs run.",
    ),
    "no RuntimeClass": (
        lambda objects: objects.pop("/apis/node.k8s.io/v1/runtimeclasses/nvidia"),
        'gpu_operator: there is no RuntimeClass "nvidia". ',
        "gpu_operator.runtime_class.",
    ),
    "no policy": (
        lambda objects: objects.pop(ADAPTERS),
        "network_operator: there is no NicClusterPolicy. ",
        "Create it: without it the Network Operator does nothing.",
    ),
    "adapters' driver changes by itself": (
        lambda objects: objects[ADAPTERS]["spec"]["ofedDriver"].update(upgradePolicy={"autoUpgrade": True}),
        "network_operator: NicClusterPolicy nic-cluster-policy: spec.ofedDriver.upgradePolicy.autoUpgrade is true, ",
        "while jobs run.",
    ),
    "too old": (
        lambda objects: image(objects, "cert-manager-controller", "quay.example/controller:v1.9.1"),
        "cert_manager: cert-manager is v1.9.1, needs 1.12.0 or newer. ",
        "Upgrade it.",
    ),
    "no pod": (
        lambda objects: objects["/apis/apps/v1/deployments/controller"].update(status={}),
        "mariadb_operator: Deployment there/controller has no ready pod",
        "kubectl describe deployment -n there controller",
    ),
    "agents missing": (
        lambda objects: objects["/apis/apps/v1/daemonsets/cilium-agent"]["status"].update(numberReady=8),
        "cilium: DaemonSet there/cilium-agent has no ready pod, or some are not ready. ",
        "kubectl describe daemonset -n there cilium-agent",
    ),
    "another version of the definitions": (
        lambda objects: objects[f"{DEFINITIONS}/users.k8s.mariadb.com"]["spec"].update(
            versions=[{"name": "v9", "served": True}]
        ),
        "mariadb_operator: users.k8s.mariadb.com is served as v9, needs v1alpha1. ",
        "Upgrade mariadb-operator.",
    ),
    "monitors left out": (
        lambda objects: objects["/apis/monitoring.coreos.com/v1/prometheuses/main"].update(
            spec={**EVERYTHING, "serviceMonitorSelector": {"matchLabels": {"release": "x"}}}
        ),
        "kube_prometheus_stack: no Prometheus has spec.serviceMonitorSelector {}, ",
        "to false.",
    ),
}


def image(objects: Json, container: str, reference: str) -> None:
    containers = objects[f"/apis/apps/v1/deployments/{container}"]["spec"]["template"]["spec"]["containers"]
    containers[-1]["image"] = reference


@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_is_one_problem_with_its_cure(fault: str) -> None:
    world = a_world()
    change, start, cure = FAULTS[fault]
    change(world.objects)
    (found,) = problems(world)
    assert found.startswith(start)
    assert cure in found


def test_a_storage_class_that_is_not_there_is_named() -> None:
    world = a_world()
    (found,) = problems(world, storage_class="shared")
    assert found.startswith('storage_class: there is no StorageClass "shared". Give the name of an existing class ')
    world.objects["/apis/storage.k8s.io/v1/storageclasses/shared"] = an_object("shared")
    assert problems(world, storage_class="shared") == []


def test_a_driver_of_the_image_may_have_any_upgrade_policy() -> None:
    world = a_world()
    world.objects[POLICY]["spec"] = {"driver": {"enabled": False, "upgradePolicy": {"autoUpgrade": True}}}
    assert problems(world) == []


def test_an_agent_on_one_of_ten_machines_may_be_starting() -> None:
    world = a_world()
    world.objects["/apis/apps/v1/daemonsets/cilium-agent"]["status"]["numberReady"] = 9
    assert problems(world) == []


def test_secondary_networks_need_a_cilium_that_leaves_other_configurations_alone() -> None:
    world = a_world()
    networks = {"networks": [{"name": "n", "kind": "macvlan", "interface": "eth1"}]}
    path = "/api/v1/namespaces/kube-system/configmaps/cilium-config"
    world.objects[path] = an_object("cilium-config", data={"cni-exclusive": "true"})
    (found,) = problems(world, network_operator=networks)
    assert found.startswith("cilium: ConfigMap cilium-config: data.cni-exclusive is true, needs false. ")
    world.objects[path]["data"]["cni-exclusive"] = "false"
    assert problems(world, network_operator=networks) == []
