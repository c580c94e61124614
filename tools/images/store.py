"""Built images on disk: one OCI layout per image and tag, over one folder of blobs.

<cache>/images/blobs/sha256/<digest>              layers, configurations, manifests: each once
<cache>/images/layouts/<name>/<tag>/index.json    a finished image: a rename makes its folder appear whole
<cache>/images/storage                            buildah's storage: images that others are built on
<cache>/images/temporary                          temporary files of builds, with the packages that apt keeps
<cache>/images/work-*                             a build in progress, or what a killed one left to the next to remove
"""

import io
import json
import os
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tools import locks

KEPT_TAGS = 4
"""Number of tags kept of every image: those of both Slurm versions of the current checkout, and two others."""

LOCK_TIMEOUT_SECONDS = 30 * 60
"""Time that is longer than any build."""

_KEPT_TEMPORARY = "buildah-cache"
"""Folder of `RUN --mount=type=cache` in buildah's temporary folder: apt's indexes and packages."""

_OCI_LAYOUT = '{"imageLayoutVersion": "1.0.0"}'


class Store:
    """Folder of finished images. Hold `lock()` around everything that changes it or relies on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.blobs = folder / "blobs"
        self.layouts = folder / "layouts"
        self.temporary = folder / "temporary"

    def lock(self) -> AbstractContextManager[int]:
        """Keep other builds out, and yield the lock's descriptor. A program that inherits it also holds the lock.

        Raises:
            UserError: Another build held the lock for `LOCK_TIMEOUT_SECONDS`.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        return locks.held(self.folder / "lock", "building images", wait_seconds=LOCK_TIMEOUT_SECONDS)

    def layout(self, name: str, tag: str) -> Path:
        """Return the OCI layout of an image, which exists once the image is finished."""
        return self.layouts / name / tag

    @contextmanager
    def work_folder(self) -> Iterator[Path]:
        """Yield a folder for the current build, after removing leftovers of killed builds."""
        self.temporary.mkdir(exist_ok=True)
        left = [path for path in self.temporary.iterdir() if not path.name.startswith(_KEPT_TEMPORARY)]
        for path in (*left, *self.folder.glob("work-*")):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        with TemporaryDirectory(prefix="work-", dir=self.folder) as folder:
            yield Path(folder)

    @contextmanager
    def new_layout(self, name: str, tag: str, work: Path) -> Iterator[Path]:
        """Yield an empty OCI layout over the shared blobs, which becomes the finished image at the end."""
        layout = work / f"{name}-{tag}"
        layout.mkdir()
        (self.blobs / "sha256").mkdir(parents=True, exist_ok=True)
        (layout / "blobs").symlink_to(self.blobs)
        yield layout
        (layout / "blobs").unlink()
        (layout / "blobs").symlink_to("../../../blobs")
        final = self.layout(name, tag)
        final.parent.mkdir(parents=True, exist_ok=True)
        layout.rename(final)

    def archive(self, references: Mapping[str, str], target: Path) -> None:
        """Write one OCI archive of several images, with shared layers only once.

        Args:
            references: Name of every image after the import, by `name/tag`.
            target: File to write.
        """
        manifests = [
            self._descriptor(self.layouts / image) | {"annotations": _names(reference)}
            for image, reference in references.items()
        ]
        index = json.dumps({"schemaVersion": 2, "manifests": manifests})
        with tarfile.open(target, "w") as tar:
            _add_text(tar, "oci-layout", _OCI_LAYOUT)
            _add_text(tar, "index.json", index)
            for digest in sorted({d for image in references for d in self._digests(self.layouts / image)}):
                tar.add(self._blob(digest), arcname=f"blobs/{digest.replace(':', '/')}")

    def use(self, name: str, tag: str) -> bool:
        """Return True if an image is finished, and record its use for pruning."""
        try:
            os.utime(self.layout(name, tag))
        except FileNotFoundError:
            return False
        return True

    def prune(self, current: Mapping[str, str]) -> None:
        """Remove all tags but the current and the most recently used ones, then unreferenced blobs."""
        for name, tag in current.items():
            tags = [path for path in (self.layouts / name).glob("*") if path.name != tag]
            tags.sort(key=lambda path: path.stat().st_mtime, reverse=True)
            for old in tags[KEPT_TAGS - 1 :]:
                shutil.rmtree(old)
        used = {digest for index in self.layouts.glob("*/*/index.json") for digest in self._digests(index.parent)}
        for blob in self.blobs.glob("sha256/*"):
            if f"sha256:{blob.name}" not in used:
                blob.unlink()

    def _descriptor(self, layout: Path) -> dict[str, Any]:
        descriptor: dict[str, Any] = json.loads((layout / "index.json").read_text())["manifests"][0]
        return descriptor

    def _digests(self, layout: Path) -> list[str]:
        """Return the digests of an image's manifest, configuration and layers."""
        manifest = self._descriptor(layout)["digest"]
        content = json.loads(self._blob(manifest).read_text())
        return [manifest, content["config"]["digest"], *(layer["digest"] for layer in content["layers"])]

    def _blob(self, digest: str) -> Path:
        return self.blobs / digest.replace(":", "/")


def _names(reference: str) -> dict[str, str]:
    """Return the annotations that name an image: containerd's own, and OCI's for other tools."""
    return {"io.containerd.image.name": reference, "org.opencontainers.image.ref.name": reference}


def _add_text(tar: tarfile.TarFile, name: str, text: str) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(text.encode())
    tar.addfile(info, io.BytesIO(text.encode()))
