"""Programs that only tests need: from PATH, else from the distribution's packages, unpacked into the cache."""

import shutil
from functools import cache
from pathlib import Path

from tools import locks
from tools.kube import debs
from tools.kube.debs import Apt, Tool, Unpacked, tool
from tools.kube.process import output
from tools.paths import cache_dir

_WAIT_SECONDS = 300


@cache
def program(name: str) -> Tool:
    """Return a program of the package of the same name. Nothing is installed."""
    if found := shutil.which(name):
        return Tool(name, Path(found))
    root = cache_dir() / "debs" / f"test-{name}-{debs.release()}"
    with locks.held(root.with_name(f".{root.name}.lock"), f"unpacking {name}", wait_seconds=_WAIT_SECONDS):
        if not root.exists():
            building = root.with_name(f".{root.name}.new")
            shutil.rmtree(building, ignore_errors=True)
            building.mkdir(parents=True)
            apt = Apt(building / "apt")
            # What the machine has is not fetched: another C library would not go with its loader.
            for archive in apt.download(sorted(apt.fresh_closure([name]) - debs._installed())):
                output(["dpkg", "-x", archive, building])
            shutil.rmtree(building / "apt")
            building.rename(root)
    return Tool(name, Unpacked(root).program(name), Unpacked(root).environment)


def of_openssh(name: str) -> Tool:
    """Return `scp`, `sftp` or another program of the package that ssh is in."""
    ssh = tool("ssh")
    return Tool(name, ssh.path.with_name(name), ssh.environment)
