"""Nameservers of the machine that answer."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tools.kube import resolver


def test_nameservers_of_a_resolv_conf() -> None:
    text = """\
# made by a DHCP client
search example.org
nameserver 192.0.2.53
nameserver fe80::1%eth0
nameserver 192.0.2.53
nameserver not-an-address
options edns0
"""
    assert resolver.nameservers(text) == ["192.0.2.53", "fe80::1"]


def test_no_more_than_the_c_library_asks() -> None:
    text = "".join(f"nameserver 192.0.2.{number}\n" for number in range(1, 6))
    assert len(resolver.nameservers(text)) == 3


@contextmanager
def nameserver(address: str, *, answers: bool, port: int = 0) -> Iterator[int]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, port))
        server.settimeout(10)

        def serve() -> None:
            query, client = server.recvfrom(512)
            if answers:
                server.sendto(query[:2] + b"\x81\x80" + query[4:], client)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def test_one_that_answers_is_found_next_to_one_that_is_silent() -> None:
    with (
        nameserver("127.0.0.1", answers=False) as port,
        nameserver("127.0.0.2", answers=True, port=port),
    ):
        assert resolver.answering(["127.0.0.1", "127.0.0.2"], port=port) == ["127.0.0.2"]


def test_where_no_one_listens_no_one_answers() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    assert resolver.answering(["127.0.0.1"], port=port) == []
