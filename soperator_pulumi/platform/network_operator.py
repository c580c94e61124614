"""NVIDIA's Network Operator: its release, the NicClusterPolicy, pools of addresses, and secondary networks."""

from typing import Any, ClassVar

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from soperator_pulumi.platform.chart_component import PART_OF, ChartComponent, PartScope
from soperator_pulumi.platform.nic_cluster_policy import nic_cluster_policy
from soperator_pulumi.platform.tolerations import GPU_TAINT, written
from soperator_pulumi.spec.platform.network_operator import (
    IpPool,
    NetworkKind,
    NetworkOperatorSpec,
    SecondaryNetwork,
)

POLICY_NAME = "nic-cluster-policy"
"""Name of the only NicClusterPolicy that the operator reads."""

MELLANOX_V1 = "mellanox.com/v1alpha1"
IPAM_V1 = "nv-ipam.nvidia.com/v1alpha1"


class NetworkOperator(ChartComponent):
    """NVIDIA's Network Operator. RDMA bypasses the pod network: no network policy applies to it."""

    PART: ClassVar[str] = "network_operator"

    policy: CustomResource | None
    """The NicClusterPolicy; None if the operator exists already."""

    networks: tuple[CustomResource, ...]
    """Secondary networks."""

    def _install(self, spec: NetworkOperatorSpec, scope: PartScope) -> None:
        scope = self._namespaced(spec, scope, _BECAUSE)
        self.release = self._release(spec, scope, network_operator_values(spec))
        after = scope.following(self.release)
        self.policy = CustomResource(
            f"{self._name}-policy",
            api_version=MELLANOX_V1,
            kind="NicClusterPolicy",
            metadata=ObjectMetaArgs(name=POLICY_NAME, labels=PART_OF),
            spec=nic_cluster_policy(spec),
            opts=after.options(),
        )
        behind = after.following(self.policy)
        pools = [self._pool(ip_pool, self._namespace_of(spec), behind) for ip_pool in spec.ip_pools]
        self.networks = tuple(self._network(network, behind.following(*pools)) for network in spec.networks)

    def _pool(self, pool: IpPool, namespace: str, scope: PartScope) -> CustomResource:
        return CustomResource(
            f"{self._name}-pool-{pool.name}",
            api_version=IPAM_V1,
            kind="IPPool",
            metadata=ObjectMetaArgs(name=pool.name, namespace=namespace, labels=PART_OF),
            spec={
                "subnet": pool.subnet,
                "perNodeBlockSize": pool.addresses_per_node,
                **({} if pool.gateway is None else {"gateway": pool.gateway}),
                **({"routes": [{"dst": route} for route in pool.routes]} if pool.routes else {}),
            },
            opts=scope.options(),
        )

    def _network(self, network: SecondaryNetwork, scope: PartScope) -> CustomResource:
        kind, spec = network_object(network)
        return CustomResource(
            f"{self._name}-network-{network.name}",
            api_version=MELLANOX_V1,
            kind=kind,
            metadata=ObjectMetaArgs(name=network.name, labels=PART_OF),
            spec=spec,
            # A pod that starts while its network is being replaced would not get the network.
            opts=scope.options(pulumi.ResourceOptions(delete_before_replace=True)),
        )


_BECAUSE = "drivers and device plugins load kernel modules and mount the machine's devices"


def network_operator_values(spec: NetworkOperatorSpec) -> dict[str, Any]:
    """Return the default values for the chart. The chart itself creates no NicClusterPolicy."""
    return {
        # A Kubernetes needs only one Node Feature Discovery: the GPU Operator's if it is there.
        "nfd": {"enabled": bool(spec.node_feature_discovery), "deployNodeFeatureRules": True},
        "sriovNetworkOperator": {"enabled": False},
        "operator": {"tolerations": [*_OF_CONTROL_PLANE, GPU_TAINT, *written(spec.tolerations)]},
    }


_OF_CONTROL_PLANE = [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}]


def network_object(network: SecondaryNetwork) -> tuple[str, dict[str, Any]]:
    """Return kind and specification of the object from which the operator makes a NetworkAttachmentDefinition."""
    ipam = "" if network.ip_pool is None else f'{{"type": "nv-ipam", "poolName": "{network.ip_pool}"}}'
    common: dict[str, Any] = {"networkNamespace": network.namespace, **({"ipam": ipam} if ipam else {})}
    match network.kind:
        case NetworkKind.HOST_DEVICE:
            return "HostDeviceNetwork", {**common, "resourceName": network.pool}
        case NetworkKind.MACVLAN:
            mtu = {} if network.mtu is None else {"mtu": network.mtu}
            return "MacvlanNetwork", {**common, "master": network.interface, "mode": "bridge", **mtu}
        case NetworkKind.IPOIB:
            return "IPoIBNetwork", {**common, "master": network.interface}
