"""Real charts: values of our components in the hands of a real API server, and a monitoring that runs."""

import json
import secrets
import subprocess
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

from soperator_pulumi.monitoring.alerts import ALERTS
from soperator_pulumi.monitoring.prometheus_rules import rule_groups
from soperator_pulumi.monitoring.recordings import RECORDINGS
from soperator_pulumi.platform.cert_manager import cert_manager_values
from soperator_pulumi.platform.cilium import cilium_values
from soperator_pulumi.platform.kube_prometheus_stack import kube_prometheus_stack_values
from soperator_pulumi.spec.platform.cert_manager import CertManagerSpec
from soperator_pulumi.spec.platform.cilium import CiliumMode, CiliumSpec
from soperator_pulumi.spec.platform.kube_prometheus_stack import KubePrometheusStackSpec
from tests import left_behind
from tests.cluster import monitoring as images
from tests.cluster.chart_folder import chart_folder
from tests.conftest import Kubernetes
from tests.engine.conftest import AVAILABLE, Stack
from tests.rendered.cluster.clusters import a_deployment
from tests.waiting import wait_until
from tools import paths
from tools.console import UserError
from tools.dashboard.found_prometheus import in_kubernetes, only_namespace
from tools.engine import StepOp
from tools.engine.local.helm import helm_binary

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

RELEASE = "kube-prometheus-stack"
SMALL: Mapping[str, Any] = {
    "global": {"imageRegistry": images.REGISTRY},
    "alertmanager": {"enabled": False},
    "defaultRules": {"create": False},
    "nodeExporter": {"enabled": False},
    "prometheusOperator": {"admissionWebhooks": {"enabled": False}, "tls": {"enabled": False}},
}
"""Values that leave out every image but those of the tests."""
SLURM = "hpc"
"""Namespace of a cluster whose rules Prometheus has from its beginning: it would take a minute to read new ones."""


def the_stack(namespace: str, **of_prometheus: Any) -> dict[str, Any]:
    """Return the component, with settings of Prometheus."""
    settings = {"scrapeInterval": "5s", **of_prometheus}
    rules = {"slurm": {"groups": rule_groups(SLURM, RECORDINGS, ALERTS)}}
    return {
        "name": "stack",
        "type": "KubePrometheusStack",
        "properties": {
            "source": {"folder": str(chart_folder())},
            "namespace": namespace,
            "volume": None,
            "grafana": {"enabled": False},
            "managed_control_plane": True,
            "kube_proxy": False,
            "timeout": "5m",
            "values": {**SMALL, "prometheus": {"prometheusSpec": settings}, "additionalPrometheusRulesMap": rules},
        },
    }


