"""A machine of the lab on which `make up` runs: the embedded Kubernetes with cgroup v2 and AppArmor."""

import os
import shlex
from pathlib import Path

from tools.kube import debs
from tools.paths import ROOT, cache_dir

MEMORY_MIB = 8192
"""Memory of a machine with README's quick start, with its containers' files."""

PROCESSORS = 2
"""Processors, of which a worker has one at least: cpusets need two."""

_SCRIPT = Path(__file__).with_suffix(".sh")


def preparation() -> str:
    """Return a script after which `make up` can run in the current folder, with the images in this machine's cache.

    The AppArmor profile of `docs/apparmor` is loaded.

    Raises:
        UserError: The package of AppArmor can't be fetched.

    """
    variables = {
        "HOME": str(Path.home()),
        "TERM": os.environ.get("TERM", "dumb"),
        "XDG_CACHE_HOME": str(cache_dir().parent),
        "XDG_STATE_HOME": "/run/state",  # short, as it holds sockets
    }
    package = debs.unpacked(("apparmor",)).root
    return "\n".join(
        (
            "set -e",
            *(f"export {name}={shlex.quote(value)}" for name, value in variables.items()),
            shlex.join(["sh", str(_SCRIPT), str(ROOT), str(package)]),
            shlex.join(["cd", str(ROOT)]),
            "",
        )
    )
