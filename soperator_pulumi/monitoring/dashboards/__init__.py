"""Dashboards, by their subject."""

from soperator_pulumi.monitoring.dashboards.cluster_overview import CLUSTER_OVERVIEW
from soperator_pulumi.monitoring.dashboards.jobs import JOB_DETAILS, QUEUE_AND_USERS
from soperator_pulumi.monitoring.dashboards.nodes import NODES_AND_GPUS, NODES_HEALTH

DASHBOARDS = (CLUSTER_OVERVIEW, NODES_AND_GPUS, QUEUE_AND_USERS, JOB_DETAILS, NODES_HEALTH)
"""All dashboards, starting with the one to read first."""