@pytest.fixture(scope="module", params=AVAILABLE)
def deployed(
    request: pytest.FixtureRequest, kubernetes: Kubernetes, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """The monitoring, deployed by each engine that is there."""
    assert kubernetes.target.embedded, "the images are brought to the embedded Kubernetes"
    images.bring(kubernetes.target.embedded)
    namespace = left_behind.record(f"monitoring-{secrets.token_hex(3)}")
    stack = Stack(request.param, kubernetes, tmp_path_factory.mktemp("monitoring"), namespace)
    try:
        stack.up(the_stack(namespace))
        yield stack
        stack.deployer().destroy()
    finally:  # the component keeps namespace and definitions, and the operator the Service of its own
        kubernetes.run("delete", "namespace", namespace, "--ignore-not-found", "--wait=false")
        kubernetes.run("delete", "service", f"{RELEASE}-kubelet", "--namespace=kube-system", "--ignore-not-found")
        kubernetes.run("delete", "--ignore-not-found", *definitions(kubernetes))


def definitions(kubernetes: Kubernetes) -> list[str]:
    """Return the definitions of Prometheus' operator in the cluster."""
    listed = kubernetes.run("get", "crd", "-o", "name").split()
    return [name for name in listed if name.endswith("monitoring.coreos.com")] or ["crd/none"]


@pytest.fixture
def monitoring(deployed: Stack) -> Stack:
    """The monitoring, up."""
    if deployed.find("services", f"{RELEASE}-prometheus") is None:
        # The component keeps its namespace, and an engine takes over no object that it has not made.
        deployed.kubernetes.run("delete", "namespace", deployed.namespace)
        deployed.up(the_stack(deployed.namespace))
    wait_until(lambda: is_ready(deployed), what="Prometheus is ready")
    return deployed


def is_ready(stack: Stack) -> bool:
    """Return True if Prometheus' pod, which the operator makes, is ready."""
    pod = stack.find("pods", f"prometheus-{RELEASE}-prometheus-0") or {}
    conditions = pod.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def ask(stack: Stack, path: str, **query: str) -> dict[str, Any]:
    """Ask Prometheus by the API server."""
    service = f"/api/v1/namespaces/{stack.namespace}/services/{RELEASE}-prometheus:9090/proxy"
    answer = stack.kubernetes.run("get", "--raw", f"{service}/api/v1/{path}?{urlencode(query)}")
    return dict(json.loads(answer)["data"])


def found(stack: Stack, query: str) -> list[dict[str, Any]]:
    """Return the series of a query."""
    return list(ask(stack, "query", query=query)["result"])


def test_prometheus_scrapes_kubernetes_and_its_objects(monitoring: Stack) -> None:
    def jobs_up() -> set[str]:
        return {series["metric"]["job"] for series in found(monitoring, "up == 1")}

    wanted = {"apiserver", "kubelet", "kube-state-metrics", f"{RELEASE}-operator", f"{RELEASE}-prometheus"}
    wait_until(lambda: wanted <= jobs_up(), what=f"{wanted} are up")
    pods = f'kube_pod_info{{namespace="{monitoring.namespace}"}}'
    wait_until(lambda: len(found(monitoring, pods)) >= 3, what="the pods of the monitoring are known")


def test_prometheus_takes_the_rules_of_a_cluster(monitoring: Stack) -> None:
    ours = {*(recording.record for recording in RECORDINGS), *(alert.name for alert in ALERTS)}

    def rules() -> list[dict[str, Any]]:
        groups = [group for group in ask(monitoring, "rules")["groups"] if group["name"].startswith(SLURM)]
        return [rule for group in groups for rule in group["rules"]]

    # Prometheus may have begun before its operator knew the rules.
    wait_until(lambda: {rule["name"] for rule in rules()} == ours, what="Prometheus has the rules", timeout_seconds=240)
    assert [rule for rule in rules() if rule.get("lastError")] == []


def test_the_page_of_dashboards_finds_prometheus_in_the_kubernetes(monitoring: Stack) -> None:
    api = in_kubernetes(monitoring.kubernetes.target)
    assert api.place == f"{monitoring.namespace}/prometheus-operated"
    wait_until(lambda: bool(api.now("up == 1", time.time())), what="Prometheus has scraped something")
    with pytest.raises(UserError, match="has no metrics of a Slurm cluster"):
        only_namespace(api, time.time())


def test_a_changed_value_arrives_in_prometheus(monitoring: Stack) -> None:
    label = f"test-{secrets.token_hex(3)}"
    changed = the_stack(monitoring.namespace, externalLabels={"cluster": label})
    (change,) = monitoring.preview(changed).changed
    assert change.operation is StepOp.UPDATE
    assert all(path.startswith("values.prometheus.prometheusSpec.externalLabels") for path in change.paths)
    monitoring.up()
    wait_until(lambda: label in ask(monitoring, "status/config")["yaml"], what="Prometheus has the label")


def test_an_upgrade_that_the_api_server_refuses_fails_and_prometheus_runs_on(monitoring: Stack) -> None:
    error = monitoring.fails(lambda: monitoring.up(the_stack(monitoring.namespace, logLevel="loud")))
    assert "logLevel" in str(error)
    assert found(monitoring, "vector(1)")
    assert monitoring.up(the_stack(monitoring.namespace)).names(StepOp.UPDATE) == {"stack"}
    assert monitoring.up().changed == ()


def test_a_removal_leaves_definitions_and_namespace_alone(monitoring: Stack) -> None:
    def left() -> list[str]:
        """Return the objects of the release, those of its operator among them, which Kubernetes collects."""
        kinds = ("get", "deploy,sts,svc,cm,secret", "-n", monitoring.namespace, "-o", "name")
        return [name for name in monitoring.kubernetes.run(*kinds).split() if RELEASE in name]

    monitoring.deployer().destroy()
    wait_until(lambda: left() == [], what="the objects of the release have gone")
    wait_until(lambda: monitoring.pods() == [], what="the pods have gone")
    assert len(definitions(monitoring.kubernetes)) == 10


def rendered(chart: str, namespace: str, values: Mapping[str, Any]) -> str:
    """Return the objects of a chart, rendered for a Kubernetes cluster with the definitions of Prometheus' operator."""
    words = ["template", chart, str(chart_folder() / chart), f"--namespace={namespace}", "--values=-"]
    done = subprocess.run(
        [helm_binary.built(), *words, "--api-versions=monitoring.coreos.com/v1"],
        input=json.dumps(values),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("chart", "values"),
    [
        ("cert-manager", cert_manager_values(CertManagerSpec())),
        ("cilium", cilium_values(CiliumSpec())),
        (RELEASE, kube_prometheus_stack_values(KubePrometheusStackSpec())),
    ],
)
def test_the_page_lists_the_rights_on_what_a_chart_makes_outside_of_its_namespace(
    chart: str, values: Mapping[str, Any]
) -> None:
    page = (paths.ROOT / "docs/platform.md").read_text()
    rows = [line for line in page.split("\n## Rights\n")[1].split("\n## ")[0].splitlines() if line.startswith("| `")]
    objects = [item for item in yaml.load_all(rendered(chart, "own", values), Loader=yaml.CBaseLoader) if item]
    outside = {(item["kind"], item["metadata"].get("namespace", "")) for item in objects} - {
        (item["kind"], "own") for item in objects
    }
    assert outside
    for kind, namespace in outside:
        named = [row for row in rows if f"`{kind.lower()}s`" in row and (not namespace or f"`{namespace}`" in row)]
        assert named, f"{kind} in {namespace or 'the whole Kubernetes'}"


@pytest.fixture(scope="module")
def namespace(kubernetes: Kubernetes) -> Iterator[str]:
    """A namespace for objects that are offered to the API server."""
    name = f"offered-{secrets.token_hex(3)}"
    kubernetes.run("create", "namespace", name)
    yield name
    kubernetes.run("delete", "namespace", name, "--wait=false")


def accepted(kubernetes: Kubernetes, manifest: str) -> set[str]:
    """Offer objects to the API server, which has to accept all and keeps none; return their kinds."""
    # Base: only texts are read, and PyYAML knows no other form of the scalar `=` in definitions.
    kinds = [item["kind"] for item in yaml.load_all(manifest, Loader=yaml.CBaseLoader) if item]
    offer = ("apply", "--server-side", "--dry-run=server", "--force-conflicts", "-o", "name", "-f", "-")
    assert len(kubernetes.run(*offer, stdin=manifest).split()) == len(kinds)
    return {*kinds}


CILIUMS: Mapping[CiliumMode, dict[str, Any]] = {
    CiliumMode.CHAINED: {"cni_config_map": "cni"},
    CiliumMode.GKE: {"pod_cidr": "10.4.0.0/14"},
}
"""Fields that a mode needs."""


@pytest.mark.parametrize("mode", CiliumMode)
def test_the_api_server_accepts_cilium_in_each_mode(
    kubernetes: Kubernetes, deployed: Stack, namespace: str, mode: CiliumMode
) -> None:
    spec = CiliumSpec(mode=mode, monitors=True, **CILIUMS.get(mode, {}))
    ours = {"tls": {"secretsNamespace": {"name": namespace}}}  # the chart's other namespace, which has to exist
    manifest = rendered("cilium", namespace, {**cilium_values(spec), **ours})
    assert {"DaemonSet", "ServiceMonitor"} <= accepted(kubernetes, manifest)


@pytest.mark.parametrize("highly_available", [True, False])
def test_the_api_server_accepts_cert_manager(kubernetes: Kubernetes, namespace: str, highly_available: bool) -> None:
    values = cert_manager_values(CertManagerSpec(highly_available=highly_available))
    manifest = rendered("cert-manager", namespace, values)
    assert {"CustomResourceDefinition", "Deployment"} <= accepted(kubernetes, manifest)


def test_the_api_server_accepts_the_whole_of_kube_prometheus_stack(
    kubernetes: Kubernetes, deployed: Stack, namespace: str
) -> None:
    manifest = rendered(RELEASE, namespace, kube_prometheus_stack_values(KubePrometheusStackSpec()))
    assert {"Prometheus", "Alertmanager", "PrometheusRule", "DaemonSet"} <= accepted(kubernetes, manifest)


def test_the_api_server_accepts_the_monitoring_of_a_cluster(
    kubernetes: Kubernetes, deployed: Stack, namespace: str
) -> None:
    metrics = {"pod_monitor": True, "alerts": {}, "dashboards": True}
    recorded = a_deployment(namespace=namespace, metrics=metrics).recorded
    parts = {
        resource.name for resource in recorded if resource.type.endswith((":RulesAndDashboards", ":MetricsExporter"))
    }
    offered = [
        dict(resource.inputs)
        for resource in recorded
        if resource.parent in parts and resource.type.startswith("kubernetes:")
    ]
    kinds = accepted(kubernetes, yaml.safe_dump_all(offered))
    assert {"PrometheusRule", "PodMonitor", "ConfigMap", "StatefulSet"} == kinds
