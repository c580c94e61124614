"""Container images with few files, made as `docker save` archives without a builder."""

import io
import json
import os
import tarfile
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from soperator_pulumi.whole_files import write_whole
from tools.kube import binaries, configs
from tools.paths import cache_dir

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def architecture() -> str:
    """Return this machine's architecture, as image manifests name it."""
    return _ARCHITECTURES.get(os.uname().machine, os.uname().machine)


def archive(
    name: str,
    programs: Mapping[str, bytes],
    *,
    entrypoint: Sequence[str],
    links: Mapping[str, str] | None = None,
) -> bytes:
    """Return an image with `programs` (absolute path: content, all executable) and symbolic `links` in one layer."""
    layer = _tar(
        {path.lstrip("/"): content for path, content in programs.items()},
        {path.lstrip("/"): target for path, target in (links or {}).items()},
        mode=0o755,
    )
    config = json.dumps(
        {
            "architecture": architecture(),
            "os": "linux",
            "config": {"Entrypoint": list(entrypoint), "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha256(layer).hexdigest()}"]},
        }
    ).encode()
    config_name = f"{sha256(config).hexdigest()}.json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
    return _tar({config_name: config, "layer.tar": layer, "manifest.json": manifest}, {}, mode=0o644)


def write(path: Path, content: bytes) -> Path:
    """Write an archive atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content, mode=0o644)
    return path


def pause_image() -> Path:
    """Return the archive of the image that holds a pod's namespaces, in the cache; it is created if missing."""
    binaries.build(binaries.PAUSE)
    folder = binaries.PAUSE.installed
    path = cache_dir() / "images" / f"{folder.name}.tar"
    if not path.exists():
        program = (folder / "pause").read_bytes()
        write(path, archive(configs.PAUSE_IMAGE, {"/pause": program}, entrypoint=["/pause"]))
    return path


def _tar(contents: Mapping[str, bytes], links: Mapping[str, str], *, mode: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, content in contents.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
        for path, target in links.items():
            entry = tarfile.TarInfo(path)
            entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, target, 0o777
            tar.addfile(entry)
    return buffer.getvalue()
