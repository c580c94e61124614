"""A policy on egress judges the addresses that are open, however a program spells their ranges."""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.policy.exposure import OPEN_EGRESS
from soperator_pulumi.render.egress import LINK_LOCAL, METADATA, PRIVATE, blocks
from tests.unit.policy.views import an_object, paths

Network = IPv4Network | IPv6Network
BASES = (
    "0.0.0.0/0",
    "::/0",
    "0.0.0.0/1",
    "128.0.0.0/1",
    "2000::/3",
    "64.0.0.0/2",
    "198.51.100.0/24",
    *PRIVATE,
    *LINK_LOCAL,
)
HOLES = (*PRIVATE, *LINK_LOCAL, *METADATA, "10.0.0.0/9", "100.64.0.0/11", "0.0.0.0/2", "192.0.0.0/2", "8000::/1")


def refused(*peers: dict[str, Any]) -> bool:
    policy = {"metadata": {"namespace": "hpc"}, "spec": {"egress": [{"to": [*peers]}]}}
    return bool(paths(OPEN_EGRESS, an_object("networking.k8s.io/v1:NetworkPolicy", policy)))


def peer(cidr: object, closed: Sequence[object] = ()) -> dict[str, Any]:
    return {"ipBlock": {"cidr": str(cidr), "except": [*map(str, closed)]}}


def of_spec(*egress: str) -> list[dict[str, Any]]:
    """Return the peers that `network.egress` makes."""
    return [peer(block.cidr, block.holes([])) for block in blocks(egress)]


@pytest.mark.parametrize(
    "egress",
    [
        ["internet", "private"],
        ["0.0.0.0/0"],
        ["0.0.0.0/1", "128.0.0.0/1"],
        ["0.0.0.0/2", "64.0.0.0/2", "128.0.0.0/2", "192.0.0.0/2"],
        ["128.0.0.0/1", "0.0.0.0/2", "64.0.0.0/3", "96.0.0.0/3"],
        ["internet", "10.0.0.0/9", "10.128.0.0/9"],
        ["internet", "100.64.0.0/10"],
        ["internet", "172.16.0.0/12"],
        ["::/0"],
        ["::/1", "8000::/1"],
        ["2000::/3", "fc00::/7"],
        ["2000::/4", "3000::/4", "fd00::/8"],
        ["169.254.0.0/16"],
    ],
    ids=" ".join,
)
def test_half_of_the_internet_with_half_of_a_private_range_is_refused(egress: list[str]) -> None:
    assert refused(*of_spec(*egress))


@pytest.mark.parametrize(
    "egress",
    [
        ["internet"],
        ["internet", "cluster", "10.20.0.0/16"],
        ["internet", "172.31.0.0/16", "192.168.10.0/24", "100.64.0.0/12", "fd12:3456::/32"],
        ["private"],
        ["10.0.0.0/8"],
        ["198.51.100.0/24", "10.0.0.0/8"],
        ["2001:db8::/32", "fd00::/8"],
    ],
    ids=" ".join,
)
def test_destinations_that_are_named_pass(egress: list[str]) -> None:
    assert not refused(*of_spec(*egress))


@st.composite
def peers(draw: st.DrawFn) -> list[tuple[Network, list[Network]]]:
    """Ranges, each with holes that lie in it, as Kubernetes admits them."""
    bases = draw(st.lists(st.sampled_from(BASES), min_size=1, max_size=4))
    found = []
    for base in map(ip_network, bases):
        inside = [item for item in map(ip_network, HOLES) if _lies_in(item, base) and item != base]
        found.append((base, draw(st.lists(st.sampled_from(inside), max_size=6, unique=True)) if inside else []))
    return found


@st.composite
def split(draw: st.DrawFn, base: Network, closed: Sequence[Network], depth: int = 3) -> list[dict[str, Any]]:
    """The same addresses in other ranges: halves of halves, with the holes that lie in them."""
    if any(_lies_in(base, item) for item in closed):
        return []
    inside = [item for item in closed if item.overlaps(base)]
    way = draw(st.integers(0, 3))
    if depth == 0 or base.prefixlen == base.max_prefixlen or way < 2:
        return [peer(base, inside)]
    if inside and way == 2:  # the ranges between the holes
        left: list[Network] = [base]
        for hole in inside:
            left = [part for item in left for part in _without(item, hole)]
        return [peer(item) for item in left]
    halves: list[Network] = [*base.subnets()]
    return [part for half in halves for part in draw(split(half, inside, depth - 1))]


def _without(whole: Any, hole: Any) -> list[Network]:
    if not whole.overlaps(hole):
        return [whole]
    return [*whole.address_exclude(hole)] if _lies_in(hole, whole) else []


def _lies_in(part: Any, whole: Any) -> bool:
    return part.version == whole.version and bool(part.subnet_of(whole))


@given(peers(), st.data())
def test_the_verdict_is_the_same_in_whatever_ranges_the_addresses_are_written(
    opened: list[tuple[Network, list[Network]]], data: st.DataObject
) -> None:
    written = [part for base, closed in opened for part in data.draw(split(base, closed))]
    again = data.draw(
        st.permutations([*written, *data.draw(st.lists(st.sampled_from(written or [peer("10.9.9.0/24")])))])
    )
    if written:
        assert refused(*again) == refused(*(peer(base, closed) for base, closed in opened))


@given(peers(), peers())
def test_more_ranges_are_never_less_open(
    some: list[tuple[Network, list[Network]]], more: list[tuple[Network, list[Network]]]
) -> None:
    if refused(*(peer(*row) for row in some)):
        assert refused(*(peer(*row) for row in [*some, *more]))
