"""Addresses open and closed to jobs and sessions."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.render.egress import METADATA, blocks, holes, open_ports
from soperator_pulumi.spec.network import NetworkSpec
from soperator_pulumi.spec.types.addresses import Ports

EVERYTHING = NetworkSpec().egress
SERVICES = [
    "169.254.169.254",  # most clouds
    "169.254.170.23",  # pod identities of EKS
    "100.100.100.200",
    "168.63.129.16",
    "fe80::a9fe:a9fe",
    "fd00:ec2::254",
    "fd00:ec2::23",
    "fd20:ce::254",
]


def reached(egress: list[str] | tuple[str, ...], address: str, api_servers: tuple[str, ...] = ()) -> bool:
    """Return True if an address lies in one of the ranges and in none of its holes, as a network plugin has it."""
    wanted = ip_address(address)
    return any(
        wanted in ip_network(block.cidr) and not any(wanted in ip_network(hole) for hole in block.holes(api_servers))
        for block in blocks(egress)
    )


@pytest.mark.parametrize("address", SERVICES)
def test_no_word_opens_a_metadata_service(address: str) -> None:
    assert not reached(EVERYTHING, address)
    assert not any(reached([word], address) for word in EVERYTHING)


@pytest.mark.parametrize("address", ["1.1.1.1", "10.1.2.3", "172.31.0.1", "100.64.0.1", "2606:4700::1", "fd12::1"])
def test_the_default_opens_all_else(address: str) -> None:
    assert reached(EVERYTHING, address)


def test_a_word_opens_what_it_names_and_no_more() -> None:
    def opened(*egress: str) -> list[str]:
        return [address for address in ("1.1.1.1", "2606:4700::1", "10.1.2.3", "fd12::1") if reached(egress, address)]

    assert opened() == opened("cluster") == []
    assert opened("internet") == ["1.1.1.1", "2606:4700::1"]
    assert opened("private") == ["10.1.2.3", "fd12::1"]
    assert opened("10.1.2.0/24") == ["10.1.2.3"]


@pytest.mark.parametrize("api_server", ["10.0.0.0/8", "0.0.0.0/0"])
def test_a_word_opens_no_api_server_whose_range_is_as_large_as_its_own(api_server: str) -> None:
    for egress in (["private"], ["internet", "private"]):
        assert not reached(egress, "10.1.2.3", (api_server,))
    assert reached([api_server], "10.1.2.3", (api_server,)), "a range that the user names is open"


def test_the_kubernetes_api_is_a_hole_in_every_range_that_has_it() -> None:
    api_servers = ("10.96.0.1/32", "203.0.113.9/32")
    for egress in (EVERYTHING, ["internet", "private"], ["10.0.0.0/8", "203.0.113.0/24"]):
        assert not reached(egress, "10.96.0.1", api_servers)
        assert not reached(egress, "203.0.113.9", api_servers)
        assert reached(egress, "203.0.113.8", api_servers)


@pytest.mark.parametrize("cidr", ["169.254.169.254/32", "10.96.0.1/32", "fd00:ec2::254/128"])
def test_what_is_closed_is_opened_by_a_cidr_that_names_it_alone(cidr: str) -> None:
    assert reached([*EVERYTHING, cidr], cidr.partition("/")[0], ("10.96.0.1/32",))


@given(st.lists(st.sampled_from([*EVERYTHING, "0.0.0.0/0", "::/0", "10.0.0.0/8", *METADATA])))
def test_every_hole_is_smaller_than_its_range_which_is_all_that_kubernetes_takes(egress: list[str]) -> None:
    for block in blocks(egress):
        for hole in holes(block.cidr, [*block.closed, "10.96.0.1/32"]):
            assert ip_network(hole).prefixlen > ip_network(block.cidr).prefixlen
            assert ip_network(hole).network_address in ip_network(block.cidr)


PORTS = st.tuples(st.integers(1, 65_535), st.integers(1, 65_535)).map(lambda two: Ports(min(two), max(two)))


@given(st.lists(PORTS, max_size=5), st.integers(1, 65_535))
def test_a_port_is_open_exactly_when_no_range_closes_it(closed: list[Ports], port: int) -> None:
    found = [open_port for open_port in open_ports(closed) if open_port.first <= port <= open_port.last]
    assert len(found) == (0 if any(ports.first <= port <= ports.last for ports in closed) else 1)


def test_the_ports_that_are_closed_by_default_are_those_of_machines() -> None:
    listed = open_ports(NetworkSpec().closed_ports)
    named = (2379, 2380, 6443, 10250, 10255, 10256)
    assert not [port for port in named if any(ports.first <= port <= ports.last for ports in listed)]
