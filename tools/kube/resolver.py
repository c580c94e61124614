"""The machine's nameservers, and which of them answer."""

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
"""As many nameservers as the C library asks."""


def nameservers(resolv_conf: str) -> list[str]:
    """Return the addresses that the text of a resolv.conf names."""
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
    """Return the addresses that the machine's resolv.conf names; a machine without that file has none."""
    return nameservers(RESOLV_CONF.read_text()) if RESOLV_CONF.exists() else []


def answering(addresses: Iterable[str], *, port: int = _PORT) -> list[str]:
    """Return those that answer a question at once: one that is silent would cost every lookup seconds."""
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
            except OSError:  # no way there
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
    """A question for the root's nameservers (RFC 1035): one that every nameserver can answer from its cache."""
    flags_recursion_wanted = b"\x01\x00"
    one_question = b"\x00\x01\x00\x00\x00\x00\x00\x00"
    root_ns_in = b"\x00" + b"\x00\x02" + b"\x00\x01"
    return secrets.token_bytes(2) + flags_recursion_wanted + one_question + root_ns_in
