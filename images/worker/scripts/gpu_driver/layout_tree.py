"""Make the tree that jobs use to reach a driver: a small root with the driver at its usual place, and a library cache.

The files are bind mounts of the container's. ldconfig makes the links of the sonames and the cache, so that both have
what the dynamic loader expects; it runs on this tree alone. The plugin adds the entries to those of a jail's own cache.
"""

import shutil
import subprocess
from pathlib import Path

from gpu_driver.discovery import Driver, Kind

PLACE = "usr/local/nvidia"
"""Place of the driver in a job's view, as in NVIDIA's images."""

CACHE = "etc/ld.so.cache"
"""Library cache of the driver only."""


def lay_out(driver: Driver, tree: Path) -> None:
    """Make the tree of a driver, replacing an earlier one; remove it if there is no driver."""
    shutil.rmtree(tree, ignore_errors=True)  # of before the container's restart: nothing is mounted in it
    if not driver.files:
        return
    tree.mkdir(mode=0o755)
    _run("mount", "--bind", tree, tree)
    place = tree / PLACE
    for name, source in driver.files.items():
        target = place / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
        _run("mount", "--bind", source, target)
    for name, target_name in driver.links.items():
        (place / name).symlink_to(target_name)
    _make_cache(tree)


def _make_cache(tree: Path) -> None:
    folders = [f"/{PLACE}/{kind.value}" for kind in (Kind.LIBRARY, Kind.LIBRARY_32)]
    (tree / "etc").mkdir()
    (tree / "etc/ld.so.conf").write_text("".join(f"{folder}\n" for folder in folders if (tree / folder[1:]).is_dir()))
    _run("ldconfig", "-r", tree, "-C", f"/{CACHE}", "-f", "/etc/ld.so.conf")


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True)
