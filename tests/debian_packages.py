"""Packages that tests need, of the distribution, unpacked into the cache. Nothing is installed."""

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from tools import locks
from tools.kube import debs
from tools.kube.debs import Apt
from tools.kube.process import output
from tools.paths import cache_dir

_WAIT_SECONDS = 600


def missing_with_requirements(packages: Iterable[str]) -> Callable[[Apt], set[str]]:
    """Return the choice of packages, and of all that they require, that the machine does not have installed."""
    return lambda apt: apt.fresh_closure(packages) - debs._installed()


def unpacked_packages(name: str, packages: Iterable[str], choose: Callable[[Apt], Iterable[str]]) -> Path:
    """Return the folder of unpacked packages; fetch and unpack them if the cache has none.

    Args:
        name: Name of the folder, one for each use.
        packages: Packages that are wanted, for messages.
        choose: Function that returns the packages to unpack: these, or all that they require, too.

    """
    root = cache_dir() / "debs" / f"test-{name}-{debs.release()}-{os.uname().machine}"
    with locks.held(
        root.with_name(f".{root.name}.lock"), f"unpacking {', '.join(packages)}", wait_seconds=_WAIT_SECONDS
    ):
        if not root.exists():
            building = root.with_name(f".{root.name}.new")
            shutil.rmtree(building, ignore_errors=True)
            building.mkdir(parents=True)
            apt = Apt(building / "apt")
            for archive in apt.download(sorted(choose(apt))):
                output(["dpkg", "-x", archive, building])
            shutil.rmtree(building / "apt")
            building.rename(root)
    return root
