"""Attempts on Kubernetes and the machines through the network, and on ports that only root may have."""

import errno
import os
import socket

from . import attempt

TIMEOUT_SECONDS = 5


def _connect(address: str, port: int) -> str:
    """Connect to who is known to listen there: only a policy keeps that from working, with a word or in silence."""
    try:
        with socket.create_connection((address, port), timeout=TIMEOUT_SECONDS):
            return f"{address}:{port}: connected"
    except OSError as error:
        if isinstance(error, TimeoutError) or error.errno == errno.EHOSTUNREACH:
            raise PermissionError(errno.EACCES, f"{address}:{port}: {error}") from error
        raise


@attempt
def reach_the_kubelet() -> object:
    return _connect(os.environ["NODE_ADDRESS"], 10250)


@attempt
def reach_kubernetes_at_its_service() -> object:
    return _connect(os.environ["API_SERVICE"], 443)


@attempt
def reach_kubernetes_behind_its_service() -> object:
    address, port = os.environ["API_ENDPOINT"].split(":")
    return _connect(address, int(port))


def _listen(port: int) -> str:
    with socket.create_server(("", port)):
        return f"listening at {port}"


@attempt
def listen_where_a_server_of_the_machine_would() -> object:
    return _listen(80)


@attempt
def listen_at_a_port_that_file_servers_trust() -> object:
    return _listen(1023)
