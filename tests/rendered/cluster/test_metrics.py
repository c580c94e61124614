"""The exporter of metrics: its pod, its network, and the PodMonitor."""

from typing import Any

import pytest

from soperator_pulumi import parse_cluster
from soperator_pulumi.errors import SpecError
from soperator_pulumi.testing import Deployment
from tests.rendered.cluster.clusters import API_SERVERS, IMAGES, a_deployment, a_spec, containers_of, pod_of
from tests.rendered.cluster.test_network import allowed, outgoing, peer_of


def with_metrics(**changes: Any) -> Deployment:
    return a_deployment(metrics=changes)


def ingress(deployment: Deployment, component: str) -> list[dict[str, Any]]:
    rules = deployment.one(f"hpc-network-{component}").inputs["spec"].get("ingress")
    return [*(rules or [])]


def test_a_cluster_without_metrics_has_no_exporter() -> None:
    assert not [resource for resource in a_deployment().resources() if "metrics" in resource.name]


def test_prometheus_finds_the_pod_by_its_annotations() -> None:
    template = with_metrics().one("hpc-metrics", "StatefulSet").inputs["spec"]["template"]

    wanted = {"prometheus.io/scrape": "true", "prometheus.io/port": "9341", "prometheus.io/path": "/metrics"}
    assert wanted.items() <= template["metadata"]["annotations"].items()


