"""Specification of the NicClusterPolicy: drivers, device plugins and the programs of secondary networks."""

import json
from typing import Any

from soperator_pulumi.platform.charts import NETWORK_OPERATOR
from soperator_pulumi.platform.tolerations import GPU_TAINT, written
from soperator_pulumi.spec.platform.network_operator import NetworkKind, NetworkOperatorSpec, SelectedDevices


def nic_cluster_policy(spec: NetworkOperatorSpec) -> dict[str, Any]:
    """Return the specification. The operator has no default versions for its parts.

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
    return {**parts, **_placement(spec), "tolerations": [GPU_TAINT, *written(spec.tolerations)]}


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
