"""Alert rules and dashboards as objects of Kubernetes, where the operator and Grafana's sidecar find them."""

import json
from typing import Any

import pytest

from soperator_pulumi import parse_cluster
from soperator_pulumi.errors import SpecError
from soperator_pulumi.lifecycle import OWNER_LABEL
from soperator_pulumi.monitoring.alerts import ALERTS
from soperator_pulumi.monitoring.dashboards import DASHBOARDS
from soperator_pulumi.monitoring.grafana import dashboard_json
from soperator_pulumi.platform.kube_prometheus_stack import kube_prometheus_stack_values
from soperator_pulumi.spec.platform.kube_prometheus_stack import KubePrometheusStackSpec
from tests.rendered.cluster.clusters import a_deployment, a_spec

TYPE = "soperator-pulumi:index:RulesAndDashboards"


def monitored(**metrics: Any) -> list[dict[str, Any]]:
    """Return the objects of a cluster's rules and dashboards."""
    recorded = a_deployment(metrics=metrics, namespace="research").recorded
    names = {resource.name for resource in recorded if resource.type == TYPE}
    return [{"type": resource.type, **resource.inputs} for resource in recorded if resource.parent in names]


def test_a_cluster_has_neither_unless_it_asks() -> None:
    assert not a_deployment().resources(":RulesAndDashboards")
    assert not a_deployment(metrics={}).resources(":RulesAndDashboards")


def test_alerts_are_one_prometheus_rule_for_the_cluster_s_namespace() -> None:
    (rule,) = monitored(alerts={})
    assert (rule["kind"], rule["apiVersion"]) == ("PrometheusRule", "monitoring.coreos.com/v1")
    assert (rule["metadata"]["name"], rule["metadata"]["namespace"]) == ("slurm-rules", "research")
    rules = [item for group in rule["spec"]["groups"] for item in group["rules"]]
    assert {rule["alert"] for rule in rules if "alert" in rule} == {alert.name for alert in ALERTS}
    assert all('namespace="research"' in rule["expr"] for rule in rules)
    assert not any("runbook_url" in rule.get("annotations", {}) for rule in rules)


def test_a_prometheus_that_takes_certain_labels_finds_the_rules_and_people_their_runbooks() -> None:
    labels = {"release": "ours", "app.kubernetes.io/name": "prometheus"}
    (rule,) = monitored(alerts={"labels": labels, "runbooks": "https://wiki.example.com/slurm"})
    assert labels.items() <= rule["metadata"]["labels"].items()
    assert OWNER_LABEL in rule["metadata"]["labels"]
    first = rule["spec"]["groups"][-1]["rules"][0]
    assert first["annotations"]["runbook_url"] == f"https://wiki.example.com/slurm#{ALERTS[0].name.lower()}"


def test_dashboards_are_where_the_sidecar_of_our_monitoring_looks() -> None:
    values = kube_prometheus_stack_values(KubePrometheusStackSpec())["grafana"]["sidecar"]["dashboards"]
    found = monitored(dashboards=True)
    assert {entry["metadata"]["name"] for entry in found} == {f"dashboard-{dashboard.uid}" for dashboard in DASHBOARDS}
    for entry in found:
        assert entry["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert entry["metadata"]["annotations"][values["folderAnnotation"]] == "Slurm"
    files = {name: json.loads(text) for entry in found for name, text in entry["data"].items()}
    assert files == {f"{dashboard.uid}.json": dashboard_json(dashboard) for dashboard in DASHBOARDS}


@pytest.mark.parametrize("address", ["wiki.example.com", "https://wiki.example.com/#there", "https://wiki example.com"])
def test_a_wrong_address_of_runbooks_is_refused(address: str) -> None:
    with pytest.raises(SpecError, match=r"metrics\.alerts\.runbooks: got .* needs an address"):
        parse_cluster(a_spec(name="hpc", metrics={"alerts": {"runbooks": address}}))
