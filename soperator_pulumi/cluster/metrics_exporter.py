"""The exporter of Slurm's metrics, and the PodMonitor through which Prometheus finds it."""

import hashlib
from collections.abc import Sequence

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.apps.v1 import StatefulSet
from pulumi_kubernetes.core.v1 import (
    ConfigMap,
    ContainerArgs,
    ContainerPortArgs,
    HTTPGetActionArgs,
    PodTemplateSpecArgs,
    ProbeArgs,
)

from soperator_pulumi.cluster import mounts
from soperator_pulumi.cluster.container_images import published_images
from soperator_pulumi.cluster.containers import INIT, hardened, merged_users, munge_socket, requirements, users_sidecar
from soperator_pulumi.cluster.daemon import create_daemon
from soperator_pulumi.cluster.exporter_rights import (
    EXPORTER_ACCOUNT,
    ExporterRights,
    account_files,
    create_exporter_rights,
)
from soperator_pulumi.cluster.long_checks import long_check_reports
from soperator_pulumi.cluster.mounts import Mount
from soperator_pulumi.cluster.pod_template import Parts, Role, pod_template
from soperator_pulumi.cluster.rest_api import REST, serves_certificate
from soperator_pulumi.cluster.scope import Scope
from soperator_pulumi.lifecycle import PodsReady
from soperator_pulumi.render import layout
from soperator_pulumi.render.communication import client_slurm_conf
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.metrics import MetricsSpec, calls_kubernetes

METRICS = "metrics"
"""Component and StatefulSet of the exporter."""

_CONFIG_MAP = "metrics-config"


class MetricsExporter(pulumi.ComponentResource):
    """The exporter of Slurm's metrics: one pod, `metrics-0`. No job depends on it."""

    config_map: ConfigMap
    """The slurm.conf of the client programs that the exporter runs."""

    rights: ExporterRights | None
    """ServiceAccount with its rights; None without `metrics.events` and `metrics.node_conditions`."""

    stateful_set: StatefulSet
    """The StatefulSet `metrics`, of one replica."""

    ready: PodsReady
    """Waits until the exporter has completed its first round."""

    pod_monitor: CustomResource | None
    """The PodMonitor; None without `metrics.pod_monitor`."""

    def __init__(
        self,
        name: str,
        *,
        scope: Scope,
        parts: Parts,
        metrics: MetricsSpec,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("soperator-pulumi:index:MetricsExporter", name, {}, opts)
        own = scope.within(self)
        conf = client_slurm_conf(parts.spec)
        self.config_map = ConfigMap(
            f"{name}-config", metadata=own.metadata(_CONFIG_MAP, METRICS), data={"slurm.conf": conf}, opts=own.options()
        )
        self.rights = create_exporter_rights(name, own, METRICS, metrics) if calls_kubernetes(metrics) else None
        bindings = self.rights.bindings if self.rights is not None else []
        self.stateful_set, self.ready = create_daemon(
            name,
            own,
            parts.spec,
            METRICS,
            _template(own, parts, metrics, conf),
            depends_on=[self.config_map, *bindings],
        )
        self.pod_monitor = _pod_monitor(name, own, metrics) if metrics.pod_monitor else None
        self.register_outputs({})


def create_metrics(name: str, scope: Scope, parts: Parts) -> MetricsExporter | None:
    """Create the exporter, if the spec has `metrics`."""
    metrics = parts.spec.metrics
    if metrics is None:
        return None
    return MetricsExporter(f"{name}-metrics", scope=scope, parts=parts, metrics=metrics, opts=scope.options())


def _template(scope: Scope, parts: Parts, metrics: MetricsSpec, conf: str) -> PodTemplateSpecArgs:
    spec, reports, images = parts.spec, long_check_reports(parts), published_images(parts)
    own = [
        munge_socket(),
        mounts.config_files(_CONFIG_MAP, "/etc/slurm"),
        mounts.memory("tmp", layout.TEMPORARY_DIR, "16Mi"),
        merged_users(),
        *([account_files()] if calls_kubernetes(metrics) else []),
        *reports,
        *images,
    ]
    users, users_mounts = users_sidecar(spec, parts.jail.name)
    digest = hashlib.sha256(conf.encode()).hexdigest()
    role = Role(
        component=METRICS,
        daemon=_exporter(spec, metrics, own, has_reports=bool(reports), has_images=bool(images)),
        mounts=[*own, *users_mounts],
        scheduling=metrics,
        sidecars=[users],
        service_account=EXPORTER_ACCOUNT if calls_kubernetes(metrics) else None,
        annotations={
            # Client programs read their file at each start, and Kubernetes brings a change within a minute or two.
            "soperator-pulumi/config": digest,
            "prometheus.io/scrape": "true",
            "prometheus.io/port": str(layout.METRICS_PORT),
            "prometheus.io/path": layout.METRICS_PATH,
        },
    )
    return pod_template(scope, parts, role)


def _exporter(
    spec: ClusterSpec, metrics: MetricsSpec, places: Sequence[Mount], *, has_reports: bool, has_images: bool
) -> ContainerArgs:
    answers = HTTPGetActionArgs(path="/healthz", port=layout.METRICS_PORT)
    return ContainerArgs(
        name="exporter",
        image=spec.images.exporter or "",
        image_pull_policy=spec.images.pull_policy,
        command=[
            *(*INIT, "/usr/lib/soperator/slurm-exporter", "--port", str(layout.METRICS_PORT)),
            *("--interval", f"{metrics.interval.total_seconds():.0f}"),
            *(["--events", layout.ACCOUNT_DIR] if metrics.events else []),
            *(["--node-conditions", layout.ACCOUNT_DIR] if metrics.node_conditions else []),
            *(["--long-checks", layout.LONG_CHECK_REPORTS] if has_reports else []),
            *(["--images", layout.PUBLISHED_IMAGES] if has_images else []),
            *(["--rest-certificate", f"{REST}:{layout.REST_PORT}"] if serves_certificate(spec) else []),
        ],
        ports=[ContainerPortArgs(name="metrics", container_port=layout.METRICS_PORT)],
        security_context=hardened(uid=layout.EXPORTER_UID),
        resources=requirements(metrics.pod_resources),
        startup_probe=ProbeArgs(http_get=answers, period_seconds=1, timeout_seconds=5, failure_threshold=300),
        readiness_probe=ProbeArgs(http_get=answers, period_seconds=10, timeout_seconds=5, failure_threshold=3),
        liveness_probe=ProbeArgs(http_get=answers, period_seconds=30, timeout_seconds=10, failure_threshold=4),
        volume_mounts=[place.in_container() for place in places],
    )


def _pod_monitor(name: str, scope: Scope, metrics: MetricsSpec) -> CustomResource:
    """Create the PodMonitor, with the fields of monitoring.coreos.com/v1 in Prometheus' operator 0.93."""
    endpoint = {
        "port": "metrics",
        "path": layout.METRICS_PATH,
        "interval": f"{metrics.interval.total_seconds():.0f}s",
        # `node` and `partition` are those of the metric, not of the exporter's pod.
        "honorLabels": True,
    }
    return CustomResource(
        f"{name}-pod-monitor",
        api_version="monitoring.coreos.com/v1",
        kind="PodMonitor",
        metadata=scope.metadata(METRICS, METRICS),
        spec={"selector": {"matchLabels": scope.selector(METRICS)}, "podMetricsEndpoints": [endpoint]},
        opts=scope.options(),
    )
