"""Prometheus rules as data: alerts, and recorded series that other rules and panels read."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

import yaml

from soperator_pulumi.monitoring.panels import HERE
from soperator_pulumi.spec.types.duration import duration_text

API_VERSION, KIND = "monitoring.coreos.com/v1", "PrometheusRule"
"""Resource that Prometheus' operator converts to a file of rules."""

RUNBOOKS = "docs/runbooks.md"
"""Page with a section for every alert, in this source tree."""

_INTERVAL = "1m"
"""Time between two evaluations."""


class AlertSeverity(StrEnum):
    """Urgency of an alert."""

    CRITICAL = "critical"
    """Jobs or data are lost, or no job can start: act now."""
    WARNING = "warning"
    """A part is out of service, or soon will be: act today."""
    INFO = "info"
    """For reports: nothing breaks."""


@dataclass(frozen=True)
class Recording:
    """A series that Prometheus computes and stores."""

    record: str
    expr: str
    """PromQL with the placeholder `$here`."""
    about: str
    """Meaning of the series, with its labels and unit."""


@dataclass(frozen=True)
class Alert:
    """A condition that operators of the cluster must know about."""

    name: str
    expr: str
    """PromQL with the placeholder `$here`. It returns nothing as long as all is well."""
    lasting: timedelta
    """Time for which the condition must hold before the alert fires."""
    severity: AlertSeverity
    summary: str
    """One line, which may contain labels of the series: `{{ $labels.node }}`."""
    description: str
    """Consequence, and the limit that was exceeded."""

    @property
    def runbook(self) -> str:
        """Section of the runbooks."""
        return f"{RUNBOOKS}#{self.name.lower()}"


def rule_groups(
    namespace: str, recordings: Iterable[Recording], alerts: Iterable[Alert], runbooks: str | None = None
) -> list[dict[str, Any]]:
    """Return the groups of rules for one cluster.

    Rules of several clusters share one Prometheus. Every rule selects the namespace of its cluster, so that no series
    is computed twice and no alert fires twice.

    Args:
        namespace: Namespace of the cluster.
        recordings: Series to record.
        alerts: Alerts.
        runbooks: Address of a copy of docs/runbooks.md that readers of alerts can open.
    """
    recorded = [{"record": recording.record, "expr": _in(namespace, recording.expr)} for recording in recordings]
    alerting = [_alert(namespace, alert, runbooks) for alert in alerts]
    named = {f"{namespace}-slurm-series": recorded, f"{namespace}-slurm-alerts": alerting}
    return [{"name": name, "interval": _INTERVAL, "rules": rules} for name, rules in named.items() if rules]


def rules_yaml(groups: list[dict[str, Any]]) -> str:
    """Return a file of rules in YAML, for a Prometheus without an operator (`rule_files`)."""
    return yaml.safe_dump({"groups": groups}, sort_keys=False, width=120)


def _in(namespace: str, expr: str) -> str:
    return expr.replace(HERE, f'namespace="{namespace}"')


def _alert(namespace: str, alert: Alert, runbooks: str | None) -> dict[str, Any]:
    link = {} if runbooks is None else {"runbook_url": f"{runbooks}#{alert.name.lower()}"}
    return {
        "alert": alert.name,
        "expr": _in(namespace, alert.expr),
        "for": duration_text(alert.lasting),
        "labels": {"severity": alert.severity.value, "namespace": namespace},
        "annotations": {
            "summary": alert.summary,
            "description": alert.description,
            "runbook": alert.runbook,
            **link,
        },
    }
