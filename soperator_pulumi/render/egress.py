"""Egress of jobs and sessions: address ranges with holes, and ports, from the keywords of a spec.

NetworkPolicies only allow, so an allowed range leaves out closed addresses (`ipBlock.except`), and port ranges end
before closed ports and begin after them (`endPort`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network

from soperator_pulumi.spec.network import Destination
from soperator_pulumi.spec.types.addresses import LAST_PORT, Ports

ALL = ("0.0.0.0/0", "::/0")

PRIVATE = ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
"""Private ranges of RFC 1918, RFC 6598 and RFC 4193."""

LINK_LOCAL = ("169.254.0.0/16", "fe80::/10")
"""Link-local ranges of RFC 3927 and RFC 4291: metadata services of most clouds, agents of nodes."""

METADATA = (
    "100.100.100.200/32",  # Alibaba Cloud
    "168.63.129.16/32",  # Azure's WireServer
    "192.0.0.192/32",  # Oracle Cloud at the customer's
    "fd00:42::42/128",  # Scaleway
    "fd00:100::100:200/128",  # Alibaba Cloud
    "fd00:a9fe:a9fe::1/128",  # Akamai
    "fd00:c1::a9fe:a9fe/128",  # Oracle Cloud
    "fd00:ec2::/32",  # AWS: metadata, pod identities
    "fd20:ce::254/128",  # Google Cloud
)
"""Metadata services at addresses that are not link-local, by their providers' manuals."""

DNS_PORTS = (53, 5353)
"""Ports of name servers. Policies apply to the pod's port behind a Service: 5353 in OpenShift."""


@dataclass(frozen=True)
class Block:
    """A range of addresses, and its closed part other than the Kubernetes API."""

    cidr: str
    closed: tuple[str, ...]
    by_word: bool
    """True if a keyword opened it, not a user's CIDR: closed addresses stay closed even if they are the whole range."""

    def holes(self, api_servers: Sequence[str]) -> tuple[str, ...]:
        """Return the closed addresses in the range, including those of the Kubernetes API, in CIDR notation."""
        whole = ip_network(self.cidr)
        if self.by_word and any(_lies_in(whole, ip_network(api_server)) for api_server in api_servers):
            return tuple(str(half) for half in whole.subnets())  # Kubernetes refuses a hole as large as its range
        return holes(self.cidr, [*self.closed, *api_servers])


def blocks(egress: Sequence[str]) -> list[Block]:
    """Return the address ranges that keywords and CIDRs of `network.egress` open."""
    opened: list[Block] = []
    services = (*LINK_LOCAL, *METADATA)
    if Destination.INTERNET in egress:
        private = () if Destination.PRIVATE in egress else PRIVATE
        opened += [Block(cidr, holes(cidr, [*services, *private]), by_word=True) for cidr in ALL]
    elif Destination.PRIVATE in egress:
        opened += [Block(cidr, holes(cidr, services), by_word=True) for cidr in PRIVATE]
    named = [cidr for cidr in egress if cidr not in {*Destination}]
    return list(dict.fromkeys([*opened, *(Block(cidr, holes(cidr, services), by_word=False) for cidr in named)]))


def holes(cidr: str, closed: Iterable[str]) -> tuple[str, ...]:
    """Return the `closed` ranges inside a larger range, as Kubernetes refuses others.

    So a CIDR that names a closed range, or a part of one, opens it.
    """
    whole = ip_network(cidr)
    return tuple(
        sorted({text for text in closed if _lies_in(part := ip_network(text), whole) and part != whole}, key=_order)
    )


def open_ports(closed: Iterable[Ports]) -> list[Ports]:
    """Return the port ranges between closed ports."""
    left: list[Ports] = []
    start = 1
    for ports in sorted(closed):
        if start < ports.first:
            left.append(Ports(start, ports.first - 1))
        start = max(start, ports.last + 1)
    return [*left, *([Ports(start, LAST_PORT)] if start <= LAST_PORT else [])]


def _lies_in(part: IPv4Network | IPv6Network, whole: IPv4Network | IPv6Network) -> bool:
    if isinstance(part, IPv4Network) and isinstance(whole, IPv4Network):
        return part.subnet_of(whole)
    if isinstance(part, IPv6Network) and isinstance(whole, IPv6Network):
        return part.subnet_of(whole)
    return False


def _order(cidr: str) -> tuple[int, int, int]:
    network = ip_network(cidr)
    return network.version, int(network.network_address), network.prefixlen
