"""The components of one Slurm cluster."""

from soperator_pulumi.cluster.args import SlurmClusterArgs
from soperator_pulumi.cluster.controller import Controller
from soperator_pulumi.cluster.errors import ClusterArgumentsError, InvalidClusterError
from soperator_pulumi.cluster.login import LoginNodes
from soperator_pulumi.cluster.node_set import NodeSet
from soperator_pulumi.cluster.slurm_cluster import SlurmCluster

__all__ = [
    "ClusterArgumentsError",
    "Controller",
    "InvalidClusterError",
    "LoginNodes",
    "NodeSet",
    "SlurmCluster",
    "SlurmClusterArgs",
]
