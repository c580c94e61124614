"""Paths on the jail's claim."""

import re
from dataclasses import dataclass
from pathlib import Path

from jail_tools.errors import RefusedError

TOOLS = ".jail-tools"
"""Folder of this program, in the root of any image."""
CLIENTS = (
    "sacct",
    "sacctmgr",
    "salloc",
    "sattach",
    "sbatch",
    "sbcast",
    "scancel",
    "scontrol",
    "sdiag",
    "sinfo",
    "sprio",
    "squeue",
    "sreport",
    "srun",
    "sshare",
    "sstat",
    "strigger",
)
"""Slurm's client programs, available in every tree at /opt/slurm/bin."""

_TREE = re.compile(r"[0-9a-f]{12}")


@dataclass(frozen=True)
class Tree:
    """One root tree of a claim and what is known about it."""

    jail: Path
    name: str

    @property
    def root(self) -> Path:
        """The tree itself: what jobs and logins have as `/`. root:root 0755."""
        return self.jail / "trees" / self.name

    @property
    def meta(self) -> Path:
        """Folder with data about the tree, for root only (0700)."""
        return self.jail / "meta" / self.name

    @property
    def in_progress(self) -> Path:
        """Marker of a populate that has begun: written before the tree is touched."""
        return self.meta / "in-progress.json"

    @property
    def manifest(self) -> Path:
        """Manifest of the tree as populated: one JSON object per line."""
        return self.meta / "manifest.jsonl"

    @property
    def accounts(self) -> Path:
        """Folder with passwd, group and shadow as populated, if the source has them."""
        return self.meta / "accounts"

    @property
    def dpkg_status(self) -> Path:
        """Debian's list of installed packages as populated, if the source has one."""
        return self.meta / "dpkg-status"

    @property
    def complete(self) -> Path:
        """Marker of a complete and verified tree, written last."""
        return self.meta / "complete.json"

    @property
    def removing(self) -> Path:
        """Name that `complete` gets before the tree is removed."""
        return self.meta / "removing.json"

    @property
    def lock(self) -> Path:
        """Lock that a running populate holds."""
        return self.meta / "lock"


def tree_of(jail: Path, name: str) -> Tree:
    """Return the tree with this name.

    Raises:
        RefusedError: the name is not 12 hexadecimal digits.
    """
    if not _TREE.fullmatch(name):
        raise RefusedError(f"--tree: got {name!r}. A tree's name is 12 hexadecimal digits (0-9, a-f).")
    return Tree(jail, name)


def active(jail: Path) -> Path:
    """Return the symbolic link to the tree that new jobs and logins enter: `trees/<tree>`."""
    return jail / "active"


def jobs(jail: Path) -> Path:
    """Return the folder of the jobs' records: one symbolic link per job, to the tree in which it began."""
    return jail / "jobs"


def home(jail: Path) -> Path:
    """Return the folder of the homes, which belong to no tree."""
    return jail / "home"
