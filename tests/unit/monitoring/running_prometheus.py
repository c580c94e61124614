"""A Prometheus that runs: it scrapes a world each second, and evaluates the rules."""

import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import yaml

from tests.unit.monitoring.programs_of_prometheus import program
from tests.unit.monitoring.promql import rules_file
from tests.unit.monitoring.world import NAMESPACE, Series
from tests.waiting import wait_until
from tools.console import UserError
from tools.dashboard.prometheus_api import PrometheusApi, at_address


@contextmanager
def running_prometheus(text: Callable[[], str], folder: Path, recorded: str) -> Iterator[PrometheusApi]:
    """Run Prometheus until the body ends.

    Args:
        text: Function that returns the text of a scrape.
        folder: Folder for its files.
        recorded: Query that has an answer before the body begins.
    """
    with _served(text) as target, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(_fast(rules_file(folder)))],
            "scrape_configs": [{"job_name": "world", "honor_labels": True, "static_configs": [target]}],
        }
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        free.close()
        words = [f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/tsdb"]
        with (folder / "log").open("w") as log:
            server = subprocess.Popen([program("prometheus"), *words, f"--web.listen-address={address}"], stderr=log)
            try:
                api = at_address(f"http://{address}")
                wait_until(lambda: _answers(api, recorded), what=f"Prometheus has recorded {recorded}")
                yield api
            finally:
                server.terminate()
                server.wait()


def _answers(api: PrometheusApi, query: str) -> bool:
    try:
        return bool(api.now(query, time.time()))
    except UserError:
        return False


def _fast(rules: Path) -> Path:
    """Evaluate each second: the interval of the rules' own groups would be a minute."""
    rules.write_text(rules.read_text().replace("interval: 1m", "interval: 1s"))
    return rules


@contextmanager
def _served(text: Callable[[], str]) -> Iterator[dict[str, Any]]:
    """Serve text as an exporter would, and yield the target. Series have the namespace where they name none."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = text().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {"targets": [f"127.0.0.1:{server.server_port}"], "labels": {"namespace": NAMESPACE}}
    finally:
        server.shutdown()
        server.server_close()


def growing(world: Series) -> Callable[[], str]:
    """Return the text of a world, which begins now."""
    began = time.time()
    return lambda: exposition(world, time.time() - began)


def exposition(world: Series, seconds: float) -> str:
    """Return a world as text for a scrape, so long after its begin."""
    lines = []
    for name, values in sorted(world.items()):
        found = re.fullmatch(r"(-?[\d.]+)\+([\d.]+)x\d+", values)
        assert found, values
        lines.append(f"{name} {float(found[1]) + float(found[2]) * seconds / 60}\n")
    return "".join(lines)
