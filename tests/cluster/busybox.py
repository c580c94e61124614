"""An image for pods of tests, made from the distribution's statically linked busybox: it needs no registry."""

import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from tools.kube import archives
from tools.kube.debs import Apt
from tools.kube.process import output
from tools.paths import cache_dir

IMAGE = "localhost/soperator/test-busybox:1"

SERVE = "mkdir -p /tmp/www && hostname > /tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www"
"""Answers HTTP requests with the pod's name."""


def archive() -> Path:
    """Return the image's archive in the cache; made first when it is not there."""
    path = cache_dir() / "images" / "test-busybox-1.tar"
    if not path.exists():
        with tempfile.TemporaryDirectory() as folder:
            apt = Apt(Path(folder) / "apt")
            apt.fresh_closure(["busybox-static"])
            (package,) = apt.download(["busybox-static"])
            output(["dpkg", "-x", package, folder])
            (program,) = (found for found in Path(folder).glob("**/bin/busybox") if found.is_file())
            listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.split()
            links = {f"/bin/{name}": "busybox" for name in listed if name != "busybox"}
            content = archives.archive(
                IMAGE, {"/bin/busybox": program.read_bytes()}, entrypoint=["/bin/sh"], links=links
            )
            archives.write(path, content)
    return path


def program() -> bytes:
    """Return busybox itself: a static program, which runs on any root that lets it."""
    with tarfile.open(archive()) as image:
        layer = image.extractfile("layer.tar")
        assert layer
        with tarfile.open(fileobj=layer) as files:
            found = files.extractfile("bin/busybox")
            assert found
            return found.read()


def container(script: str = SERVE, **changes: Any) -> dict[str, Any]:
    """Return a container that runs a shell script; by default a server on the port `http` (8080)."""
    return {
        "name": "main",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "args": ["-c", script],
        "ports": [{"name": "http", "containerPort": 8080}],
        **changes,
    }


def lookup(name: str) -> str:
    """Return a shell script that looks up a name and ends with "; answered" unless a nameserver kept it waiting."""
    # A resolver waits 5 s for an answer before it asks again (resolv.conf(5)): who takes 4 has waited for nothing.
    return f"timeout 4 nslookup {name} 2>&1; test $? -le 1 && echo '; answered'; true"


def pod(name: str, *, script: str = SERVE, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a pod with one such container, which ends at once when it is deleted."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "enableServiceLinks": False,
            "containers": [container(script)],
            **spec,
        },
    }
