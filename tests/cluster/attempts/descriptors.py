"""Attempts by way of what a program has inherited open."""

import os
import stat
from pathlib import Path

from . import attempt, names

OUTSIDE = {"jail", "conf-cache", "cred_state", "slurmd.pid"}
"""Names that are on a worker's or a login node's own root, and in no jail."""


def _inherited(kind: int) -> list[int]:
    """Return the open descriptors of a kind, without those of this look itself."""
    found = []
    for descriptor in range(1024):
        try:
            if stat.S_IFMT(os.fstat(descriptor).st_mode) == kind:
                found.append(descriptor)
        except OSError:
            continue
    return found


@attempt
def leave_by_an_open_directory() -> object:
    for descriptor in _inherited(stat.S_IFDIR):
        os.fchdir(descriptor)
        for up in ("", "..", "../..", "../../..", "../../../.."):
            if OUTSIDE & set(names(Path(up))):
                return up
    raise FileNotFoundError("no directory that leads out is open")


@attempt
def read_a_file_that_is_open_and_not_of_the_jail() -> object:
    for descriptor in _inherited(stat.S_IFREG):
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if not path.exists():
            return str(path), os.pread(descriptor, 80, 0)
    raise FileNotFoundError("no such file is open")
