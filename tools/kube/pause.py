"""The image that holds each pod's namespaces, made from our own program of ten lines."""

from pathlib import Path

from tools.kube import archives, binaries, configs
from tools.paths import cache_dir


def archive() -> Path:
    """Return the image's archive in the cache; made first when it is not there."""
    binaries.build(binaries.PAUSE)
    folder = binaries.PAUSE.installed
    path = cache_dir() / "images" / f"{folder.name}.tar"
    if not path.exists():
        program = (folder / "pause").read_bytes()
        content = archives.archive(configs.PAUSE_IMAGE, {"/pause": program}, entrypoint=["/pause"])
        archives.write(path, content)
    return path
