"""Metrics: the exporter of Slurm's metrics, how Prometheus finds it, and alert rules for Prometheus' operator."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated

from pydantic import Field, StrictBool

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.scheduling import Scheduled
from soperator_pulumi.spec.types.duration import Duration, lasting
from soperator_pulumi.spec.types.names import DnsLabel, LabelKey, LabelValue
from soperator_pulumi.spec.types.quantity import PodResources, ResourceAmounts
from soperator_pulumi.spec.validation.base import Matches, Model
from soperator_pulumi.spec.validation.partial import known

_MAX_ADDRESS = 500

PageAddress = Annotated[
    str,
    Matches(r"https?://[^\s#]+", "needs an address with https:// or http://, without '#'.", _MAX_ADDRESS),
]
"""Address of a web page."""


class AlertsSpec(Model):
    """Alert rules and recorded series of the cluster (docs/monitoring.md), as a PrometheusRule."""

    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Further labels of the PrometheusRule, if your Prometheus only selects rules with certain labels."""
    runbooks: PageAddress | None = None
    """Address of your copy of docs/runbooks.md, to which alerts then link (`runbook_url`)."""


_HIDING = {"jobs", "nodes", "all"}
"""Values of PrivateData that hide the exporter's data from it."""


class MetricsSpec(Scheduled):
    """The pod that collects Slurm's metrics in the background, and serves them to Prometheus."""

    interval: Annotated[Duration, lasting(timedelta(seconds=10), timedelta(minutes=10))] = timedelta(seconds=30)
    """Time between two rounds of three requests to slurmctld, independent of the number of scrapes. Default: 30s."""
    allowed_namespaces: tuple[DnsLabel, ...] = ("monitoring",)
    """Namespaces whose pods may read the metrics, which name users and jobs. Default: monitoring, as in
    `platform.kube_prometheus_stack`."""
    pod_monitor: StrictBool = False
    """Create a PodMonitor, with which Prometheus' operator finds the pod. Otherwise, the pod only has the annotations
    `prometheus.io/scrape`, `port` and `path`."""
    events: StrictBool = False
    """Publish the start and end of drains by health checks as events on the pods of the nodes. The exporter's pod then
    has a service account that may create events in the cluster's namespace, and nothing else. Default: false."""
    node_conditions: StrictBool = False
    """Show drains by health checks as a condition `SlurmNodeHealthy/<namespace>` of the machines. The exporter's pod
    then has a service account that may list all Kubernetes nodes and change their status, which are rights on the whole
    Kubernetes. Default: false."""
    alerts: AlertsSpec | None = None
    """Alert rules, for Prometheus' operator, which must exist. Default: none; `{}` for all rules."""
    dashboards: StrictBool = False
    """Dashboards for Grafana, as ConfigMaps."""
    pod_resources: PodResources = PodResources(
        requests=ResourceAmounts(cpu="50m", memory="64Mi"), limits=ResourceAmounts(memory="256Mi")
    )
    """Resources of the exporter's container. Default: a twentieth of a CPU and 64 MiB, at most 256 MiB of memory."""


def calls_kubernetes(metrics: MetricsSpec) -> bool:
    """Return True if the exporter needs a service account."""
    return metrics.events or metrics.node_conditions


def problems(metrics: MetricsSpec | None, extra: Mapping[str, object], *, has_image: bool) -> Iterator[Problem]:
    """Yield problems between the fields of `metrics`, the images and Slurm's parameters."""
    if not known(metrics) or metrics is None:
        return
    if not has_image:
        yield Problem(
            "images.exporter", "missing, and metrics are on. Name the image that `make images` prints as `exporter`."
        )
    given = {key.lower(): str(value) for key, value in extra.items()} if known(extra) else {}
    hidden = _HIDING & {kind.strip().lower() for kind in given.get("privatedata", "").split(",")}
    if hidden:
        yield Problem(
            "metrics",
            f"given, but PrivateData in slurm.extra hides {', '.join(sorted(hidden))} from the exporter, which has "
            "no more rights than other users. Remove one of them.",
        )
