"""NVIDIA's Network Operator: RDMA devices as resources, and secondary networks."""

import ipaddress
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field, StrictBool

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.platform.chart_part import ChartPart
from soperator_pulumi.spec.scheduling import Toleration
from soperator_pulumi.spec.types.addresses import Cidr, IpAddress
from soperator_pulumi.spec.types.names import DnsLabel, LabelKey, LabelValue, ObjectName
from soperator_pulumi.spec.validation.base import Matches, Model, whole
from soperator_pulumi.spec.validation.partial import known

_NAME = Matches(r"[a-z0-9]([a-z0-9_]*[a-z0-9])?", "needs lower case letters, digits and '_'.", 50)
PoolName = Annotated[str, _NAME]
"""Last part of a resource's name."""
InterfaceName = Annotated[
    str, Matches(r"[A-Za-z0-9._@:*-]+", "needs the name of a network interface, such as ens2f0np0.", 64)
]
"""Name of a network interface on the machines."""
HexId = Annotated[str, Matches(r"[0-9a-f]{4}", 'needs four digits from 0-9a-f in quotes, such as "15b3".')]
"""Vendor or device in the PCI table."""
DriverTag = Annotated[
    str, Matches(r"doca[0-9][0-9A-Za-z.-]*|[0-9][0-9A-Za-z.-]*", 'needs a version such as "doca3.4.1-26.04-1.1.0.0-1".')
]
"""Tag of the driver's image."""

ImageFolder = Annotated[
    str,
    Matches(
        r"[A-Za-z0-9.-]+(:\d{1,5})?(/[a-z0-9._-]+)*",
        'needs a registry and its folder without a scheme, such as "registry.example.com/nvidia/mellanox".',
        2048,
    ),
]
"""Folder of images in a registry."""

MELLANOX = "15b3"
NVIDIA_IMAGES = "nvcr.io/nvidia/mellanox"
"""Folder of NVIDIA's images."""


class SelectedDevices(Model):
    """Network adapters, selected by their properties. All given criteria must match."""

    vendors: tuple[HexId, ...] = (MELLANOX,)
    """PCI vendors. Default: 15b3, Mellanox."""
    device_ids: tuple[HexId, ...] = ()
    """PCI devices. Default: any device of the vendors."""
    interfaces: tuple[InterfaceName, ...] = ()
    """Interfaces on the machines. Default: any."""


class SharedRdmaPool(Model):
    """RDMA adapters that the pods of a machine share, as the resource `rdma/<name>`."""

    name: PoolName
    """Last part of the resource's name."""
    pods: Annotated[int, whole(1, 1000)] = 63
    """Pods of a machine that may use them at the same time. Default: 63, as in the plugin's example."""
    devices: SelectedDevices = SelectedDevices()
    """The adapters."""


class HostDevicePool(Model):
    """Adapters or virtual functions for one pod at a time, as the resource `nvidia.com/<name>`."""

    name: PoolName
    """Last part of the resource's name."""
    rdma: StrictBool = True
    """Only devices with RDMA."""
    devices: SelectedDevices = SelectedDevices()
    """The adapters."""


class IpPool(Model):
    """Addresses of secondary networks, assigned to machines in blocks (NVIDIA IPAM)."""

    name: ObjectName
    """Name of the IPPool."""
    subnet: Cidr
    """All addresses of the pool."""
    addresses_per_node: Annotated[int, whole(1, 65_536)] = 64
    """Number of addresses in a machine's block. Default: 64."""
    gateway: IpAddress | None = None
    """Address of the gateway, in the subnet. Default: none."""
    routes: tuple[Cidr, ...] = ()
    """Destinations that pods reach through the gateway, such as the subnets of other adapters. Default: none."""


class NetworkKind(StrEnum):
    """Kind of attachment of a pod to a secondary network."""

    HOST_DEVICE = "host_device"
    """Through a whole adapter or virtual function, from a pool in host_devices."""
    MACVLAN = "macvlan"
    """Through an Ethernet interface next to the machine's."""
    IPOIB = "ipoib"
    """Through IP over InfiniBand."""


class SecondaryNetwork(Model):
    """A network in addition to the pod network, as a NetworkAttachmentDefinition."""

    name: ObjectName
    """Name of the network, for the annotation `k8s.v1.cni.cncf.io/networks` of pods."""
    kind: NetworkKind
    """Kind of attachment."""
    namespace: DnsLabel = "default"
    """Namespace of the pods."""
    pool: PoolName | None = None
    """Pool of the adapters. Required with kind host_device."""
    interface: InterfaceName | None = None
    """Interface of the machines. Required with kinds macvlan and ipoib."""
    ip_pool: ObjectName | None = None
    """Pool of the addresses, one of ip_pools. Default: no address."""
    mtu: Annotated[int, whole(68, 65_535)] | None = None
    """Largest packet in bytes, with kind macvlan, at most that of the interface. Default: that of the interface."""


