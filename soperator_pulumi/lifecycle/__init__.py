"""Pulumi resources that act on a live cluster: thin adapters over `operations`.

Type tokens: `pulumi-python:dynamic/soperator:Prerequisites`, `:Associations`, `:ConfigFiles`, `:NodesReady`,
`:PodsReady`, `:TreePopulated`, `:ActiveTree`, `:RemovedNodeSets`, `:NodeDrain`, `:DrainGate`, `:InstalledParts`,
`:SecretFiles`, `:DatabaseAccount`, `:SlurmVersion`, `:KeysInUse`, `:ImagesPublished`.
Served by the plugin: `soperator-pulumi:index:Prerequisites` and so on.
"""

from soperator_pulumi.lifecycle.active_tree import ActiveTree
from soperator_pulumi.lifecycle.associations import Associations
from soperator_pulumi.lifecycle.config_files import ConfigFiles
from soperator_pulumi.lifecycle.connection import AccessArgs, ClusterConnection, KubernetesAccess
from soperator_pulumi.lifecycle.database_account import DatabaseAccount
from soperator_pulumi.lifecycle.drain_gate import DrainGate
from soperator_pulumi.lifecycle.images_published import ImagesPublished
from soperator_pulumi.lifecycle.installed_parts import InstalledParts
from soperator_pulumi.lifecycle.keys_in_use import KeyKind, KeysInUse, key_fingerprint
from soperator_pulumi.lifecycle.node_drain import NodeDrain
from soperator_pulumi.lifecycle.nodes_ready import NodesReady
from soperator_pulumi.lifecycle.pods_ready import PodsReady
from soperator_pulumi.lifecycle.prerequisites import Prerequisites
from soperator_pulumi.lifecycle.removed_node_sets import RemovedNodeSets
from soperator_pulumi.lifecycle.secret_files import SecretFiles
from soperator_pulumi.lifecycle.slurm_version import SlurmVersion
from soperator_pulumi.lifecycle.tree_populated import TreePopulated
from soperator_pulumi.operations.configuration.desired_files import AfterSync, Reader
from soperator_pulumi.operations.configuration.slurmctld import SLURM_CONFIG_MAP
from soperator_pulumi.operations.nodes.live_node_set import (
    IDENTITY_ANNOTATION,
    NODE_SET_LABEL,
    OWNER_LABEL,
    POLICY_ANNOTATION,
)
from soperator_pulumi.operations.slurm_upgrade import VERSION_ANNOTATION

__all__ = [
    "IDENTITY_ANNOTATION",
    "NODE_SET_LABEL",
    "OWNER_LABEL",
    "POLICY_ANNOTATION",
    "SLURM_CONFIG_MAP",
    "VERSION_ANNOTATION",
    "AccessArgs",
    "ActiveTree",
    "AfterSync",
    "Associations",
    "ClusterConnection",
    "ConfigFiles",
    "DatabaseAccount",
    "DrainGate",
    "ImagesPublished",
    "InstalledParts",
    "KeyKind",
    "KeysInUse",
    "KubernetesAccess",
    "NodeDrain",
    "NodesReady",
    "PodsReady",
    "Prerequisites",
    "Reader",
    "RemovedNodeSets",
    "SecretFiles",
    "SlurmVersion",
    "TreePopulated",
    "key_fingerprint",
]
