"""Releases of a chart of the tests' own."""

import base64
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from tests.conftest import Kubernetes
from tests.engine.conftest import Stack
from tools.engine.local.helm import helm_binary

CHART = Path(__file__).parent / "charts" / "tiny"
NO_IMAGE = "localhost/tests/none:1"
"""An image that no node has and no node pulls: a pod of it is never ready."""


def release(stack: Stack, name: str = "r", *, options: dict[str, Any] | None = None, **inputs: Any) -> dict[str, Any]:
    """Return a release for a stack, of our chart and in the stack's namespace unless the inputs differ."""
    properties = {"chart": str(CHART), "name": name, "namespace": stack.namespace, **inputs}
    return {
        "name": name,
        "type": "kubernetes:helm.sh/v3:Release",
        "properties": {key: value for key, value in properties.items() if value is not None},
        "outputs": ["name", "status", "resourceNames"],
        "options": options or {},
    }


def helm(kubernetes: Kubernetes, *arguments: str) -> str:
    """Run helm by hand."""
    context = ["--kube-context", kubernetes.target.context] if kubernetes.target.context else []
    command = [str(helm_binary.built()), *arguments, f"--kubeconfig={kubernetes.kubeconfig}", *context]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def status(stack: Stack, name: str = "r") -> dict[str, Any]:
    """Return the status in the outputs of a release in the state."""
    (found,) = (resource for resource in stack.deployer().state() if resource.name == name)
    outputs: dict[str, Any] = dict(found.outputs)
    return dict(outputs["status"])


def history(stack: Stack, name: str = "r") -> list[tuple[int, str]]:
    """Return the revisions of a release, each with its status."""
    listed = json.loads(helm(stack.kubernetes, "history", name, "--namespace", stack.namespace, "--output=json"))
    return [(item["revision"], item["status"]) for item in listed]


@contextmanager
def repository(folder: Path, user: str, password: str) -> Iterator[str]:
    """Serve a repository with our chart on loopback, to one user alone, and yield its address."""
    subprocess.run([helm_binary.built(), "package", CHART, "--destination", folder], check=True, capture_output=True)
    subprocess.run([helm_binary.built(), "repo", "index", folder], check=True)
    allowed = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(folder))

        def do_GET(self) -> None:
            if self.headers["Authorization"] == allowed:
                super().do_GET()
            else:
                self.send_error(HTTPStatus.UNAUTHORIZED)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def changed_chart(folder: Path, version: str, **files: str) -> Path:
    """Return a copy of the chart with another version, and with further files by their paths with `__` for `/`."""
    copy = folder / f"tiny-{version}"
    shutil.copytree(CHART, copy)
    description = (copy / "Chart.yaml").read_text()
    (copy / "Chart.yaml").write_text(description.replace("version: 0.1.0", f"version: {version}"))
    for path, text in files.items():
        file = copy / f"{path.replace('__', '/')}.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return copy
