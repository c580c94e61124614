"""Alert rules of a cluster, for the operator of Prometheus."""

from typing import Annotated

from pydantic import Field

from soperator_pulumi.spec.types.names import LabelKey, LabelValue
from soperator_pulumi.spec.validation.base import Matches, Model

_MAX_ADDRESS = 500

PageAddress = Annotated[
    str,
    Matches(r"https?://[^\s#]+", "needs an address with https:// or http://, without '#'.", _MAX_ADDRESS),
]
"""Address of a page on the web."""


class AlertsSpec(Model):
    """Alert rules and recorded series of the cluster (docs/monitoring.md), as a PrometheusRule."""

    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Further labels of the PrometheusRule, where a Prometheus of yours takes rules with certain labels alone."""
    runbooks: PageAddress | None = None
    """Address of your copy of docs/runbooks.md: alerts then have a link to it (`runbook_url`)."""
