"""Attempts on devices that the job was not given, and on what tells of others on the machine."""

import errno
import os
import stat
from pathlib import Path

from . import attempt

EVERYBODYS = {"full", "null", "ptmx", "random", "tty", "urandom", "zero"}
"""Devices of every container."""


@attempt
def open_a_device_that_is_not_everybodys() -> object:
    refusal: OSError = FileNotFoundError(errno.ENOENT, "no other device is there")
    for folder, _, names in os.walk("/dev"):
        for path in (Path(folder) / name for name in names):
            mode = path.lstat().st_mode
            if not (stat.S_ISBLK(mode) or stat.S_ISCHR(mode)) or path.name in EVERYBODYS or path.parent.name == "pts":
                continue
            try:
                os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY))
            except OSError as error:
                refusal = error
            else:
                return str(path)
    raise refusal


@attempt
def make_a_device() -> object:
    os.mknod("/tmp/disk", stat.S_IFBLK | 0o600, os.makedev(254, 0))
    return "made"


@attempt
def see_the_cgroups_of_other_pods() -> object:
    """Entries of others in a hierarchy: pods are named there, with all of their processes' numbers."""
    root, node = Path("/sys/fs/cgroup"), os.environ.get("SLURMD_NODENAME")
    hierarchies = [root] if (root / "cgroup.controllers").exists() else [*root.glob("*")]
    entries = [path for hierarchy in hierarchies for path in hierarchy.glob("*") if path.is_dir()]
    others = [path for path in entries if path.name not in {f"slurm_{node}", "system", "system.slice"}]
    if others:
        return sorted(map(str, others))[:8]
    raise FileNotFoundError(errno.ENOENT, "no cgroup of others is there")
