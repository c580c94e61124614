"""A Prometheus server in Kubernetes, and the Slurm cluster that it monitors."""

import shutil
import subprocess
from pathlib import Path

from tools.chosen_cluster import ChosenCluster
from tools.console import UserError
from tools.dashboard.prometheus_api import PrometheusApi

_NEEDS = (
    "`make dashboard` draws from Prometheus. Give its address: make dashboard PROMETHEUS=http://localhost:9090 (for "
    "one in a Kubernetes: kubectl port-forward --namespace monitoring service/prometheus-operated 9090). Or have one "
    "installed: `kube_prometheus_stack` under soperator:platform, and `metrics` in the cluster (docs/monitoring.md)."
)


def only_namespace(prometheus: PrometheusApi, at: float) -> str:
    """Return the namespace of the only cluster in Prometheus' data."""
    found = sorted({series.labels.get("namespace", "") for series in prometheus.now("slurm_nodes", at)} - {""})
    if not found:
        raise UserError(
            f"Prometheus at {prometheus.place} has no metrics of a Slurm cluster. Set `metrics` in the cluster's "
            "description (docs/monitoring.md), or wait a minute after the first `make up` with it."
        )
    if len(found) > 1:
        raise UserError(
            f"Prometheus knows the clusters in {', '.join(found)}. Choose one: make dashboard NAMESPACE={found[0]}"
        )
    return found[0]


def in_kubernetes(chosen: ChosenCluster) -> PrometheusApi:
    """Return the Prometheus that its operator runs in a Kubernetes cluster, reached through the API server."""
    program = chosen.embedded.bin_dir / "kubectl" if chosen.embedded is not None else shutil.which("kubectl")
    if program is None or not Path(program).exists() or not chosen.kubeconfig.exists():
        raise UserError(_NEEDS)
    context = ["--context", chosen.context] if chosen.context else []
    kubectl = [str(program), "--kubeconfig", str(chosen.kubeconfig), *context, "--request-timeout=30s"]

    def run(*words: str) -> str:
        done = subprocess.run([*kubectl, *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise UserError(f"kubectl {words[0]}: {done.stderr.strip()}. {_NEEDS}")
        return done.stdout

    listed = 'jsonpath={range .items[*]}{.metadata.namespace}{"\\n"}{end}'
    services = run("get", "services", "--all-namespaces", "--selector", "operated-prometheus=true", "--output", listed)
    if not services.split():
        raise UserError(f"The Kubernetes has no Prometheus of an operator. {_NEEDS}")
    service = f"/api/v1/namespaces/{services.split()[0]}/services/prometheus-operated:9090/proxy"
    return PrometheusApi(lambda path: run("get", "--raw", service + path), f"{services.split()[0]}/prometheus-operated")
