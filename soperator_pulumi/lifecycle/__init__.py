"""Resources of Pulumi that act on a live cluster: thin adapters over `operations`.

Type tokens: `pulumi-python:dynamic/soperator:Prerequisites`, `:ConfigFiles`, `:NodesReady`,
`:PodsReady`, `:TreePopulated`, `:ActiveTree`, `:RemovedNodeSets`, `:NodeDrain`, `:DrainGate`. Served by the plugin:
`soperator-pulumi:index:Prerequisites` and so on.
"""

from soperator_pulumi.lifecycle.active_tree import ActiveTree
from soperator_pulumi.lifecycle.config_files import ConfigFiles
from soperator_pulumi.lifecycle.connection import AccessArgs, ClusterConnection, KubernetesAccess
from soperator_pulumi.lifecycle.drain_gate import DrainGate
from soperator_pulumi.lifecycle.node_drain import NodeDrain
from soperator_pulumi.lifecycle.nodes_ready import NodesReady
from soperator_pulumi.lifecycle.pods_ready import PodsReady
from soperator_pulumi.lifecycle.prerequisites import Prerequisites
from soperator_pulumi.lifecycle.removed_node_sets import RemovedNodeSets
from soperator_pulumi.lifecycle.tree_populated import TreePopulated
from soperator_pulumi.operations.configuration.desired_files import AfterSync, Reader
from soperator_pulumi.operations.configuration.slurmctld import SLURM_CONFIG_MAP
from soperator_pulumi.operations.nodes.live_node_set import (
    IDENTITY_ANNOTATION,
    NODE_SET_LABEL,
    OWNER_LABEL,
    POLICY_ANNOTATION,
)
from soperator_pulumi.operations.nodes.reconcile import TEMPLATE_ANNOTATION

__all__ = [
    "IDENTITY_ANNOTATION",
    "NODE_SET_LABEL",
    "OWNER_LABEL",
    "POLICY_ANNOTATION",
    "SLURM_CONFIG_MAP",
    "TEMPLATE_ANNOTATION",
    "AccessArgs",
    "ActiveTree",
    "AfterSync",
    "ClusterConnection",
    "ConfigFiles",
    "DrainGate",
    "KubernetesAccess",
    "NodeDrain",
    "NodesReady",
    "PodsReady",
    "Prerequisites",
    "Reader",
    "RemovedNodeSets",
    "TreePopulated",
]
