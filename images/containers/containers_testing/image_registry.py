"""A registry with one image, which accepts the user alice, for the real skopeo."""

import base64
import hashlib
import io
import json
import os
import re
import ssl
import tarfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests import debian_packages
from tests.cluster.certificates import Authority
from tools.kube.archives import architecture as architecture_here

PROGRAMS = ("skopeo", "umoci")
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def variables_of_programs() -> dict[str, str]:
    """Return variables with which skopeo and umoci are found."""
    root = debian_packages.unpacked_packages(
        "containers", PROGRAMS, debian_packages.missing_with_requirements(PROGRAMS)
    )
    libraries = ":".join(str(path) for path in (root / "usr/lib").glob("*-linux-gnu"))
    return {"PATH": f"{root}/usr/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": libraries}


def layer(members: Iterable[tarfile.TarInfo | tuple[str, bytes]], *, mode: int = 0o644) -> bytes:
    """Return a layer with files of a mode, or with any other member that a tar can hold."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size, info.mode = len(member[1]), mode
                archive.addfile(info, io.BytesIO(member[1]))
    return buffer.getvalue()


def special(name: str, kind: bytes, target: str = "", mode: int = 0o755) -> tarfile.TarInfo:
    """Return a member of a layer that is not a regular file."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, target, mode
    return info


def make_layout(
    folder: Path,
    layers: Iterable[bytes],
    *,
    architecture: str = architecture_here(),
    system: str = "linux",
    **config: object,
) -> Path:
    """Make an OCI layout of an image, for this machine if no other one is named."""
    blobs = folder / "blobs/sha256"
    blobs.mkdir(parents=True)

    def blob(content: bytes, kind: str) -> dict[str, object]:
        name = hashlib.sha256(content).hexdigest()
        (blobs / name).write_bytes(content)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{name}", "size": len(content)}

    described = [blob(item, "layer.v1.tar") for item in layers]
    rootfs = {"type": "layers", "diff_ids": [item["digest"] for item in described]}
    of = {"architecture": architecture, "os": system}
    settings = blob(json.dumps({**of, "config": config, "rootfs": rootfs}).encode(), "config.v1+json")
    manifest = blob(
        json.dumps({"schemaVersion": 2, "config": settings, "layers": described}).encode(), "manifest.v1+json"
    )
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [manifest]}))
    return folder


class LayoutServer(BaseHTTPRequestHandler):
    """A registry with one image of a layout, which accepts the user alice."""

    layout: Path
    asked: list[str]

    def do_GET(self) -> None:
        """Answer as a registry does."""
        self.asked.append(self.path)
        wanted = f"Basic {base64.b64encode(b'alice:secret').decode()}"
        if self.headers["Authorization"] != wanted:
            self._answer(401, b"{}", {"WWW-Authenticate": 'Basic realm="tests"'})
        elif self.path == "/v2/":
            self._answer(200, b"{}", {})
        elif found := re.fullmatch(r"/v2/team/image/(manifests|blobs)/(.+)", self.path):
            index = json.loads((self.layout / "index.json").read_text())["manifests"][0]["digest"]
            digest = index if found[2] == "1.0" else found[2]
            kind = {"Content-Type": MANIFEST} if found[1] == "manifests" else {}
            content = (self.layout / "blobs/sha256" / digest.removeprefix("sha256:")).read_bytes()
            self._answer(200, content, {**kind, "Docker-Content-Digest": digest})
        else:
            self._answer(404, b"{}", {})

    def do_HEAD(self) -> None:
        """Answer without a body."""
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _answer(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)


@contextmanager
def running(folder: Path, layout: Path, address: str = "127.0.0.1") -> Iterator[tuple[str, list[str]]]:
    """Yield the address of a registry with the image of a layout, and the requests that it gets.

    Its authority is `ca.crt` in the folder.
    """
    authority = Authority.made("registry")
    for name, content in {**authority.sign(address), "ca.crt": authority.pem}.items():
        (folder / name).write_bytes(content)

    class Served(LayoutServer):
        pass

    Served.asked, Served.layout = [], layout
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    with ThreadingHTTPServer((address, 0), Served) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"{address}:{server.server_port}", Served.asked
        server.shutdown()


def log_in(home: Path, host: str, password: str) -> None:
    """Write the file of `docker login` for alice."""
    (home / ".docker").mkdir(parents=True)
    auth = base64.b64encode(f"alice:{password}".encode()).decode()
    (home / ".docker/config.json").write_text(json.dumps({"auths": {host: {"auth": auth}}}))
