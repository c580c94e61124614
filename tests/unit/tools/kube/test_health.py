"""Is a server well?"""

import http.server
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tools.kube.health import Asker, socket_problem


@contextmanager
def server(status: int, content: bytes) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/healthz"
        running.shutdown()
        thread.join()


def test_a_server_that_answers_with_success_is_well() -> None:
    with server(200, b"ok") as url:
        assert Asker().problem(url) is None


def test_one_that_answers_with_an_error_says_why() -> None:
    with server(503, b"etcd failed: reason withheld") as url:
        problem = Asker().problem(url)
    assert problem
    assert "answers 503: etcd failed" in problem


def test_one_that_does_not_listen_is_not_well() -> None:
    with server(200, b"") as url:
        pass
    assert url in (Asker().problem(url) or "")


def test_no_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with server(200, b"ok") as url:
        assert Asker().problem(url) is None


@pytest.mark.parametrize(
    ("conditions", "problem"),
    [
        ([{"type": "Ready", "status": "True", "message": ""}], None),
        ([{"type": "Ready", "status": "False", "message": "cni plugin not initialized"}], "cni plugin not initialized"),
        ([], "has not reported yet"),
    ],
)
def test_a_node_is_well_when_it_is_ready(conditions: list[dict[str, str]], problem: str | None) -> None:
    with server(200, json.dumps({"status": {"conditions": conditions}}).encode()) as url:
        found = Asker().node_problem(url)
    assert (found is None) is (problem is None)
    assert (problem or "") in (found or "")


def test_a_node_that_is_not_there_is_not_well() -> None:
    with server(404, b"{}") as url:
        assert "404" in (Asker().node_problem(url) or "")


def test_a_socket_on_which_no_one_listens_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        assert socket_problem(path) is None
    assert "refused" in (socket_problem(path) or "")