def test_the_exporter_runs_as_a_user_without_rights_or_keys() -> None:
    pod = pod_of(with_metrics(), "hpc-metrics")

    (exporter,) = pod["containers"]
    assert exporter["securityContext"]["runAsUser"] == 64035
    assert exporter["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert not pod["automountServiceAccountToken"]
    assert {volume_mount["mountPath"] for volume_mount in exporter["volumeMounts"]} == {
        *("/etc/slurm", "/run/munge", "/tmp", "/var/lib/extrausers")
    }


def test_the_exporter_reads_the_reports_of_long_checks_and_nothing_else_of_the_homes() -> None:
    pod = pod_of(a_deployment(metrics={}, health={"long_checks": {"memory_bandwidth": {}}}), "hpc-metrics")

    (exporter,) = pod["containers"]
    (reports,) = [
        volume_mount for volume_mount in exporter["volumeMounts"] if volume_mount["mountPath"] == "/run/long-checks"
    ]
    assert (reports["subPath"], reports["readOnly"]) == ("home/soperator-health/reports", True)
    assert exporter["command"][-2:] == ["--long-checks", "/run/long-checks"]


@pytest.mark.parametrize(
    ("rest", "arguments"),
    [({"tls": {"secret": "certificate"}}, ["--rest-certificate", "rest:6820"]), ({}, []), (None, [])],
)
def test_the_exporter_reads_the_certificate_that_the_rest_api_serves_and_mounts_none(
    rest: dict[str, Any] | None, arguments: list[str]
) -> None:
    deployment = a_deployment(metrics={}, **({} if rest is None else {"rest": rest}))
    pod = pod_of(deployment, "hpc-metrics")

    assert pod["containers"][0]["command"][8:] == arguments
    assert "certificate" not in str(pod["volumes"])
    may_call = [rule for rule in outgoing(deployment)["metrics"] if "6820" in str(rule).replace(".0", "")]
    assert [[peer_of(peer) for peer in rule["to"]] for rule in may_call] == ([["rest"]] if arguments else [])
    if rest is not None:
        assert allowed(deployment, "rest") == ({("metrics", "6820")} if arguments else set())


def test_the_exporter_reads_the_store_of_images_for_everyone() -> None:
    pod = pod_of(a_deployment(metrics={}, containers={}), "hpc-metrics")

    (exporter,) = pod["containers"]
    (store,) = [mount for mount in exporter["volumeMounts"] if mount["mountPath"] == "/var/lib/soperator/images"]
    assert (store["subPath"], store["readOnly"]) == ("container-images", True)
    assert exporter["command"][-2:] == ["--images", "/var/lib/soperator/images"]


def test_the_named_namespaces_alone_read_the_metrics() -> None:
    (rule,) = ingress(with_metrics(allowed_namespaces=["prometheus"]), "metrics")

    assert [item["namespaceSelector"]["matchLabels"] for item in rule["from"]] == [
        {"kubernetes.io/metadata.name": "prometheus"}
    ]
    assert ingress(with_metrics(allowed_namespaces=[]), "metrics") == []


def test_the_exporter_reaches_slurmctld() -> None:
    (rule,) = ingress(with_metrics(), "controller")

    assert {peer_of(item) for item in rule["from"]} == {"controller", "sessions", "worker", "metrics"}


def test_a_pod_monitor_selects_the_pod_and_names_the_cluster() -> None:
    spec = with_metrics(pod_monitor=True, interval="1m").one("hpc-metrics-pod-monitor").inputs["spec"]

    assert spec["selector"]["matchLabels"]["app.kubernetes.io/component"] == "metrics"
    (endpoint,) = spec["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["interval"]) == ("metrics", "60s")


def test_without_events_the_pod_has_no_account_and_no_way_to_kubernetes() -> None:
    deployment = with_metrics()

    assert not [resource for resource in deployment.resources() if resource.type.startswith("kubernetes:rbac")]
    assert pod_of(deployment, "hpc-metrics").get("serviceAccountName") is None
    assert "ipBlock" not in str(deployment.one("hpc-network-metrics").inputs)


def test_events_come_with_the_right_to_create_them_in_the_namespace_and_no_other() -> None:
    deployment = with_metrics(events=True)

    (role,) = deployment.resources("rbac.authorization.k8s.io/v1:Role")
    assert role.inputs["rules"] == [{"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}]
    (binding,) = deployment.resources(":RoleBinding")
    assert binding.inputs["roleRef"]["name"] == role.inputs["metadata"]["name"]
    namespace = role.inputs["metadata"]["namespace"]
    (subject,) = binding.inputs["subjects"]
    assert (subject["name"], subject["namespace"]) == ("metrics-exporter", namespace)
    assert not deployment.resources(":ClusterRole")


def test_conditions_of_machines_come_with_two_rights_on_all_machines_and_one_in_the_namespace() -> None:
    deployment = with_metrics(node_conditions=True)

    (cluster_role,) = deployment.resources("rbac.authorization.k8s.io/v1:ClusterRole")
    assert cluster_role.inputs["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
    ]
    (role,) = deployment.resources("rbac.authorization.k8s.io/v1:Role")
    assert role.inputs["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    (binding,) = deployment.resources(":ClusterRoleBinding")
    namespace = role.inputs["metadata"]["namespace"]
    assert (
        binding.inputs["roleRef"]["name"] == cluster_role.inputs["metadata"]["name"] == f"{namespace}-metrics-exporter"
    )
    assert [subject["namespace"] for subject in binding.inputs["subjects"]] == [namespace]
    (exporter,) = pod_of(deployment, "hpc-metrics")["containers"]
    assert "--node-conditions" in exporter["command"]
    assert "--events" not in exporter["command"]


def test_the_token_is_in_the_exporter_s_container_alone() -> None:
    pod = pod_of(with_metrics(events=True), "hpc-metrics")

    assert (pod["serviceAccountName"], pod["automountServiceAccountToken"]) == ("metrics-exporter", False)
    having = [
        name
        for name, container in containers_of(pod).items()
        if any(m["name"] == "account" for m in container["volumeMounts"])
    ]
    assert having == ["exporter"]


def test_events_open_the_addresses_of_kubernetes_to_the_exporter() -> None:
    rules = with_metrics(events=True).one("hpc-network-metrics").inputs["spec"]["egress"]

    assert [peer["ipBlock"]["cidr"] for peer in rules[-1]["to"]] == API_SERVERS
    assert all(rule.get("to") or rule.get("ports") for rule in rules)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"images": {**IMAGES, "exporter": None}}, "images.exporter: missing, and metrics are on."),
        (
            {"slurm": {"extra": {"PrivateData": "accounts, Jobs"}}},
            "metrics: given, but PrivateData in slurm.extra hides jobs",
        ),
        ({"metrics": {"interval": "1s"}}, "metrics.interval"),
    ],
)
def test_an_exporter_that_could_not_count_is_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse_cluster({"name": "hpc", **a_spec(**{"metrics": {}, **changes})})
    assert problem in str(refused.value)