class NetworkOperatorSpec(ChartPart):
    """NVIDIA's Network Operator, and the only NicClusterPolicy of the Kubernetes."""

    OF_EXISTING: ClassVar[tuple[str, ...]] = ("shared_rdma", "host_devices")

    images: ImageFolder = NVIDIA_IMAGES
    """Folder of the images of drivers, device plugins and networks in the NicClusterPolicy, for a mirror. The image of
    the operator itself is set in the chart's values."""
    ofed_driver: DriverTag | None = None
    """Tag of the DOCA-OFED driver that the operator loads. Default: the driver in the machines' image."""
    shared_rdma: tuple[SharedRdmaPool, ...] = ()
    """RDMA adapters that pods share: the simplest choice for one worker per machine."""
    host_devices: tuple[HostDevicePool, ...] = ()
    """Adapters and virtual functions for one pod at a time."""
    ip_pools: tuple[IpPool, ...] = ()
    """Addresses of secondary networks."""
    networks: tuple[SecondaryNetwork, ...] = ()
    """Secondary networks. A single one makes the operator install Multus next to the pod network."""
    node_selector: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Labels of the machines. Default: all machines with an adapter."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints of the machines, in addition to `nvidia.com/gpu`."""
    node_feature_discovery: StrictBool | None = None
    """Install Node Feature Discovery. Default: unless the platform has a GPU Operator, which installs it."""

    @property
    def resources(self) -> tuple[str, ...]:
        """Resources that node sets may request."""
        return (
            *(f"rdma/{pool.name}" for pool in self.shared_rdma),
            *(f"nvidia.com/{network.name}" for network in self.host_devices),
        )


def problems(operator: NetworkOperatorSpec, path: str) -> Iterator[Problem]:
    """Yield problems between pools and networks."""
    if not known(operator.networks, operator.host_devices, operator.ip_pools, operator.shared_rdma):
        return
    if known(operator.exists) and operator.exists:
        yield from _undescribed(operator, path)
    for field in ("shared_rdma", "host_devices", "ip_pools", "networks"):
        yield from _repeated(getattr(operator, field), f"{path}.{field}")
    for index, pool in enumerate(operator.ip_pools):
        yield from _pool_problems(pool, f"{path}.ip_pools[{index}]")
    pools = [network.name for network in operator.host_devices]
    addresses = [pool.name for pool in operator.ip_pools]
    for index, network in enumerate(operator.networks):
        where = f"{path}.networks[{index}]"
        yield from _network_problems(network, where, pools)
        if known(network.ip_pool) and network.ip_pool is not None and network.ip_pool not in addresses:
            there = ", ".join(map(str, addresses)) or "none"
            yield Problem(f"{where}.ip_pool", f'got "{network.ip_pool}", needs a pool of ip_pools: {there}.')


def _undescribed(operator: NetworkOperatorSpec, path: str) -> Iterator[Problem]:
    """Yield fields of pools other than the name, which is the only one that applies if the operator exists."""
    for field in ("shared_rdma", "host_devices"):
        for index, pool in enumerate(getattr(operator, field)):
            for name, about in type(pool).model_fields.items():
                if name != "name" and known(value := getattr(pool, name)) and value != about.default:
                    text = "given with exists: true, where only the name applies. Remove it, or set exists: false."
                    yield Problem(f"{path}.{field}[{index}].{name}", text)


def _pool_problems(pool: IpPool, where: str) -> Iterator[Problem]:
    if not known(pool.subnet, pool.gateway, pool.routes):
        return
    if pool.routes and pool.gateway is None:
        yield Problem(f"{where}.gateway", "missing: routes go through it. Give its address.")
    subnet = ipaddress.ip_network(pool.subnet)
    if pool.gateway is not None and ipaddress.ip_address(pool.gateway) not in subnet:
        yield Problem(f"{where}.gateway", f'got "{pool.gateway}", needs an address of the subnet {subnet}.')
    for index, route in enumerate(pool.routes):
        if known(route) and ipaddress.ip_network(route).version != subnet.version:
            text = f'got "{route}", needs IPv{subnet.version}, as the subnet {subnet} has.'
            yield Problem(f"{where}.routes[{index}]", text)


def _network_problems(network: SecondaryNetwork, where: str, pools: list[str]) -> Iterator[Problem]:
    kind, pool, interface = network.kind, network.pool, network.interface
    if not known(kind, pool, interface):
        return
    if known(network.mtu) and network.mtu is not None and kind is not NetworkKind.MACVLAN:
        yield Problem(f"{where}.mtu", f"given with kind {kind}, whose devices keep their own. Remove it.")
    if kind is NetworkKind.HOST_DEVICE:
        if pool not in pools:
            there = ", ".join(map(str, pools)) or "none"
            given = "missing" if pool is None else f'got "{pool}"'
            yield Problem(f"{where}.pool", f"{given}, needs a pool of host_devices: {there}.")
        if interface is not None:
            yield Problem(f"{where}.interface", "given with kind host_device, whose pool selects it. Remove it.")
        return
    if interface is None:
        yield Problem(f"{where}.interface", f"missing: kind {kind} needs the interface of the machines. Give it.")
    if pool is not None:
        yield Problem(f"{where}.pool", f"given with kind {kind}, which takes an interface. Remove it.")


def _repeated(
    named: tuple[SharedRdmaPool | HostDevicePool | IpPool | SecondaryNetwork, ...], path: str
) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, entry in enumerate(named):
        if known(entry.name) and entry.name in seen:
            yield Problem(f"{path}[{index}].name", f'got "{entry.name}", which an earlier entry has. Choose another.')
        seen.add(entry.name)
