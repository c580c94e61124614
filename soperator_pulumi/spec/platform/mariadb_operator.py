"""MariaDB's operator, which runs the database of accounting."""

from pydantic import StrictBool

from soperator_pulumi.spec.platform.chart_part import ChartPart


class MariadbOperatorSpec(ChartPart):
    """MariaDB's operator. On its own it runs no database."""

    highly_available: StrictBool = False
    """Run three replicas of the operator. Databases also run without it."""
    monitors: StrictBool | None = None
    """Let Prometheus scrape the operator. Default: if the platform has kube_prometheus_stack."""
