"""Be the first process of the admin pod: make its root look like the jail's, then wait for the end.

The pod has the active tree at /.tree, and its directories that matter (etc, usr, var ...) mounted in their places as
well. What else the tree has in its root gets a link: a copy of the tree's own (bin -> usr/bin), or one into /.tree.
"""

import argparse
import os
import signal
from pathlib import Path

from jail_tools import resolve_beneath
from jail_tools.errors import RefusedError
from jail_tools.progress import say

STOP = {signal.SIGTERM, signal.SIGINT}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("--root", type=Path, default=Path("/"), help="where to make the links (default: /)")
    parser.add_argument("--tree", type=Path, default=Path("/.tree"), help="the tree (default: /.tree)")


def run(arguments: argparse.Namespace) -> int:
    """Run until SIGTERM; take in processes that lost their parent."""
    awaited = STOP | {signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    made = make_links(arguments.root, arguments.tree)
    say(f"admin: ready ({len(made)} links: {', '.join(made) or 'none'})")
    while signal.sigwait(awaited) not in STOP:
        reap()
    return 0


def make_links(root: Path, tree: Path) -> list[str]:
    """Make a link for whatever a tree has in its root and `root` has not; return the names.

    Raises:
        RefusedError: there is no tree.
    """
    if not tree.is_dir():
        raise RefusedError(f"{tree} is no directory: the tree is not mounted in this pod.")
    made = []
    for name in sorted(resolve_beneath.names(tree)):
        link = root / name
        if not os.path.lexists(link):
            there = tree / name
            link.symlink_to(there.readlink() if there.is_symlink() else there)
            made.append(name)
    return made


def reap() -> None:
    """Take in all children that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return
