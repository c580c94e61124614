"""MariaDB's operator, which runs the database of accounting."""

from pydantic import StrictBool

from soperator_pulumi.spec.platform.chart_part import ChartPart


class MariadbOperatorSpec(ChartPart):
    """MariaDB's operator. It runs no database by itself."""

    highly_available: StrictBool = False
    """Run three replicas of the operator. Databases run without it, too."""
    monitors: StrictBool | None = None
    """Have Prometheus scrape the operator. Default: where the platform has kube_prometheus_stack."""
