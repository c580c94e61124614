"""Arithmetic on sets of addresses, so that a verdict does not depend on how a program writes its ranges."""

import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network, summarize_address_range
from typing import Any

from soperator_pulumi.render.egress import LINK_LOCAL, METADATA, PRIVATE

Network = IPv4Network | IPv6Network

_INTERNET = ("0.0.0.0/0", "2000::/3")
"""Addresses of the internet. For IPv6, the global unicast range of RFC 4291."""


_LEADING_ZEROS = re.compile(r"\b0+(?=\d)")
_MAPPED_PREFIX = 96
"""Bits before the IPv4 address in an address such as `::ffff:10.0.0.1`."""


def network(cidr: object) -> Network | None:
    """Return a range as Kubernetes reads it; None for text that is not in CIDR notation, which it refuses.

    Kubernetes accepts leading zeros and IPv4 addresses in the form of IPv6, and spaces around the ranges of a Service:
    https://github.com/kubernetes/enhancements/tree/master/keps/sig-network/4858-ip-cidr-validation.
    """
    try:
        found = ip_network(_LEADING_ZEROS.sub("", cidr.strip()), strict=False) if isinstance(cidr, str) else None
    except ValueError:
        return None
    if isinstance(found, IPv6Network) and found.prefixlen >= _MAPPED_PREFIX and found[0].ipv4_mapped:
        return IPv4Network((found[0].ipv4_mapped, found.prefixlen - _MAPPED_PREFIX))
    return found


def without(whole: Any, holes: Iterable[Network]) -> list[Network]:  # noqa: ANN401 a range of either version
    """Return the ranges that are left of a range without the holes, in the order of their addresses."""
    left: list[Network] = []
    start = whole[0]
    for hole in _united([hole for hole in holes if hole.overlaps(whole)]):  # in the order of their addresses
        if start < hole[0]:
            left += summarize_address_range(start, hole[0] - 1)
        if hole[-1] >= whole[-1]:
            return left
        start = hole[-1] + 1
    return [*left, *summarize_address_range(start, whole[-1])]


def is_public(networks: Sequence[Network]) -> bool:
    """Return True if the networks cover at least half of the internet, in IPv4 or in IPv6.

    Ranges that are closed by default count as open, so excluding them does not hide that half of the internet is open.
    """
    closed = [*map(ip_network, (*PRIVATE, *LINK_LOCAL, *METADATA))]
    return any(_has_half([*networks, *closed], ip_network(whole)) for whole in _INTERNET)


def is_everything(networks: Sequence[Network]) -> bool:
    """Return True if the networks cover at least half of the internet and half of a private range, in one IP version.

    Addresses of metadata services count as open even if they are excluded.
    """
    for version in (4, 6):
        own = [network for network in networks if network.version == version]
        private = [block for block in map(ip_network, PRIVATE) if block.version == version]
        if is_public(own) and any(_has_half([*own, *map(ip_network, METADATA)], block) for block in private):
            return True
    return False


def reaches(networks: Sequence[Network], ranges: Sequence[str]) -> bool:
    """Return True if the networks overlap any of the ranges."""
    return any(part.overlaps(block) for block in map(ip_network, ranges) for part in networks)


def lies_in(networks: Sequence[Network], ranges: Sequence[str]) -> bool:
    """Return True if a network is one of the ranges, or a part of one: whoever writes it means what is there."""
    blocks: list[Any] = [*map(ip_network, ranges)]
    return any(part.version == block.version and part.subnet_of(block) for block in blocks for part in networks)


def _has_half(networks: Sequence[Network], whole: Network) -> bool:
    parts = _united([network for network in networks if network.overlaps(whole)])
    return 2 * sum(min(part.num_addresses, whole.num_addresses) for part in parts) >= whole.num_addresses


def _united(networks: Sequence[Network]) -> list[Network]:
    return [
        *collapse_addresses(network for network in networks if isinstance(network, IPv4Network)),
        *collapse_addresses(network for network in networks if isinstance(network, IPv6Network)),
    ]
