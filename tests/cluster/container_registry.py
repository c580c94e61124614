"""A real container registry on loopback, which lets one user in."""

import base64
import json
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.waiting import wait_until
from tools.kube import binaries
from tools.kube.binaries import Binary

USER, PASSWORD = "pusher", "not-a-secret-of-anybody"
# htpasswd -nbB -C 5 pusher not-a-secret-of-anybody: the registry takes no other kind of hash.
_HTPASSWD = "pusher:$2y$05$lnrA2KiOKrjzeYT3oaYtJuJPYbyejxTRf0F/nQ9kJoy8SDrpypCtm\n"

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"


BINARY = Binary("registry", "github.com/distribution/distribution/v3", module=Path(__file__).parent / "go")
"""Dependencies that the servers have, too, are of the same versions in its go.mod: Go compiles those once."""


@dataclass(frozen=True)
class Registry:
    """A running registry."""

    host: str

    def manifest(self, name: str, tag: str) -> dict[str, Any]:
        """Return an image's manifest, as a node would ask for it."""
        with self._get(f"/v2/{name}/manifests/{tag}") as answer:
            content: dict[str, Any] = json.load(answer)
            return content

    def answers(self) -> bool:
        """Tell whether it is up."""
        try:
            with self._get("/v2/"):
                return True
        except urllib.error.URLError:
            return False

    def credentials(self, password: str = PASSWORD) -> str:
        """Return the content of the file that `docker login` writes."""
        return json.dumps({"auths": {self.host: {"auth": _basic(password)}}})

    def _get(self, path: str) -> Any:
        request = urllib.request.Request(
            f"http://{self.host}{path}",
            headers={"Accept": MANIFEST_TYPE, "Authorization": f"Basic {_basic(PASSWORD)}"},
        )
        return urllib.request.urlopen(request, timeout=10)  # noqa: S310 - our own address, just above


def _basic(password: str) -> str:
    return base64.b64encode(f"{USER}:{password}".encode()).decode()


@contextmanager
def running(folder: Path) -> Iterator[Registry]:
    """Run a registry that keeps its images in a folder."""
    binaries.build(BINARY)
    with socket.create_server(("127.0.0.1", 0)) as free:
        host = f"127.0.0.1:{free.getsockname()[1]}"
    (folder / "htpasswd").write_text(_HTPASSWD)
    settings = {
        "version": "0.1",
        "storage": {"filesystem": {"rootdirectory": str(folder / "images")}},
        "http": {"addr": host},
        "auth": {"htpasswd": {"realm": "tests", "path": str(folder / "htpasswd")}},
        "log": {"level": "error", "accesslog": {"disabled": True}},
    }
    (folder / "registry.json").write_text(json.dumps(settings))  # YAML has JSON in it
    with (
        (folder / "registry.log").open("w") as log,
        subprocess.Popen(
            [BINARY.installed / BINARY.name, "serve", folder / "registry.json"], stdout=log, stderr=log
        ) as process,
    ):
        registry = Registry(host)
        try:
            wait_until(registry.answers, what="the registry answers")
            yield registry
        finally:
            process.terminate()
