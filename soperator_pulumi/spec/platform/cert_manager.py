"""cert-manager, which issues certificates of webhooks and of login nodes."""

from pydantic import StrictBool

from soperator_pulumi.spec.platform.chart_part import ChartPart


class CertManagerSpec(ChartPart):
    """cert-manager. No other part needs it."""

    highly_available: StrictBool = False
    """Run two replicas of the controller and of the CA injector, and three of the webhook."""
