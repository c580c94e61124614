"""Alert rules of a cluster, for Prometheus' operator."""

from typing import Annotated

from pydantic import Field

from soperator_pulumi.spec.types.names import LabelKey, LabelValue
from soperator_pulumi.spec.validation.base import Matches, Model

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
