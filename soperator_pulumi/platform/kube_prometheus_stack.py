"""kube-prometheus-stack, and the release of its definitions."""

from collections.abc import Mapping
from typing import Any, ClassVar

import pulumi
import pulumi_random as random
from pulumi_kubernetes.core.v1 import Secret
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from soperator_pulumi.platform.chart_component import ChartComponent, PartScope, object_labels
from soperator_pulumi.platform.charts import PROMETHEUS_OPERATOR_CRDS
from soperator_pulumi.spec.platform.kube_prometheus_stack import KubePrometheusStackSpec
from soperator_pulumi.spec.types.duration import duration_text

ADMIN_SECRET = "grafana-admin"  # noqa: S105 - a Secret's name
ADMIN_USER = "admin"
_PASSWORD_LENGTH = 32


class PrometheusDefinitions(ChartComponent):
    """Definitions of Prometheus' operator, and the namespace of the monitoring. A destroy keeps both."""

    PART: ClassVar[str] = "kube_prometheus_stack"

    def _install(self, spec: KubePrometheusStackSpec, scope: PartScope) -> None:
        scope = self._namespaced(spec, scope, _BECAUSE, keep=True)
        self.release = self._release(
            spec,
            scope,
            KEPT_DEFINITIONS,
            definitions=PROMETHEUS_OPERATOR_CRDS,
            definitions_version=spec.definitions_version,
        )


class KubePrometheusStack(ChartComponent):
    """Prometheus with its operator, Grafana and exporters. A destroy keeps the namespace and the samples."""

    PART: ClassVar[str] = "kube_prometheus_stack"

    definitions: PrometheusDefinitions | None
    """Definitions of the operator; None if the stack exists already."""

    def __init__(
        self,
        resource_name: str,
        args: KubePrometheusStackSpec | Mapping[str, Any] | None = None,
        opts: pulumi.ResourceOptions | None = None,
        *,
        scope: PartScope | None = None,
        definitions: PrometheusDefinitions | None = None,
    ) -> None:
        """Create the part.

        Args:
            resource_name: Name of the component.
            args: Description of the part.
            opts: Options of the component.
            scope: Scope of the platform that the part belongs to; None for a part without a platform.
            definitions: Definitions that the platform has created; None to create them here.
        """
        self.definitions = definitions
        super().__init__(resource_name, args, opts, scope=scope)

    def _install(self, spec: KubePrometheusStackSpec, scope: PartScope) -> None:
        if self.definitions is None:
            name = f"{self._name}-definitions"
            self.definitions = PrometheusDefinitions(name, spec, scope.options(), scope=scope)
        scope = scope.following(self.definitions)
        self.namespace = self.definitions.namespace
        before = self._admin(spec, scope)
        self.release = self._release(spec, scope.following(*before), kube_prometheus_stack_values(spec))

    def _admin(self, spec: KubePrometheusStackSpec, scope: PartScope) -> list[Secret]:
        """Create Grafana's administrator, unless the spec names a Secret for it.

        The chart would generate a new password at every rendering, which is a difference in every preview.
        """
        if not spec.grafana.enabled or spec.grafana.admin_secret is not None:
            return []
        password = random.RandomPassword(
            f"{self._name}-grafana-admin", length=_PASSWORD_LENGTH, special=False, opts=scope.options()
        )
        return [
            Secret(
                f"{self._name}-grafana-admin-secret",
                metadata=ObjectMetaArgs(
                    name=ADMIN_SECRET, namespace=self._namespace_of(spec), labels=object_labels(self._chart.name)
                ),
                string_data={"admin-user": ADMIN_USER, "admin-password": password.result},
                opts=scope.options(),
            )
        ]


_BECAUSE = "node-exporter reads the machine's network, processes and file systems"

KEPT_DEFINITIONS = {"crds": {"annotations": {"helm.sh/resource-policy": "keep"}}}
"""Values of the chart of the definitions."""


def kube_prometheus_stack_values(spec: KubePrometheusStackSpec) -> dict[str, Any]:
    """Return the default values for the chart."""
    managed = bool(spec.managed_control_plane)
    return {
        "crds": {"enabled": False},
        **{part: {"enabled": not managed} for part in ("kubeEtcd", "kubeControllerManager", "kubeScheduler")},
        "kubeProxy": {"enabled": bool(spec.kube_proxy)},
        "prometheus": {
            "prometheusSpec": {
                # true selects only monitors with this release's label, and silently ignores those of Slurm.
                **{f"{kind}SelectorNilUsesHelmValues": False for kind in _SELECTORS},
                "retention": duration_text(spec.retention),
                **_volume(spec),
            }
        },
        "grafana": _grafana(spec),
    }


_SELECTORS = ("serviceMonitor", "podMonitor", "rule", "probe", "scrapeConfig")


def _volume(spec: KubePrometheusStackSpec) -> dict[str, Any]:
    """Return the values of Prometheus' volume. Samples are dropped before its write-ahead log runs out of space."""
    volume = spec.volume
    if volume is None:
        return {}
    claim: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": f"{volume.size_gib}Gi"}},
        **({} if volume.storage_class is None else {"storageClassName": volume.storage_class}),
    }
    return {
        "retentionSize": f"{volume.size_gib * 1024 * 85 // 100}MiB",
        "storageSpec": {"volumeClaimTemplate": {"spec": claim}},
    }


def _grafana(spec: KubePrometheusStackSpec) -> dict[str, Any]:
    if not spec.grafana.enabled:
        return {"enabled": False, "forceDeployDashboards": True}
    secret = spec.grafana.admin_secret or ADMIN_SECRET
    return {
        "enabled": True,
        "admin": {"existingSecret": secret, "userKey": "admin-user", "passwordKey": "admin-password"},
        "sidecar": {"dashboards": {"searchNamespace": "ALL", "folderAnnotation": "grafana_folder"}},
    }
