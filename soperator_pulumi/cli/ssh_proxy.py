"""An OpenSSH ProxyCommand (ssh_config(5)): joins standard input and output to sshd in a login pod.

It uses the Kubernetes API (port-forward), so a login only needs the cluster's kubeconfig: no route to the pods, no open
port.
"""

import argparse
import json
import os
import socket
import sys
import threading
from collections.abc import Mapping
from typing import Any, BinaryIO

import urllib3
from kubernetes import client
from kubernetes.stream.ws_client import portforward_call

from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.kube.access import Access
from soperator_pulumi.kube.exec_transport import why_not_opened
from soperator_pulumi.kube.kubeconfig import client_settings, not_reached

SSHD_PORT = 2222
CHUNK_BYTES = 65536
API_TIMEOUT_SECONDS = 10


def main() -> int:
    """Forward until either side ends. If there is no sshd, print that and return 1."""
    options = _parse_arguments()
    try:
        cluster = client_settings(Access(options.kubeconfig, options.context))
        if join(sys.stdin.fileno(), sys.stdout.buffer, cluster, options.namespace, options.login):
            return 0
    except KubernetesError as error:
        sys.exit(str(error))
    sys.exit(
        f"no pod of {options.login} in namespace {options.namespace} is ready. Look at the pods: "
        f"kubectl --namespace {options.namespace} get pods, then run again"
    )


def join(source: int, sink: BinaryIO, cluster: client.Configuration, namespace: str, login: str = "login") -> bool:
    """Forward between a file descriptor or file and sshd until either side ends. Return False if there is no sshd.

    Args:
        source: Input of sshd.
        sink: Output of sshd.
        cluster: Address and credentials of the API server.
        namespace: The namespace of the Slurm cluster.
        login: Component label of the login pods. Default: those outside the pools.

    Raises:
        KubernetesError: The API server is not reached, or refuses.
    """
    pods = f"{cluster.host}/api/v1/namespaces/{namespace}/pods"
    pod = _ready_login_pod(cluster, pods, login)
    if pod is None:
        return False
    # The client's CoreV1Api, for which this is written there, takes half a second to import.
    ports = [("ports", str(SSHD_PORT))]
    url = f"{pods}/{pod}/portforward"
    try:
        forward = portforward_call(cluster, "GET", url, query_params=ports, headers=_credentials(cluster))
    except client.ApiException as error:
        raise KubernetesError(
            f"pod {namespace}/{pod}: cannot log in: {why_not_opened(error, cluster.host)}."
        ) from error
    connection: socket.socket = forward.socket(SSHD_PORT)
    connection.setblocking(True)
    # A daemon: once sshd has closed, no one waits for more input.
    threading.Thread(target=_send, args=(source, connection), daemon=True).start()
    _receive(connection, sink)
    return True


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig")
    parser.add_argument("--context")
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--login", default="login")
    return parser.parse_args()


def _ready_login_pod(cluster: client.Configuration, pods: str, login: str) -> str | None:
    try:
        response = client.ApiClient(cluster).rest_client.pool_manager.request(
            "GET",
            f"{pods}?labelSelector=app.kubernetes.io/component={login}",
            headers=_credentials(cluster),
            timeout=API_TIMEOUT_SECONDS,
        )
    except urllib3.exceptions.HTTPError as error:
        raise KubernetesError(not_reached(cluster.host, error)) from error
    try:
        found = json.loads(response.data)
        if response.status != 200:
            raise KubernetesError(f"The Kubernetes API at {cluster.host}: {found.get('message', response.reason)}")
        return next((pod["metadata"]["name"] for pod in found["items"] if _ready(pod)), None)
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise KubernetesError(
            f"{cluster.host} answers {response.status} {response.reason}, but not as a Kubernetes API does. Check the "
            "server in the kubeconfig."
        ) from error


def _ready(pod: Mapping[str, Any]) -> bool:
    """Return True if sshd answers, and the pod takes new sessions: one that waits for its last ones stays ready."""
    if "deletionTimestamp" in pod["metadata"]:
        return False
    conditions = pod.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _credentials(cluster: client.Configuration) -> dict[str, str]:
    bearer = cluster.get_api_key_with_prefix("BearerToken", "authorization")
    return {"authorization": str(bearer)} if bearer else {}


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
