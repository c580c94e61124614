"""Alert rules and dashboards of a cluster, where Prometheus' operator and Grafana's sidecar find them."""

from collections.abc import Mapping

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.core.v1 import ConfigMap
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from soperator_pulumi.cluster.scope import Scope
from soperator_pulumi.monitoring import grafana
from soperator_pulumi.monitoring.alerts import ALERTS
from soperator_pulumi.monitoring.dashboards import DASHBOARDS
from soperator_pulumi.monitoring.panels import Dashboard
from soperator_pulumi.monitoring.prometheus_rules import API_VERSION, KIND, rule_groups
from soperator_pulumi.monitoring.recordings import RECORDINGS
from soperator_pulumi.spec.metrics import AlertsSpec, MetricsSpec

RULES = "slurm-rules"
"""Name of the PrometheusRule."""


class RulesAndDashboards(pulumi.ComponentResource):
    """Alert rules and dashboards of a cluster. No pod depends on them."""

    rules: CustomResource | None
    """The PrometheusRule `slurm-rules`; None without `metrics.alerts`."""

    dashboards: Mapping[str, ConfigMap]
    """ConfigMaps with dashboards, by name; empty without `metrics.dashboards`."""

    def __init__(
        self,
        name: str,
        *,
        scope: Scope,
        metrics: MetricsSpec,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("soperator-pulumi:index:RulesAndDashboards", name, {}, opts)
        own = scope.within(self)
        self.rules = None if metrics.alerts is None else _create_rules(name, own, metrics.alerts)
        shown = DASHBOARDS if metrics.dashboards else ()
        self.dashboards = {dashboard.uid: _create_dashboard(name, own, dashboard) for dashboard in shown}
        self.register_outputs({})


def create_rules_and_dashboards(name: str, scope: Scope, metrics: MetricsSpec | None) -> RulesAndDashboards | None:
    """Create the alert rules and dashboards that the spec wants; None if it wants neither."""
    if metrics is None or (metrics.alerts is None and not metrics.dashboards):
        return None
    return RulesAndDashboards(f"{name}-monitoring", scope=scope, metrics=metrics, opts=scope.options())


def _create_rules(name: str, scope: Scope, alerts: AlertsSpec) -> CustomResource:
    return CustomResource(
        f"{name}-rules",
        api_version=API_VERSION,
        kind=KIND,
        metadata=_metadata(scope, RULES, alerts.labels),
        spec={"groups": rule_groups(scope.namespace, RECORDINGS, ALERTS, alerts.runbooks)},
        opts=scope.options(),
    )


def _create_dashboard(name: str, scope: Scope, dashboard: Dashboard) -> ConfigMap:
    """Create one dashboard. Its file has the same name in every cluster's namespace, so that Grafana shows it once."""
    return ConfigMap(
        f"{name}-{dashboard.uid}",
        metadata=_metadata(scope, f"dashboard-{dashboard.uid}", grafana.LABELS, grafana.FOLDER),
        data=grafana.dashboard_files([dashboard]),
        opts=scope.options(),
    )


def _metadata(
    scope: Scope, name: str, labels: Mapping[str, str], annotations: Mapping[str, str] | None = None
) -> ObjectMetaArgs:
    return ObjectMetaArgs(
        name=name,
        namespace=scope.namespace,
        labels=scope.object_labels(given=labels),
        annotations={**scope.annotations, **(annotations or {})} or None,
    )
