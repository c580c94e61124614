"""The root of the admin pod, which looks like the jail's.

The pod has the active tree at /.tree, and mounts its important directories (etc, usr, var ...) at their own paths as
well. Everything else in the tree's root gets a link: a copy of the tree's own (bin -> usr/bin), or one into /.tree.
"""

import os
import signal
from pathlib import Path

from jail_tools import resolve_beneath
from jail_tools.errors import RefusedError
from jail_tools.progress import log

STOP = {signal.SIGTERM, signal.SIGINT}


def run(root: Path, tree: Path) -> int:
    """Make the links, then run until SIGTERM, and reap orphaned processes."""
    awaited = STOP | {signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    made = make_links(root, tree)
    log(f"admin: ready ({len(made)} links: {', '.join(made) or 'none'})")
    while signal.sigwait(awaited) not in STOP:
        reap()
    return 0


def make_links(root: Path, tree: Path) -> list[str]:
    """Make a link for every name that a tree has in its root and `root` lacks; return the names.

    Raises:
        RefusedError: there is no tree.
    """
    if not tree.is_dir():
        raise RefusedError(f"{tree} is not a directory: the tree is not mounted in this pod.")
    made = []
    for name in sorted(resolve_beneath.names(tree)):
        link = root / name
        if not os.path.lexists(link):
            there = tree / name
            link.symlink_to(there.readlink() if there.is_symlink() else there)
            made.append(name)
    return made


def reap() -> None:
    """Reap all children that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return
