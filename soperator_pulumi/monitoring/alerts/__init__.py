"""Alerts, by their subject."""

from soperator_pulumi.monitoring.alerts.controller_alerts import CONTROLLER_ALERTS
from soperator_pulumi.monitoring.alerts.node_alerts import HARDWARE_ALERTS, NODE_ALERTS
from soperator_pulumi.monitoring.alerts.queue_alerts import QUEUE_ALERTS

ALERTS = (*CONTROLLER_ALERTS, *NODE_ALERTS, *QUEUE_ALERTS, *HARDWARE_ALERTS)
"""All alerts."""
