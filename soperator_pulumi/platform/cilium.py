"""Cilium: the values of its modes, and the release."""

from typing import Any, ClassVar

from soperator_pulumi.platform.chart_component import ChartComponent, PartScope
from soperator_pulumi.platform.chart_values import merged_values
from soperator_pulumi.spec.platform.cilium import CiliumMode, CiliumSpec


class Cilium(ChartComponent):
    """Cilium, as the pod network, or for network policies on top of another pod network.

    Traffic of pods with `hostNetwork`, and RDMA, bypass Cilium: no policy applies to them.
    """

    PART: ClassVar[str] = "cilium"

    def _install(self, spec: CiliumSpec, scope: PartScope) -> None:
        self.release = self._release(spec, self._namespaced(spec, scope, _BECAUSE), cilium_values(spec))


_BECAUSE = "cilium-agent configures the machine's network and loads BPF programs"


def cilium_values(spec: CiliumSpec) -> dict[str, Any]:
    """Return the default values for the chart."""
    values = merged_values(_OF_ALL, _network(spec))
    if spec.kube_proxy_replacement is not None:
        server = spec.kube_proxy_replacement
        replaced = {"kubeProxyReplacement": True, "k8sServiceHost": server.host, "k8sServicePort": server.port}
        values = merged_values(values, replaced)
    if not spec.hubble:
        values = merged_values(values, {"hubble": {"enabled": False, "relay": {"enabled": False}}})
    return merged_values(values, _MONITORS if spec.monitors else {})


_OF_ALL: dict[str, Any] = {
    "cni": {"exclusive": False},  # true renames the configuration of Multus, which breaks secondary networks
    "hubble": {
        "enabled": True,
        "relay": {"enabled": True},
        # With the default method "helm", every rendering creates new certificates: a difference in every preview.
        "tls": {"auto": {"enabled": True, "method": "cronJob"}},
    },
}

_MONITOR = {"serviceMonitor": {"enabled": True}}
_MONITORS: dict[str, Any] = {
    "prometheus": {"enabled": True, **_MONITOR},
    "operator": {"prometheus": {"enabled": True, **_MONITOR}},
}


def _network(spec: CiliumSpec) -> dict[str, Any]:
    """Return the values of a mode, according to Cilium's pages on installation and chaining."""
    native: dict[str, Any] = {"routingMode": "native"}
    match spec.mode:
        case CiliumMode.CHAINED:
            chain = {"chainingMode": "generic-veth", "customConf": True, "configMap": spec.cni_config_map}
            return {**native, "cni": chain, "enableIPv4Masquerade": False}
        case CiliumMode.EKS_CHAINED:
            return {**native, "cni": {"chainingMode": "aws-cni"}, "enableIPv4Masquerade": False}
        case CiliumMode.EKS:
            return {**native, "eni": {"enabled": True}, "ipam": {"mode": "eni"}}
        case CiliumMode.GKE:
            return {
                **native,
                "gke": {"enabled": True},
                "ipam": {"mode": "kubernetes"},
                "ipv4NativeRoutingCIDR": spec.pod_cidr,
                "cni": {"binPath": "/home/kubernetes/bin"},
                "nodeinit": {"enabled": True, "reconfigureKubelet": True, "removeCbrBridge": True},
            }
        case CiliumMode.AKS:
            return {"aksbyocni": {"enabled": True}, "nodeinit": {"enabled": True}}
    pool = {} if spec.pod_cidr is None else {"operator": {"clusterPoolIPv4PodCIDRList": [spec.pod_cidr]}}
    return {"ipam": {"mode": "cluster-pool", **pool}}
