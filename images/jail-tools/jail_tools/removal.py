"""Removes a tree. It can be killed at any moment, follows no path in the tree, and handles any depth."""

import os
import stat

from jail_tools import files, resolve_beneath
from jail_tools.errors import RefusedError, TryAgainError, reason
from jail_tools.layout import Tree
from jail_tools.progress import log


def remove_tree(tree: Tree) -> None:
    """Remove a tree that is marked for removal, then its metadata. It can be killed and run again.

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
                if name != tree.removing.name and not _remove_unless_full(meta, name):
                    _empty_and_remove(meta, name)
        tree.removing.unlink()
        tree.meta.rmdir()
    except OSError as error:
        raise TryAgainError(f"{tree.root}: could not be removed: {reason(error)}. The next run continues.") from error


def _empty_and_remove(parent: int, name: str) -> None:
    """Remove a directory and its content at any depth, moving nested directories up first.

    It follows no path: it opens every directory from the one above it, and holds at most two open.
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
