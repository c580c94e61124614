"""NVIDIA's Network Operator: its release, the NicClusterPolicy, pools of addresses, and secondary networks."""

import json
from typing import Any, ClassVar

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from soperator_pulumi.platform.chart_component import (
    GPU_TAINT,
    ChartComponent,
    PartScope,
    object_labels,
    written_tolerations,
)
from soperator_pulumi.platform.charts import NETWORK_OPERATOR
from soperator_pulumi.spec.platform.network_operator import (
    IpPool,
    NetworkKind,
    NetworkOperatorSpec,
    SecondaryNetwork,
    SelectedDevices,
)

POLICY_NAME = "nic-cluster-policy"
"""Name of the only NicClusterPolicy that the operator reads."""

MELLANOX_V1 = "mellanox.com/v1alpha1"
IPAM_V1 = "nv-ipam.nvidia.com/v1alpha1"

_LABELS = object_labels(NETWORK_OPERATOR.name)


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
            metadata=ObjectMetaArgs(name=POLICY_NAME, labels=_LABELS),
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
            metadata=ObjectMetaArgs(name=pool.name, namespace=namespace, labels=_LABELS),
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
            metadata=ObjectMetaArgs(name=network.name, labels=_LABELS),
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
        "operator": {"tolerations": [*_OF_CONTROL_PLANE, GPU_TAINT, *written_tolerations(spec.tolerations)]},
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


def nic_cluster_policy(spec: NetworkOperatorSpec) -> dict[str, Any]:
    """Return the specification of the NicClusterPolicy. The operator has no default versions for its parts.

    All parts of a release of the operator have the same tag: the chart's version.
    """
    tag = f"network-operator-v{(spec.version or NETWORK_OPERATOR.version).removeprefix('v')}"
    parts: dict[str, Any] = {}

    def image(name: str, version: str = tag) -> dict[str, str]:
        return {"image": name, "repository": spec.images, "version": version}

    if spec.ofed_driver is not None:
        # A new driver restarts the network of running jobs, so upgrades are never automatic.
        driver = image("doca-driver", spec.ofed_driver)
        parts["ofedDriver"] = {**driver, "upgradePolicy": {"autoUpgrade": False}}
    if spec.shared_rdma:
        config = {
            "configList": [
                {
                    "resourceName": pool.name,
                    "rdmaHcaMax": pool.pods,
                    "selectors": _selectors(pool.devices, interfaces="ifNames"),
                }
                for pool in spec.shared_rdma
            ]
        }
        parts["rdmaSharedDevicePlugin"] = {**image("k8s-rdma-shared-dev-plugin"), "config": _text(config)}
    if spec.host_devices:
        config = {
            "resourceList": [
                _whole(host_device.name, host_device.devices, rdma=host_device.rdma)
                for host_device in spec.host_devices
            ]
        }
        parts["sriovDevicePlugin"] = {**image("sriov-network-device-plugin"), "config": _text(config)}
    if spec.networks:
        network = {"multus": image("multus-cni"), "cniPlugins": image("plugins")}
        ipoib = any(network.kind is NetworkKind.IPOIB for network in spec.networks)
        parts["secondaryNetwork"] = {**network, **({"ipoib": image("ipoib-cni")} if ipoib else {})}
    if spec.ip_pools:
        parts["nvIpam"] = image("nvidia-k8s-ipam")
    return {**parts, **_placement(spec), "tolerations": [GPU_TAINT, *written_tolerations(spec.tolerations)]}


def _whole(name: str, devices: SelectedDevices, *, rdma: bool) -> dict[str, Any]:
    selectors = _selectors(devices, interfaces="pfNames", ids="devices")
    return {
        "resourcePrefix": "nvidia.com",
        "resourceName": name,
        "selectors": {**selectors, **({"isRdma": True} if rdma else {})},
    }


def _selectors(devices: SelectedDevices, interfaces: str, ids: str = "deviceIDs") -> dict[str, list[str]]:
    """Return the selectors. The two device plugins use different keys for the same criteria."""
    found = {"vendors": [*devices.vendors], ids: [*devices.device_ids], interfaces: [*devices.interfaces]}
    return {key: value for key, value in found.items() if value}


def _placement(spec: NetworkOperatorSpec) -> dict[str, Any]:
    if not spec.node_selector:
        return {}
    terms = [{"key": key, "operator": "In", "values": [value]} for key, value in sorted(spec.node_selector.items())]
    required = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def _text(config: object) -> str:
    return json.dumps(config, indent=2, sort_keys=True)
