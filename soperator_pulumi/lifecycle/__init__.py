"""Resources that act on a live cluster, as Pulumi dynamic resources: thin adapters over plain classes.

Type tokens: `pulumi-python:dynamic/soperator:Prerequisites`, `:ConfigFiles`, `:NodesReady`,
`:PodsReady`.
"""

from soperator_pulumi.lifecycle.config_files import ConfigFiles
from soperator_pulumi.lifecycle.connection import Connection
from soperator_pulumi.lifecycle.files import AfterSync, Reader
from soperator_pulumi.lifecycle.nodes_ready import NodesReady
from soperator_pulumi.lifecycle.pods_ready import PodsReady
from soperator_pulumi.lifecycle.prerequisites import Prerequisites

__all__ = ["AfterSync", "ConfigFiles", "Connection", "NodesReady", "PodsReady", "Prerequisites", "Reader"]
