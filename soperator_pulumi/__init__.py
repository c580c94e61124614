"""Slurm on any Kubernetes as one `pulumi up`."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from soperator_pulumi.cluster import (
        AdminShell,
        Controller,
        Jail,
        LoginNodes,
        NodeSet,
        SlurmCluster,
        SlurmClusterArgs,
    )
    from soperator_pulumi.spec.cluster import ClusterSpec, parse_cluster

__version__ = "0.1.0"

__all__ = [
    "AdminShell",
    "ClusterSpec",
    "Controller",
    "Jail",
    "LoginNodes",
    "NodeSet",
    "SlurmCluster",
    "SlurmClusterArgs",
    "parse_cluster",
]

_MODULES = dict.fromkeys(__all__, "soperator_pulumi.cluster") | {
    "ClusterSpec": "soperator_pulumi.spec.cluster",
    "parse_cluster": "soperator_pulumi.spec.cluster",
}


def __getattr__(name: str) -> object:
    """Import a public name on first use (PEP 562).

    The server of dynamic resources needs `lifecycle` alone. An import of all would load pulumi-kubernetes: a second in
    every `up`.
    """
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
