"""The components of one Slurm cluster."""

from soperator_pulumi.cluster.admin import AdminShell
from soperator_pulumi.cluster.arguments import InvalidClusterError, SlurmClusterArgs
from soperator_pulumi.cluster.controller import Controller
from soperator_pulumi.cluster.jail import Jail
from soperator_pulumi.cluster.login import LoginNodes
from soperator_pulumi.cluster.node_set import NodeSet
from soperator_pulumi.cluster.slurm_cluster import SlurmCluster

__all__ = [
    "AdminShell",
    "Controller",
    "InvalidClusterError",
    "Jail",
    "LoginNodes",
    "NodeSet",
    "SlurmCluster",
    "SlurmClusterArgs",
]
