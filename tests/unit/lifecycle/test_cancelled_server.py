"""Ctrl-C in a Python program: the engine calls `Cancel` of the SDK's server of dynamic resources, and kills nothing."""

import http.server
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2

from soperator_pulumi.lifecycle.pods_ready import PodsReadyProvider
from tests.fakes.objects import NAMESPACE
from tests.unit.lifecycle.dynamic_server import inputs, sdk_server
from tests.unit.operations.test_rollout import LOGIN, a_stateful_set
from tests.waiting import wait_until

KUBECONFIG = """\
current-context: main
clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: u, user: {{token: x}}}}]
contexts: [{{name: main, context: {{cluster: c, user: u}}}}]
"""
THREADS = 4
"""Calls that the SDK's server answers at a time."""
WAITS = [f"set-{number}" for number in range(THREADS + 1)]


class NeverReady(http.server.BaseHTTPRequestHandler):
    """A Kubernetes whose StatefulSets have no ready pod."""

    asked: set[str]

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.asked.add(path.rpartition("/")[2])
        found = {"items": []} if path.endswith("/pods") else a_stateful_set(readyReplicas=0)
        body = json.dumps(found).encode()
        self.send_response(http.HTTPStatus.OK)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is that of the library
        """Print nothing."""


@pytest.fixture
def never_ready() -> Iterator[tuple[str, set[str]]]:
    """A kubeconfig of such a Kubernetes cluster, and the names that it was asked for."""
    asked: set[str] = set()
    handler = type("Handler", (NeverReady,), {"asked": asked})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield KUBECONFIG.format(port=server.server_port), asked
        server.shutdown()


def test_all_waits_end_once_the_engine_cancels_the_run(never_ready: tuple[str, set[str]]) -> None:
    """One wait more than the server has threads: it gets none before the others end, and does not begin then."""
    kubeconfig, asked = never_ready
    printed: list[str] = []
    with sdk_server({"soperator:kubeconfig": kubeconfig}, printed) as server:
        waits: list[Any] = [
            server.Create.future(
                provider_pb2.CreateRequest(
                    properties=inputs(
                        PodsReadyProvider(),
                        {"namespace": NAMESPACE, "owner": "hpc", "selector": LOGIN, "stateful_set": stateful_set},
                    )
                )
            )
            for stateful_set in WAITS
        ]
        wait_until(lambda: len(asked & {*WAITS}) == THREADS, "four waits are under way", seen=asked.copy)
        began = time.monotonic()
        server.Cancel(empty_pb2.Empty(), timeout=3)
        failures = [wait.exception(timeout=3) for wait in waits]
        assert time.monotonic() - began < 3
    for failure in failures:
        assert isinstance(failure, grpc.RpcError)
        assert failure.details() == "cancelled: unfinished work stays as it is. Run again to continue."
    assert len(asked & {*WAITS}) == THREADS
