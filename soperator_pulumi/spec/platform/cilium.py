"""Cilium: the pod network, or network policies on top of another one."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field, StrictBool

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.platform.chart_part import ChartPart
from soperator_pulumi.spec.types.addresses import LAST_PORT, Cidr
from soperator_pulumi.spec.types.names import ObjectName
from soperator_pulumi.spec.validation.base import Model, whole
from soperator_pulumi.spec.validation.partial import known


class CiliumMode(StrEnum):
    """Role of Cilium in the Kubernetes network."""

    OWN = "own"
    """The only network of a cluster that has none: addresses from Cilium's own pool, tunnels between machines."""
    CHAINED = "chained"
    """Network policies for any network plugin that creates veth pairs, chained after it in your own conflist."""
    EKS_CHAINED = "eks_chained"
    """Network policies on top of the AWS VPC CNI, which keeps assigning addresses."""
    EKS = "eks"
    """Addresses of the VPC without the AWS VPC CNI, which must not run on the machines."""
    GKE = "gke"
    """A GKE cluster without Dataplane V2."""
    AKS = "aks"
    """An AKS cluster without a network plugin (`--network-plugin none`)."""


class ApiServerAddress(Model):
    """Address of the Kubernetes API that works without kube-proxy."""

    host: Annotated[str, Field(min_length=1, max_length=253)]
    """Name or address."""
    port: Annotated[int, whole(1, LAST_PORT)] = 6443
    """Port. Default: 6443."""


class CiliumSpec(ChartPart):
    """Cilium. If the Kubernetes has it already (GKE Dataplane V2, AKS powered by Cilium, Nebius), set exists: true."""

    OF_EXISTING: ClassVar[tuple[str, ...]] = ("namespace", "kube_proxy_replacement")

    mode: CiliumMode | None = None
    """Role in the network of the Kubernetes. Required unless exists: a wrong mode disconnects every pod."""
    cni_config_map: ObjectName | None = None
    """ConfigMap in Cilium's namespace with the conflist (key `cni-config`) that ends with `cilium-cni`, for mode
    chained."""
    pod_cidr: Cidr | None = None
    """Addresses of pods. Required in mode gke, which routes them natively; in mode own, Cilium's pool."""
    kube_proxy_replacement: ApiServerAddress | None = None
    """Replace kube-proxy, which must be off. Default: keep kube-proxy."""
    hubble: StrictBool = True
    """Show flows through Hubble's relay: `hubble observe --verdict DROPPED` lists packets that a policy dropped."""
    monitors: StrictBool | None = None
    """Let Prometheus scrape Cilium. Default: if the platform has kube_prometheus_stack."""


def problems(cilium: CiliumSpec, path: str) -> Iterator[Problem]:
    """Yield problems between the fields of Cilium."""
    mode = cilium.mode
    if not known(mode, cilium.exists) or cilium.exists:
        return
    if mode is None:
        modes = ", ".join(f'"{mode}"' for mode in CiliumMode)
        yield Problem(f"{path}.mode", f"missing. Choose one of {modes}, or set exists: true if Cilium is installed.")
    if known(cilium.cni_config_map) and (mode is CiliumMode.CHAINED) != (cilium.cni_config_map is not None):
        text = "missing: mode chained reads the conflist from it. Give its name."
        other = "given without mode chained, the only one that reads it. Remove it."
        yield Problem(f"{path}.cni_config_map", text if mode is CiliumMode.CHAINED else other)
    if known(cilium.pod_cidr) and mode is CiliumMode.GKE and cilium.pod_cidr is None:
        yield Problem(
            f"{path}.pod_cidr", "missing: mode gke routes pods natively. Give the pods' range of the cluster."
        )
