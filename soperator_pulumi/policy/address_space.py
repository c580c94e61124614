"""Sets of addresses, by arithmetic: a verdict is the same in whatever ranges a program writes them."""

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network, summarize_address_range
from typing import Any

from soperator_pulumi.render.egress import LINK_LOCAL, METADATA, PRIVATE

Network = IPv4Network | IPv6Network

_INTERNET = ("0.0.0.0/0", "2000::/3")
"""Addresses of the internet. That of IPv6 is the global unicast of RFC 4291."""


def network(cidr: object) -> Network | None:
    """Return a range; None for what is no CIDR, which Kubernetes refuses as well."""
    try:
        return ip_network(cidr, strict=False) if isinstance(cidr, str) else None
    except ValueError:
        return None


def without(whole: Any, holes: Iterable[Network]) -> list[Network]:  # noqa: ANN401 a range of either version
    """Return a range without its holes."""
    left: list[Network] = []
    start = whole[0]
    for hole in _united([each for each in holes if each.overlaps(whole)]):  # in the order of their addresses
        if start < hole[0]:
            left += summarize_address_range(start, hole[0] - 1)
        if hole[-1] >= whole[-1]:
            return left
        start = hole[-1] + 1
    return [*left, *summarize_address_range(start, whole[-1])]


def is_public(networks: Sequence[Network]) -> bool:
    """Return True for half of the internet or more, of one version.

    Ranges that are closed by default count as open: with holes, a half stays one.
    """
    closed = [*map(ip_network, (*PRIVATE, *LINK_LOCAL, *METADATA))]
    return any(_has_half([*networks, *closed], ip_network(whole)) for whole in _INTERNET)


def is_everything(networks: Sequence[Network]) -> bool:
    """Return True for half of the internet or more with half or more of a private range of the same version.

    Metadata services, which holes close, count as open.
    """
    for version in (4, 6):
        own = [each for each in networks if each.version == version]
        private = [each for each in map(ip_network, PRIVATE) if each.version == version]
        if is_public(own) and any(_has_half([*own, *map(ip_network, METADATA)], each) for each in private):
            return True
    return False


def reaches(networks: Sequence[Network], ranges: Sequence[str]) -> bool:
    """Return True if a part of one of the ranges is open."""
    return any(part.overlaps(each) for each in map(ip_network, ranges) for part in networks)


def _has_half(networks: Sequence[Network], whole: Network) -> bool:
    parts = _united([each for each in networks if each.overlaps(whole)])
    return 2 * sum(min(each.num_addresses, whole.num_addresses) for each in parts) >= whole.num_addresses


def _united(networks: Sequence[Network]) -> list[Network]:
    return [
        *collapse_addresses(each for each in networks if isinstance(each, IPv4Network)),
        *collapse_addresses(each for each in networks if isinstance(each, IPv6Network)),
    ]
