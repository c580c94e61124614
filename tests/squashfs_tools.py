"""squashfs-tools of the distribution, unpacked into the cache."""

import os
import subprocess
from pathlib import Path

from tests import debian_packages

_NAMES = ("squashfs-tools",)


def unpacked() -> Path:
    """Return the root of the unpacked programs, with the libraries that the machine lacks."""
    return debian_packages.unpacked_packages("squashfs", _NAMES, debian_packages.missing_with_requirements(_NAMES))


def variables(root: Path) -> dict[str, str]:
    """Return variables with which the programs below a root are found."""
    libraries = ":".join(str(path) for path in root.glob("**/*-linux-gnu"))
    return {"PATH": f"{root}/usr/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": libraries}


def pack(tree: Path, image: Path, *options: str) -> None:
    """Write a tree into a new file of squashfs."""
    command = ["mksquashfs", str(tree), str(image), "-noappend", "-quiet", "-no-progress", *options]
    subprocess.run(command, env=variables(unpacked()), check=True, capture_output=True)
