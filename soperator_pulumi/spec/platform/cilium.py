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
    """Relation of Cilium to the network of the Kubernetes."""

    OWN = "own"
    """The only network of a Kubernetes without one: addresses from Cilium's own pool, tunnels between machines."""
    CHAINED = "chained"
    """Network policies on any network plugin that makes veth pairs, chained after it in a conflist of yours."""
    EKS_CHAINED = "eks_chained"
    """Network policies on the addresses of the AWS VPC CNI, which stays."""
    EKS = "eks"
    """Addresses of the VPC without the AWS VPC CNI, which must be kept off the machines."""
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
    """Cilium. A Kubernetes that has it already (GKE Dataplane V2, AKS powered by Cilium, Nebius) takes exists: true."""

    OF_EXISTING: ClassVar[tuple[str, ...]] = ("namespace", "kube_proxy_replacement")

    mode: CiliumMode | None = None
    """Relation to the network of the Kubernetes. Required unless exists: a wrong one cuts every pod off."""
    cni_config_map: ObjectName | None = None
    """ConfigMap in Cilium's namespace with the conflist (key `cni-config`) that ends with `cilium-cni`, for mode
    chained."""
    pod_cidr: Cidr | None = None
    """Addresses of pods. Required in mode gke, where they are routed natively; in mode own, the pool of Cilium."""
    kube_proxy_replacement: ApiServerAddress | None = None
    """Replace kube-proxy, which must be off. Default: keep kube-proxy."""
    hubble: StrictBool = True
    """Show flows by Hubble's relay: `hubble observe --verdict DROPPED` names the policy's victim."""
    monitors: StrictBool | None = None
    """Have Prometheus scrape Cilium. Default: where the platform has kube_prometheus_stack."""


def problems(cilium: CiliumSpec, path: str) -> Iterator[Problem]:
    """Yield problems between the fields of Cilium."""
    mode = cilium.mode
    if not known(mode, cilium.exists) or cilium.exists:
        return
    if mode is None:
        modes = ", ".join(f'"{each}"' for each in CiliumMode)
        yield Problem(
            f"{path}.mode", f"missing. Choose one of {modes}, or set exists: true for a Cilium that is there."
        )
    if known(cilium.cni_config_map) and (mode is CiliumMode.CHAINED) != (cilium.cni_config_map is not None):
        text = "missing: mode chained reads the conflist from it. Give its name."
        other = "given without mode chained, which alone reads it. Remove it."
        yield Problem(f"{path}.cni_config_map", text if mode is CiliumMode.CHAINED else other)
    if known(cilium.pod_cidr) and mode is CiliumMode.GKE and cilium.pod_cidr is None:
        yield Problem(
            f"{path}.pod_cidr", "missing: mode gke routes pods natively. Give the pods' range of the cluster."
        )
