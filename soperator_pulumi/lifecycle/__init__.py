"""Resources that act on a live cluster, as Pulumi dynamic resources: thin adapters over plain classes.

Type tokens: `pulumi-python:dynamic/soperator:Prerequisites`, `:ConfigFiles`, `:NodesReady`,
`:PodsReady`, `:TreePopulated`, `:ActiveTree`.
"""

from soperator_pulumi.lifecycle.active_tree import ActiveTree
from soperator_pulumi.lifecycle.config_files import ConfigFiles
from soperator_pulumi.lifecycle.connection import Connection
from soperator_pulumi.lifecycle.files import AfterSync, Reader
from soperator_pulumi.lifecycle.nodes_ready import NodesReady
from soperator_pulumi.lifecycle.pods_ready import PodsReady
from soperator_pulumi.lifecycle.prerequisites import Prerequisites
from soperator_pulumi.lifecycle.tree_populated import TreePopulated

__all__ = [
    "ActiveTree",
    "AfterSync",
    "ConfigFiles",
    "Connection",
    "NodesReady",
    "PodsReady",
    "Prerequisites",
    "Reader",
    "TreePopulated",
]
