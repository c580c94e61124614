"""Removing a tree: it may be killed at any moment, no path in the tree is followed, and no depth is too deep."""

import os
import stat

from jail_tools import files, resolve_beneath
from jail_tools.errors import RefusedError, TryAgainError, reason
from jail_tools.layout import Tree
from jail_tools.progress import log


def remove_tree(tree: Tree) -> None:
    """Remove a tree that is marked as to be removed, then what is known about it. May be killed and run again.

    Raises:
        RefusedError: the tree is not marked.
        TryAgainError: something could not be removed.
    """
    if not tree.removing.exists():
        raise RefusedError(f"tree {tree.name} is not marked as to be removed ({tree.removing}).")
    log(f"collect: removing tree {tree.name}")
    try:
        with files.opened(tree.jail / "trees", files.FOLDER) as trees:
            _empty_and_remove(trees, tree.name)
        with files.opened(tree.meta, files.FOLDER) as meta:
            for name in resolve_beneath.names(meta):
                if name != tree.removing.name:
                    _remove(meta, name)
        tree.removing.unlink()
        tree.meta.rmdir()
    except OSError as error:
        raise TryAgainError(f"{tree.root}: could not be removed: {reason(error)}. The next run continues.") from error


def _empty_and_remove(parent: int, name: str) -> None:
    """Remove a directory with all that is in it, however deep: what lies in its directories is brought up first.

    No path is followed: every directory is opened from the one above it, and at most two are open at a time.
    """
    try:
        top = os.open(name, files.FOLDER, dir_fd=parent)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        os.unlink(name, dir_fd=parent)
        return
    try:
        number = 0
        while names := resolve_beneath.names(top):
            for member in names:
                if _remove_unless_full(top, member):
                    continue
                inside = os.open(member, files.FOLDER, dir_fd=top)
                try:
                    for deeper in resolve_beneath.names(inside):
                        if not _remove_unless_full(inside, deeper):
                            number += 1
                            os.rename(deeper, f".removing-{number}-{os.getpid()}", src_dir_fd=inside, dst_dir_fd=top)
                finally:
                    os.close(inside)
                os.rmdir(member, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=parent)


def _remove_unless_full(folder: int, name: str) -> bool:
    """Remove a file or an empty directory; return False for a directory that is not empty."""
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        resolve_beneath.discard(folder, name)
        try:
            os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return True
        return False
    os.unlink(name, dir_fd=folder)
    return True


def _remove(folder: int, name: str) -> None:
    if not _remove_unless_full(folder, name):
        _empty_and_remove(folder, name)
