"""Listeners and their addresses."""

import os
import socket
from ipaddress import IPv6Address, ip_address

import pytest

from tools.kube import listeners
from tools.kube.listeners import Listener

TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100F40A:192B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000 100 0 0 10 0
   1: 0100007F:1F90 0100007F:A3C2 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0000 100 0 0 10 0
"""
TCP6 = """\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when
   0: 00000000000000000000000000000000:192B 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 4713 1 0
   1: 0000000000000000FFFF00000100007F:0050 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 4714 1 0
"""


def test_listening_sockets_are_read_and_connected_ones_passed_over() -> None:
    assert list(listeners.parse("tcp", TCP, "0A")) == [Listener("tcp", ip_address("10.244.0.1"), 6443, 4711)]


def test_sockets_of_ipv6_are_read() -> None:
    found = list(listeners.parse("tcp6", TCP6, "0A"))
    assert found == [
        Listener("tcp", IPv6Address("::"), 6443, 4713),
        Listener("tcp", IPv6Address("::ffff:127.0.0.1"), 80, 4714),
    ]


@pytest.mark.parametrize(
    ("listens_on", "in_the_way"),
    [
        ("10.244.0.1", True),
        ("0.0.0.0", True),  # noqa: S104 - an address to compare with
        ("::", True),
        ("::ffff:10.244.0.1", True),
        ("127.0.0.1", False),
        ("::1", False),
    ],
)
def test_which_listeners_are_in_the_way(listens_on: str, *, in_the_way: bool) -> None:
    assert Listener("tcp", ip_address(listens_on), 6443, 1).takes("10.244.0.1", 6443) is in_the_way
    assert not Listener("tcp", ip_address(listens_on), 6444, 1).takes("10.244.0.1", 6443)


@pytest.mark.parametrize(("kind", "protocol"), [(socket.SOCK_STREAM, "tcp"), (socket.SOCK_DGRAM, "udp")])
def test_a_real_socket_is_found_with_its_process(kind: socket.SocketKind, protocol: str) -> None:
    with socket.socket(socket.AF_INET, kind) as own:
        own.bind(("127.0.0.1", 0))
        if kind == socket.SOCK_STREAM:
            own.listen()
        port = own.getsockname()[1]
        (found,) = [one for one in listeners.listeners() if one.port == port and one.protocol == protocol]
        assert str(found.address) == "127.0.0.1"
        assert listeners.holders([found.inode]) == {found.inode: os.getpid()}
