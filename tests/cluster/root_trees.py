"""Small root filesystems to make jails of: Debian releases without any Slurm, and busybox with nothing else."""

import hashlib
import json
import os
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path

from tests.cluster import busybox
from tests.debian_releases import bootstrap_release
from tools import paths
from tools.console import step
from tools.images.recipe import Recipe
from tools.kube import EmbeddedKubernetes, archives

PACKAGES = ("openssh-client", "procps", "python3", "rsync")
"""Packages that tests run in a jail, in addition to the essential packages."""

_VERSION = 1
"""Counted up when this module makes other trees of the same inputs."""


@dataclass(frozen=True)
class RootTree:
    """A root filesystem, as a tarball and as an image of one layer; made once and kept in the cache."""

    name: str
    fill: Callable[[Path], None]
    """Writes the tarball."""
    inputs: str = ""

    @property
    def reference(self) -> str:
        """The image's name."""
        return f"localhost/soperator/test-tree-{self.name}:{self._key}"

    @property
    def tarball(self) -> Path:
        """The tarball, uncompressed; made first where it is missing."""
        path = self._cached("tar")
        if not path.exists():
            with step(f"Making the root filesystem {self.name}"):
                _whole(path, self.fill)
        return path

    @property
    def sha256(self) -> str:
        """The tarball's checksum in hexadecimal digits."""
        with self.tarball.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def bring_to(self, kube: EmbeddedKubernetes) -> str:
        """Bring the image to the machine's containerd, where it is not there yet, and return its name."""
        if self.reference not in kube.images():
            archive = self._cached(f"{os.getpid()}.image.tar")
            _whole(archive, self.write_image)
            try:
                kube.import_image(archive)
            finally:
                archive.unlink()
        return self.reference

    def write_image(self, path: Path) -> None:
        """Write an image of the tarball as `docker save` does."""
        settings = {
            "architecture": archives.architecture(),
            "os": "linux",
            "config": {"Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{self.sha256}"]},
        }
        config = json.dumps(settings).encode()
        config_name = f"{sha256(config).hexdigest()}.json"
        manifest = json.dumps([{"Config": config_name, "RepoTags": [self.reference], "Layers": ["layer.tar"]}])
        with tarfile.open(path, "w") as tar:
            tar.add(self.tarball, arcname="layer.tar")
            for name, content in ((config_name, config), ("manifest.json", manifest.encode())):
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                tar.addfile(entry, BytesIO(content))

    @property
    def _key(self) -> str:
        made_of = f"{_VERSION} {self.name} {Recipe().as_of} {self.inputs}"
        return sha256(made_of.encode()).hexdigest()[:12]

    def _cached(self, ending: str) -> Path:
        return paths.cache_dir() / "images" / f"test-tree-{self.name}-{self._key}.{ending}"


def with_user(tree: RootTree, name: str, uid: int) -> RootTree:
    """Return a tree that has one user more."""
    line = f"{name}:x:{uid}:{uid}::/home/{name}:/bin/bash\n"

    def fill(target: Path) -> None:
        shutil.copyfile(tree.tarball, target)
        with tarfile.open(target) as before:
            passwd = before.extractfile("./etc/passwd")
            assert passwd
            content = passwd.read() + line.encode()
        with tarfile.open(target, "a") as tar:
            entry = tarfile.TarInfo("./etc/passwd")
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, BytesIO(content))

    return RootTree(f"{tree.name}-{name}", fill, f"{tree.inputs} {line}")


def _whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let a file appear when it is complete: a killed run leaves none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        write(temporary)
        temporary.rename(path)
    finally:
        temporary.unlink(missing_ok=True)


def _busybox(target: Path) -> None:
    with (
        tarfile.open(busybox.archive()) as image,
        tarfile.open(fileobj=image.extractfile("layer.tar")) as layer,
        tarfile.open(target, "w") as tar,
    ):
        for entry in layer:
            tar.addfile(entry, layer.extractfile(entry) if entry.isreg() else None)
        for folder in ("etc", "tmp", "usr", "var"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(entry)


def _debian(suite: str) -> RootTree:
    return RootTree(suite, lambda path: bootstrap_release(suite, path, PACKAGES), " ".join(PACKAGES))


BOOKWORM, FORKY = _debian("bookworm"), _debian("forky")
"""Debian releases, from their packages."""

BUSYBOX = RootTree("busybox", _busybox)
"""busybox and its links: no libc, no users, no Slurm."""
