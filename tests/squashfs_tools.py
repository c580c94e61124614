"""squashfs-tools of the distribution, unpacked into the cache."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def variables_for_all() -> Iterator[dict[str, str]]:
    """Yield variables with which all users find the programs, which are copied to a place open to all."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        subprocess.run(["cp", "-a", unpacked(), root], check=True)
        subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
        yield variables(root)


def pack(tree: Path, image: Path, *options: str) -> None:
    """Write a tree into a new file of squashfs."""
    command = ["mksquashfs", str(tree), str(image), "-noappend", "-quiet", "-no-progress", *options]
    subprocess.run(command, env=variables(unpacked()), check=True, capture_output=True)
