"""Files of a built image, read from its layers as a runtime would unpack them."""

import gzip
import json
import stat
import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

_LARGEST_READ = 1 << 20
_WHITEOUT = ".wh."


@dataclass(frozen=True)
class File:
    """An entry of an image: `content` of regular files up to 1 MiB."""

    mode: int
    uid: int
    gid: int
    kind: bytes
    size: int
    content: bytes | None
    attributes: frozenset[str]

    @property
    def is_regular(self) -> bool:
        """Tell whether it is a regular file, or another name of one."""
        return self.kind in {tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.LNKTYPE}

    @property
    def gains_privileges(self) -> bool:
        """Tell whether running it gives another user's or root's powers."""
        changes_id = self.is_regular and bool(self.mode & (stat.S_ISUID | stat.S_ISGID))
        return changes_id or any("security.capability" in name for name in self.attributes)


@dataclass(frozen=True)
class ImageFiles:
    """An image: its configuration and its files by path, without the leading slash."""

    settings: dict[str, Any]
    files: dict[str, File]

    def text(self, path: str) -> str:
        """Return the content of a file."""
        content = self.files[path].content
        assert content is not None, f"{path} is no small file"
        return content.decode()

    def matching(self, *patterns: str) -> list[str]:
        """Return the paths that match a pattern, which may have `*` and `**`."""
        return [p for p in self.files if any(PurePosixPath("/", p).match(pattern) for pattern in patterns)]


def read(layout: Path) -> ImageFiles:
    """Read an image from its OCI layout."""
    index = json.loads((layout / "index.json").read_text())
    manifest = json.loads(_blob(layout, index["manifests"][0]["digest"]).read_text())
    files: dict[str, File] = {}
    for layer in manifest["layers"]:
        _unpack(_layer(_blob(layout, layer["digest"]).resolve()), files)
    return ImageFiles(json.loads(_blob(layout, manifest["config"]["digest"]).read_text()), files)


def _blob(layout: Path, digest: str) -> Path:
    return layout / "blobs" / digest.replace(":", "/")


@cache  # a layer is in several images
def _layer(blob: Path) -> dict[str, File]:
    entries: dict[str, File] = {}
    with gzip.open(blob) as unzipped, tarfile.open(fileobj=unzipped, mode="r|") as tar:
        for info in tar:
            reader = tar.extractfile(info) if info.isreg() and info.size <= _LARGEST_READ else None
            entries[info.name.rstrip("/")] = File(
                info.mode,
                info.uid,
                info.gid,
                info.type,
                info.size,
                reader.read() if reader else None,
                frozenset(name for name in info.pax_headers if name.startswith("SCHILY.xattr.")),
            )
    return entries


def _unpack(layer: dict[str, File], files: dict[str, File]) -> None:
    for path in layer:
        folder, _, name = path.rpartition("/")
        if name.startswith(_WHITEOUT):
            gone = f"{folder}/{name.removeprefix(_WHITEOUT)}".lstrip("/")
            for known in [known for known in files if known == gone or known.startswith(f"{gone}/")]:
                del files[known]
    files.update({path: file for path, file in layer.items() if _WHITEOUT not in path})
