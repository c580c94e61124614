"""An OpenSSH ProxyCommand (ssh_config(5)): joins standard input and output to sshd in a login pod.

It goes through the Kubernetes API (port-forward), so that logging in needs the cluster's kubeconfig and no
more: no route to the pods, no open port.
"""

import argparse
import os
import socket
import sys
import threading
from collections.abc import Mapping
from typing import Any, BinaryIO

from kubernetes import client, config
from kubernetes.stream import portforward

SSHD_PORT = 2222
CHUNK_BYTES = 65536
API_TIMEOUT_SECONDS = 10


def main() -> int:
    """Forward until either side ends. Return 1, and say so, when there is nobody to talk to."""
    options = _parse_arguments()
    config.load_kube_config(options.kubeconfig, context=options.context)
    if join(sys.stdin.fileno(), sys.stdout.buffer, options.namespace):
        return 0
    print(f"no login pod in namespace {options.namespace} is ready; try `make up`", file=sys.stderr)
    return 1


def join(source: int, sink: BinaryIO, namespace: str) -> bool:
    """Join a file descriptor and a file to sshd until either side ends. Return False when there is no sshd.

    Args:
        source: What is read from here goes to sshd.
        sink: Gets what comes from there.
        namespace: The cluster's namespace.
    """
    api = client.CoreV1Api()
    pod = _ready_login_pod(api, namespace)
    if pod is None:
        return False
    forward = portforward(api.connect_get_namespaced_pod_portforward, pod, namespace, ports=str(SSHD_PORT))
    connection: socket.socket = forward.socket(SSHD_PORT)
    connection.setblocking(True)
    # A daemon: when sshd has closed, nobody waits for more input.
    threading.Thread(target=_send, args=(source, connection), daemon=True).start()
    _receive(connection, sink)
    return True


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--context")
    parser.add_argument("--namespace", required=True)
    return parser.parse_args()


def _ready_login_pod(api: client.CoreV1Api, namespace: str) -> str | None:
    selector = "app.kubernetes.io/component=login"
    pods = api.list_namespaced_pod(namespace, label_selector=selector, _request_timeout=API_TIMEOUT_SECONDS)
    ready = (pod["metadata"]["name"] for pod in api.api_client.sanitize_for_serialization(pods)["items"] if _ready(pod))
    return next(ready, None)


def _ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _send(source: int, connection: socket.socket) -> None:
    while data := os.read(source, CHUNK_BYTES):
        connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)


def _receive(connection: socket.socket, sink: BinaryIO) -> None:
    while data := connection.recv(CHUNK_BYTES):
        sink.write(data)
        sink.flush()


if __name__ == "__main__":
    sys.exit(main())
