"""kube-prometheus-stack: Prometheus with its operator, Alertmanager, Grafana and exporters."""

from datetime import timedelta
from typing import Annotated

from pydantic import StrictBool

from soperator_pulumi.spec.platform.chart_part import ChartPart, ChartVersion
from soperator_pulumi.spec.storage import MAX_GIB
from soperator_pulumi.spec.types.deferred import Maybe
from soperator_pulumi.spec.types.duration import Duration, lasting
from soperator_pulumi.spec.types.names import ObjectName
from soperator_pulumi.spec.validation.base import Model, whole


class MetricsVolume(Model):
    """Volume of Prometheus."""

    size_gib: Annotated[int, whole(1, MAX_GIB)] = 100
    """Size in GiB. Default: 100, about a month for a hundred machines."""
    storage_class: Maybe[ObjectName] | None = None
    """StorageClass of block storage (ReadWriteOnce), never of the shared NFS. Default: the default class of the
    Kubernetes."""


class GrafanaSpec(Model):
    """Grafana."""

    enabled: StrictBool = True
    """Install Grafana. If false, dashboards still become ConfigMaps, for your own Grafana."""
    admin_secret: ObjectName | None = None
    """Secret in the namespace with the keys `admin-user` and `admin-password`. Default: a generated password in the
    Secret `grafana-admin`."""


class KubePrometheusStackSpec(ChartPart):
    """Prometheus, its operator, Alertmanager, Grafana, kube-state-metrics and node-exporter."""

    definitions_version: ChartVersion | None = None
    """Version of the chart `prometheus-operator-crds` that matches another `version`. Default: the tested version."""
    retention: Annotated[Duration, lasting(timedelta(hours=1), timedelta(days=3650))] = timedelta(days=30)
    """Time for which Prometheus keeps samples."""
    volume: MetricsVolume | None = MetricsVolume()
    """Volume of Prometheus. With null, samples are lost with the pod."""
    managed_control_plane: StrictBool | None = None
    """The provider runs etcd, scheduler and controller manager, so they cannot be scraped. Default: on EKS, GKE, AKS
    and Nebius."""
    kube_proxy: StrictBool | None = None
    """Scrape kube-proxy. Default: unless the control plane is managed, or Cilium replaces kube-proxy."""
    grafana: GrafanaSpec = GrafanaSpec()
    """Grafana."""
