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
    from soperator_pulumi.platform import (
        CertManager,
        Cilium,
        GpuOperator,
        KubePrometheusStack,
        MariadbOperator,
        NetworkOperator,
        Platform,
        PlatformSpec,
        SharedStorage,
        SlurmPlatformArgs,
        parse_platform,
    )
    from soperator_pulumi.spec.cluster import ClusterSpec, parse_cluster

__version__ = "0.1.0"

NAMESPACE = "soperator"
"""Publisher in the names of the packages for other languages: `@soperator/soperator-pulumi`."""
REPOSITORY = "https://soperator.example/soperator-pulumi"
"""Address of the sources, from which Go imports such a package. It is a placeholder: a release sets its own."""

__all__ = [
    "AdminShell",
    "CertManager",
    "Cilium",
    "ClusterSpec",
    "Controller",
    "GpuOperator",
    "Jail",
    "KubePrometheusStack",
    "LoginNodes",
    "MariadbOperator",
    "NetworkOperator",
    "NodeSet",
    "Platform",
    "PlatformSpec",
    "SharedStorage",
    "SlurmCluster",
    "SlurmClusterArgs",
    "SlurmPlatformArgs",
    "parse_cluster",
    "parse_platform",
]

_MODULES = {
    **dict.fromkeys(("ClusterSpec", "parse_cluster"), "soperator_pulumi.spec.cluster"),
    **dict.fromkeys(
        ("AdminShell", "Controller", "Jail", "LoginNodes", "NodeSet", "SlurmCluster", "SlurmClusterArgs"),
        "soperator_pulumi.cluster",
    ),
}
_MODULES |= dict.fromkeys({*__all__} - _MODULES.keys(), "soperator_pulumi.platform")


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
