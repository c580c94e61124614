"""A port of this machine behind which sshd of a cluster is, as long as standard input is open; prints its number.

It does for many connections what `soperator_pulumi/cli/ssh_proxy.py` does for one. A test that starts ssh often would
start as many Pythons otherwise, and each takes a processor for half a second to import the Kubernetes client.
"""

import socket
import socketserver
import sys
import threading

from kubernetes import client

from soperator_pulumi.cli import ssh_proxy
from soperator_pulumi.kube.access import Access
from soperator_pulumi.kube.kubeconfig import client_settings


class Door(socketserver.ThreadingTCPServer):
    """The port."""

    daemon_threads = True

    def __init__(self, cluster: client.Configuration, namespace: str) -> None:
        super().__init__(("127.0.0.1", 0), Guest)
        self.cluster, self.namespace = cluster, namespace


class Guest(socketserver.BaseRequestHandler):
    """One connection."""

    def handle(self) -> None:
        assert isinstance(self.server, Door)
        connection: socket.socket = self.request
        with connection.makefile("wb") as sink:
            ssh_proxy.join(connection.fileno(), sink, self.server.cluster, self.server.namespace)


def main() -> None:
    """Serve the namespace of the second argument with the kubeconfig of the first, in the context of the third."""
    kubeconfig, namespace, context = sys.argv[1:]
    cluster = client_settings(Access(kubeconfig, context or None))
    with Door(cluster, namespace) as door:
        threading.Thread(target=door.serve_forever, daemon=True).start()
        sys.stdout.write(f"{door.server_address[1]}\n")
        sys.stdout.flush()
        sys.stdin.read()
        door.shutdown()


if __name__ == "__main__":
    main()
