"""Slurm on any Kubernetes as one `pulumi up`."""

from soperator_pulumi.cluster import Controller, LoginNodes, NodeSet, SlurmCluster, SlurmClusterArgs
from soperator_pulumi.spec import ClusterSpec, parse_cluster

__all__ = [
    "ClusterSpec",
    "Controller",
    "LoginNodes",
    "NodeSet",
    "SlurmCluster",
    "SlurmClusterArgs",
    "parse_cluster",
]
