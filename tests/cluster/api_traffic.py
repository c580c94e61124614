"""What a program asks the API server: a proxy on loopback that counts requests and bytes.

The API server's own metrics can't tell a program from the controllers.
"""

import asyncio
import json
import re
import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

from soperator_pulumi.kube.access import Access
from soperator_pulumi.kube.kubeconfig import client_settings

EXEC = "exec"
"""Key in `requests` of commands in pods, which are those of Slurm."""

_REQUEST = re.compile(rb"(GET|POST|PUT|PATCH|DELETE) (/\S*) HTTP/1\.1\r\n")
"""The start of a request. A body is JSON, which has no such line."""

_LONGEST_START = 32 * 1024
_CHUNK = 256 * 1024
_START_SECONDS = 10


@dataclass
class Traffic:
    """Requests and bytes since the start, or since the last `take`."""

    kubeconfig: Path
    """File that leads to the API server by the proxy."""
    requests: Counter[str] = field(default_factory=Counter)
    """Number of requests by method, or `EXEC`."""
    received: int = 0
    """Bytes of answers, compressed as they came."""

    def take(self) -> tuple[Counter[str], int]:
        """Return requests and received bytes, and count from zero."""
        taken = self.requests, self.received
        self.requests, self.received = Counter(), 0
        return taken


@contextmanager
def counted(kubeconfig: Path, context: str | None, folder: Path) -> Iterator[Traffic]:
    """Serve a proxy to the API server of a kubeconfig with client certificates, and count what passes."""
    proxy = _Proxy(kubeconfig, context, Traffic(folder / "counted.kubeconfig"))
    thread = Thread(target=asyncio.run, args=(proxy.run(),))
    thread.start()
    port, stop = proxy.serving.result(_START_SECONDS)
    try:
        proxy.traffic.kubeconfig.write_text(json.dumps(_kubeconfig(f"http://127.0.0.1:{port}")))
        yield proxy.traffic
    finally:
        stop()
        thread.join()


def _kubeconfig(address: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "counted", "cluster": {"server": address}}],
        "users": [{"name": "counted", "user": {}}],
        "contexts": [{"name": "counted", "context": {"cluster": "counted", "user": "counted"}}],
        "current-context": "counted",
    }


class _Proxy:
    """Passes connections on, one to the API server for every one of a client."""

    def __init__(self, kubeconfig: Path, context: str | None, traffic: Traffic) -> None:
        settings = client_settings(Access(str(kubeconfig), context))
        self.traffic = traffic
        self.serving: Future[tuple[int, Callable[[], object]]] = Future()
        """Port of the proxy, and a function that ends `run`, once it serves."""
        self._server = urlsplit(settings.host)
        self._security = ssl.create_default_context(cafile=settings.ssl_ca_cert)
        assert settings.cert_file, "the kubeconfig has a client certificate"
        self._security.load_cert_chain(settings.cert_file, settings.key_file)

    async def run(self) -> None:
        """Serve until the end is asked for. The end of the loop cancels connections that are still open."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1")
        self.serving.set_result((server.sockets[0].getsockname()[1], partial(loop.call_soon_threadsafe, ended.set)))
        await ended.wait()
        server.close()

    async def _serve(self, requests: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        """Serve a client until it, or the API server, closes the connection."""
        with closing(client.transport), suppress(asyncio.CancelledError, OSError):
            answers, upstream = await asyncio.open_connection(
                self._server.hostname, self._server.port or 443, ssl=self._security
            )
            try:
                await asyncio.gather(
                    _pass(requests, upstream, self._counter_of_requests()), _pass(answers, client, self._count_answer)
                )
            finally:
                upstream.transport.abort()  # a close would wait for the API server's answer

    def _count_answer(self, chunk: bytes) -> None:
        self.traffic.received += len(chunk)

    def _counter_of_requests(self) -> Callable[[bytes], None]:
        """Return a function that takes what a client sends, and counts requests, which may come in pieces."""
        unread = b""

        def count(chunk: bytes) -> None:
            nonlocal unread
            unread += chunk
            end = 0
            for found in _REQUEST.finditer(unread):
                is_exec = urlsplit(found[2]).path.endswith(b"/exec")
                self.traffic.requests[EXEC if is_exec else found[1].decode()] += 1
                end = found.end()
            unread = unread[end:][-_LONGEST_START:]

        return count


async def _pass(source: asyncio.StreamReader, target: asyncio.StreamWriter, count: Callable[[bytes], None]) -> None:
    """Pass on what comes, and close the target at the end, which ends the other direction."""
    with suppress(OSError):  # reset, or the other side was first
        while chunk := await source.read(_CHUNK):
            count(chunk)
            target.write(chunk)
            await target.drain()
    target.close()
