"""Pods of critical classes, which GKE admits under a quota alone."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from soperator_pulumi.operations.preflight.diagnosis import Severity
from soperator_pulumi.operations.preflight.planned import PlannedCluster, PlannedPlatform
from soperator_pulumi.operations.preflight.provided_parts import critical_pod_findings
from soperator_pulumi.stack.preflight_plan import plans_of_file
from tests.fakes.small_world import SmallWorld
from tools import paths

QUOTAS = "/api/v1/namespaces/gpu-operator/resourcequotas"
GKE = {"metadata": {"name": "m", "labels": {"cloud.google.com/gke-nodepool": "gpus"}}}
ELSEWHERE = {"metadata": {"name": "m"}}
CLUSTER = {
    "name": "hpc",
    "node_sets": [{"name": "gpu", "cpus": 4, "memory_gib": 8, "gpus": {"count": 8}}],
    "jail": {"source": {"image": "debian:13"}},
    "images": dict.fromkeys(
        ["controller", "worker", "login", "accounting", "database", "munge", "jail_tools"], "registry.example.com/x:1"
    ),
}


def a_quota(*values: str, operator: str = "In", pods: str = "200") -> dict[str, Any]:
    scope = {"operator": operator, "scopeName": "PriorityClass", "values": [*values]}
    return {
        "metadata": {"name": "critical", "namespace": "gpu-operator"},
        "spec": {"hard": {"pods": pods}, "scopeSelector": {"matchExpressions": [scope]}},
    }


def found(*quotas: dict[str, Any], machine: dict[str, Any] = GKE) -> list[str]:
    world = SmallWorld()
    for number, quota in enumerate(quotas):
        world.objects[f"{QUOTAS}/{number}"] = quota
    findings = [*critical_pod_findings(world, ["gpu-operator"], [machine])]
    assert all(finding.severity is Severity.WARNED for finding in findings)
    return [finding.path for finding in findings]


def planned(folder: Path, platform: dict[str, Any]) -> PlannedPlatform:
    file = folder / "Pulumi.prod.yaml"
    config = {"soperator:platform": {**platform, "storage_class": "shared"}, "soperator:cluster": CLUSTER}
    file.write_text(yaml.safe_dump({"config": config}))
    ((cluster, _),) = plans_of_file(file)
    assert isinstance(cluster, PlannedCluster)
    return cluster.platform


def test_gke_without_a_quota_for_critical_pods_is_told() -> None:
    assert found() == ["Namespace gpu-operator"]


@pytest.mark.parametrize(
    "quota",
    [
        a_quota("system-cluster-critical"),
        a_quota("system-node-critical", operator="NotIn"),
        a_quota("system-node-critical", pods="0"),
        {"metadata": {"name": "all"}, "spec": {"hard": {"pods": "5"}}},
    ],
    ids=["another class", "all but this class", "no pod", "no class"],
)
def test_a_quota_that_admits_no_such_pod_does_not_count(quota: dict[str, Any]) -> None:
    assert found(quota) == ["Namespace gpu-operator"]


@pytest.mark.parametrize("quota", [a_quota("a", "system-node-critical"), a_quota(operator="Exists")])
def test_a_quota_for_critical_pods_is_enough(quota: dict[str, Any]) -> None:
    assert found(a_quota("b"), quota) == []


def test_other_kubernetes_need_no_quota() -> None:
    assert found(machine=ELSEWHERE) == []


def test_the_quota_of_the_page_is_enough() -> None:
    page = (paths.ROOT / "docs/kubernetes.md").read_text()
    text = page.split("  ```yaml\n  apiVersion: v1\n  kind: ResourceQuota\n")[1].split("  ```")[0]
    assert found(yaml.safe_load("\n".join(line[2:] for line in text.splitlines()))) == []


@pytest.mark.parametrize(
    ("platform", "namespaces"),
    [({"gpu_operator": {}}, ("gpu-operator",)), ({"gpu_operator": {"exists": True}}, ()), ({"cert_manager": {}}, ())],
    ids=str,
)
def test_the_namespace_of_an_operator_that_the_program_installs_is_looked_at(
    tmp_path: Path, platform: dict[str, Any], namespaces: tuple[str, ...]
) -> None:
    assert planned(tmp_path, platform).critical_namespaces == namespaces


@pytest.mark.parametrize(
    ("platform", "namespaces"),
    [
        ({"cert_manager": {}, "gpu_operator": {"exists": True}}, ("cert-manager",)),
        ({"kube_prometheus_stack": {"namespace": "watch"}, "gpu_operator": {}}, ("watch", "gpu-operator")),
        ({}, ()),
    ],
    ids=str,
)
def test_rights_are_reviewed_in_the_namespaces_of_the_charts_that_the_program_installs(
    tmp_path: Path, platform: dict[str, Any], namespaces: tuple[str, ...]
) -> None:
    assert {chart.namespace for chart in planned(tmp_path, platform).charts} == {*namespaces}
