"""Dashboards, by their subject."""

from soperator_pulumi.monitoring.dashboards.cluster_overview import CLUSTER_OVERVIEW
from soperator_pulumi.monitoring.dashboards.job_details import JOB_DETAILS
from soperator_pulumi.monitoring.dashboards.nodes_and_gpus import NODES_AND_GPUS
from soperator_pulumi.monitoring.dashboards.nodes_health import NODES_HEALTH
from soperator_pulumi.monitoring.dashboards.queue_and_users import QUEUE_AND_USERS

DASHBOARDS = (CLUSTER_OVERVIEW, NODES_AND_GPUS, QUEUE_AND_USERS, JOB_DETAILS, NODES_HEALTH)
"""All dashboards, starting with the one to read first."""
