"""The machine's nameservers, and the ones that answer."""

import ipaddress
import secrets
import socket
import time
from collections.abc import Iterable
from pathlib import Path

RESOLV_CONF = Path("/etc/resolv.conf")
_PORT = 53
_ANSWER_SECONDS = 1.0
_MOST = 3
"""Number of nameservers that the C library asks."""


def nameservers(resolv_conf: str) -> list[str]:
    """Return the addresses in the text of a resolv.conf."""
    found = []
    for line in resolv_conf.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == "nameserver":
            try:
                found.append(str(ipaddress.ip_address(words[1].partition("%")[0])))
            except ValueError:
                continue
    return list(dict.fromkeys(found))[:_MOST]


def of_this_machine() -> list[str]:
    """Return the addresses in the machine's resolv.conf; none if the file is missing."""
    return nameservers(RESOLV_CONF.read_text()) if RESOLV_CONF.exists() else []


def answering(addresses: Iterable[str], *, port: int = _PORT) -> list[str]:
    """Return the addresses that answer at once, as a silent one would cost every lookup seconds."""
    asked: dict[str, socket.socket] = {}
    query = _query()
    answered = []
    try:
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            asked[address] = socket.socket(family, socket.SOCK_DGRAM)
            try:
                asked[address].connect((address, port))
                asked[address].send(query)
            except OSError:  # no route
                asked.pop(address).close()
        deadline = time.monotonic() + _ANSWER_SECONDS
        for address, connection in asked.items():
            connection.settimeout(max(deadline - time.monotonic(), 0.01))
            try:
                if connection.recv(512)[:2] == query[:2]:
                    answered.append(address)
            except OSError:  # silence, or a refusal by the network
                continue
    finally:
        for connection in asked.values():
            connection.close()
    return answered


def _query() -> bytes:
    """Return a query for the root's nameservers (RFC 1035), which every nameserver can answer from its cache."""
    flags_recursion_wanted = b"\x01\x00"
    one_question = b"\x00\x01\x00\x00\x00\x00\x00\x00"
    root_ns_in = b"\x00" + b"\x00\x02" + b"\x00\x01"
    return secrets.token_bytes(2) + flags_recursion_wanted + one_question + root_ns_in
