"""The program: asks Slurm in background rounds, and serves the last one over HTTP."""

import argparse
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from slurm_exporter import container_reports, long_reports, published_store, served_certificate
from slurm_exporter.background_reading import BackgroundReading
from slurm_exporter.collection import Collector, run_slurm
from slurm_exporter.event_posts import EventPosts, poster
from slurm_exporter.health_events import HealthWatch, health_drains
from slurm_exporter.kubernetes_api import KubernetesApi
from slurm_exporter.node_conditions import NodeConditions
from slurm_exporter.samples import Samples

_REQUEST_SECONDS = 10


class Page:
    """The text of the last round, which all scrapes get."""

    def __init__(self) -> None:
        self.text = b""


def text_of(collector: Collector) -> bytes:
    """Return the metrics in Prometheus' format, family by family: all at once would take twice the memory."""
    return b"".join(generate_latest(Family(metric)) for metric in collector.collect())


@dataclass(frozen=True)
class Family:
    """Metrics of one name, as the client library collects them."""

    metric: Metric

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""
        return [self.metric]


class _DualStackServer(ThreadingHTTPServer):
    """A server at the pod's IPv4 and IPv6 addresses, or at IPv4 only if the kernel has no IPv6."""

    address_family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET

    def server_bind(self) -> None:
        if self.address_family is socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


def serve(page: Page, port: int) -> ThreadingHTTPServer:
    """Return a server of the page at `/metrics`. `/healthz` answers once there is a round."""

    class Handler(BaseHTTPRequestHandler):
        timeout = _REQUEST_SECONDS

        def do_GET(self) -> None:
            known = self.path.partition("?")[0] in {"/metrics", "/healthz"}
            status = (
                HTTPStatus.NOT_FOUND if not known else HTTPStatus.OK if page.text else HTTPStatus.SERVICE_UNAVAILABLE
            )
            body = page.text if self.path.startswith("/metrics") and known else b""
            self.send_response(status)
            self.send_header("Content-Type", CONTENT_TYPE_LATEST)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log no requests."""

    return _DualStackServer(("", port), Handler)


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _started(name: str, read: Callable[[], Samples], interval: float) -> BackgroundReading:
    """Return a reading of a source that goes on every `interval` seconds."""
    reading = BackgroundReading(name, read, _report)
    reading.start(interval)
    return reading


def main(arguments: Sequence[str]) -> int:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(prog="slurm-exporter", description="Serve Slurm's metrics to Prometheus.")
    parser.add_argument("--port", type=int, default=9341)
    parser.add_argument("--interval", type=float, default=30, help="seconds between two rounds")
    parser.add_argument(
        "--events",
        type=Path,
        metavar="FOLDER",
        help="publish drains by health checks as events of Kubernetes, with the service account in this folder",
    )
    parser.add_argument(
        "--node-conditions",
        type=Path,
        metavar="FOLDER",
        help="show drains by health checks as conditions of Kubernetes' nodes, with the same service account",
    )
    parser.add_argument(
        "--long-checks", type=Path, metavar="FOLDER", help="serve results of the long checks, from their reports here"
    )
    parser.add_argument(
        "--images",
        type=Path,
        metavar="FOLDER",
        help="serve sizes of the shared images, and the nodes' reports of containers, from the store here",
    )
    parser.add_argument(
        "--rest-certificate", metavar="HOST:PORT", help="serve the end of the certificate that the REST API has there"
    )
    given = parser.parse_args(arguments)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    collector, page, watch, posts, conditions = Collector(), Page(), HealthWatch(), None, None
    if given.events is not None:
        posts = EventPosts(poster(KubernetesApi(given.events, os.environ)), _report)
        collector.events = posts.outcomes
        posts.start()
    if given.node_conditions is not None:
        collector.conditions = conditions = NodeConditions(KubernetesApi(given.node_conditions, os.environ), _report)
        conditions.start()
    if given.long_checks is not None:
        collector.reports = _started("long checks", partial(long_reports.read, given.long_checks), given.interval)
    if given.images is not None:
        collector.images = _started("images", partial(published_store.read, given.images), given.interval)
        collector.containers = _started("containers", partial(container_reports.read, given.images), given.interval)
    if given.rest_certificate is not None:
        read = partial(served_certificate.read, given.rest_certificate)
        collector.certificate = _started("REST certificate", read, given.interval)
    server = serve(page, given.port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while not ended.is_set():
        began = time.monotonic()
        collector.round(run_slurm, _report)
        nodes = collector.samples_of("nodes")
        if posts is not None:
            posts.add(watch.changes(nodes))
        if conditions is not None and nodes:
            conditions.offer(health_drains(nodes))
        page.text = text_of(collector)
        ended.wait(max(0.0, given.interval - (time.monotonic() - began)))
    if conditions is not None:
        conditions.end()
    server.shutdown()
    return 0
