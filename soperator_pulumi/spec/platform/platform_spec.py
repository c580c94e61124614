"""Spec of the whole platform: its parts, and defaults that depend on the kind of Kubernetes and on other parts."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, TypeVar

from pydantic import model_validator

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.platform import chart_part, cilium, network_operator, shared_storage
from soperator_pulumi.spec.platform.cert_manager import CertManagerSpec
from soperator_pulumi.spec.platform.chart_part import ChartPart, ChartSource, source_problems
from soperator_pulumi.spec.platform.cilium import CiliumSpec
from soperator_pulumi.spec.platform.gpu_operator import DriverSource, GpuOperatorSpec
from soperator_pulumi.spec.platform.kube_prometheus_stack import KubePrometheusStackSpec
from soperator_pulumi.spec.platform.mariadb_operator import MariadbOperatorSpec
from soperator_pulumi.spec.platform.network_operator import NetworkOperatorSpec
from soperator_pulumi.spec.platform.shared_storage import SharedStorageSpec
from soperator_pulumi.spec.types.deferred import Maybe
from soperator_pulumi.spec.types.names import ObjectName
from soperator_pulumi.spec.validation.base import Model, broken_rules
from soperator_pulumi.spec.validation.partial import known

P = TypeVar("P", bound=ChartPart)

PARTS = (
    "cert_manager",
    "cilium",
    "kube_prometheus_stack",
    "mariadb_operator",
    "gpu_operator",
    "network_operator",
)
"""Parts in the order of their installation."""

GKE_INSTALL_DIR = "/home/kubernetes/bin/nvidia"
"""The only writable directory on GKE's machines from which programs may run (GPU Operator's manual, GKE)."""


class KubernetesKind(StrEnum):
    """Kind of Kubernetes, which decides what it already provides."""

    GENERIC = "generic"
    """Your own Kubernetes, for example by kubeadm or k3s: no driver, and a control plane that can be scraped."""
    EKS = "eks"
    """Amazon's Kubernetes."""
    GKE = "gke"
    """Google's Kubernetes."""
    AKS = "aks"
    """Microsoft's Kubernetes."""
    NEBIUS = "nebius"
    """Nebius' Kubernetes."""

    @property
    def managed(self) -> bool:
        """True if the provider runs the control plane, and has machine images with NVIDIA's driver."""
        return self is not KubernetesKind.GENERIC


class PlatformSpec(Model):
    """The platform of one Kubernetes. A part that is left out is neither installed nor checked."""

    kubernetes: KubernetesKind = KubernetesKind.GENERIC
    """Kind of the Kubernetes."""
    source: ChartSource | None = None
    """Location of all charts, such as a mirror without internet access. Default: the projects' own locations."""
    cert_manager: CertManagerSpec | None = None
    """cert-manager."""
    cilium: CiliumSpec | None = None
    """Cilium. Only for a Kubernetes cluster without a network, or in a mode on top of its network."""
    kube_prometheus_stack: KubePrometheusStackSpec | None = None
    """Prometheus, Alertmanager, Grafana and exporters."""
    mariadb_operator: MariadbOperatorSpec | None = None
    """MariaDB's operator."""
    gpu_operator: GpuOperatorSpec | None = None
    """NVIDIA's GPU Operator."""
    network_operator: NetworkOperatorSpec | None = None
    """NVIDIA's Network Operator."""
    storage_class: Maybe[ObjectName] | None = None
    """Existing StorageClass of the shared volume of jails (ReadWriteMany). Default: none, and clusters name theirs."""
    shared_storage: SharedStorageSpec | None = None
    """Shared volume of jails (ReadWriteMany) with its class or its volume. Default: none, and clusters name theirs."""

    @model_validator(mode="after")
    def _follow_the_rules(self) -> "PlatformSpec":
        found = list(platform_problems(self))
        if found:
            raise broken_rules(found)
        return self

    def part(self, name: str) -> ChartPart | None:
        """Return the part with a name in `PARTS`."""
        found: ChartPart | None = getattr(self, name)
        return found


def platform_problems(spec: PlatformSpec) -> Iterator[Problem]:
    """Yield the problems between fields of a spec, some of which may be unknown."""
    yield from source_problems(spec.source, "source")
    for name in PARTS:
        part = spec.part(name)
        if known(part) and part is not None:
            yield from chart_part.problems(part, name)
    if known(spec.cilium) and spec.cilium is not None:
        yield from cilium.problems(spec.cilium, "cilium")
    if known(spec.network_operator) and spec.network_operator is not None:
        yield from network_operator.problems(spec.network_operator, "network_operator")
    if known(spec.shared_storage, spec.storage_class) and spec.shared_storage is not None:
        yield from shared_storage.problems(spec.shared_storage, "shared_storage")
        if spec.storage_class is not None:
            yield Problem("storage_class", "given together with shared_storage, which names one. Remove it.")


def settled(spec: PlatformSpec) -> PlatformSpec:
    """Return the spec with the defaults that depend on the Kubernetes and on other parts filled in."""
    managed = spec.kubernetes.managed
    on_gke = spec.kubernetes is KubernetesKind.GKE
    monitors = spec.kube_prometheus_stack is not None
    replaced = spec.cilium is not None and spec.cilium.kube_proxy_replacement is not None
    defaults: dict[str, dict[str, Any]] = {
        "cilium": {"monitors": monitors},
        "kube_prometheus_stack": {"managed_control_plane": managed, "kube_proxy": not (managed or replaced)},
        "mariadb_operator": {"monitors": monitors},
        "gpu_operator": {
            "driver": DriverSource.MACHINE_IMAGE if managed else DriverSource.OPERATOR,
            "install_dir": GKE_INSTALL_DIR if on_gke else None,
        },
        "network_operator": {"node_feature_discovery": spec.gpu_operator is None},
    }
    parts = {name: _with(part, defaults.get(name, {})) for name in PARTS if (part := spec.part(name)) is not None}
    from_mirror = {name: _with(part, {"source": spec.source}) for name, part in parts.items()}
    return spec.model_copy(update=from_mirror)


def _with(part: P, defaults: dict[str, Any]) -> P:
    """Return a part with values for missing fields. For an existing part, nothing is filled in."""
    if part.exists:
        return part
    return part.model_copy(update={name: value for name, value in defaults.items() if getattr(part, name) is None})
