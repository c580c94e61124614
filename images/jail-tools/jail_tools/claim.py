"""The jail's claim as a whole: its trees, the active one, and the lock for switching and removing trees."""

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from jail_tools import files, layout
from jail_tools.errors import RefusedError, TryAgainError, reason
from jail_tools.layout import Tree
from jail_tools.progress import log

LOCK_SECONDS = 60
"""Time to wait for the lock: a switch without a carry-over takes seconds."""

_TREE_LINK = re.compile(r"trees/([0-9a-f]{12})/?")
_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Complete:
    """A complete tree and the content of its marker."""

    tree: Tree
    source: str
    populated: str
    """ISO 8601, UTC."""
    files: int
    bytes: int

    @property
    def last_used(self) -> float:
        """Time at which the tree was populated or users last left it, in seconds since 1970."""
        populated = datetime.fromisoformat(self.populated).timestamp() if self.populated else 0.0
        try:
            return max(populated, left_folder(self.tree).stat().st_mtime)
        except FileNotFoundError:
            return populated


def active_tree(jail: Path) -> Tree | None:
    """Return the tree that new jobs and logins enter; None before the first populate has ended.

    Raises:
        RefusedError: `active` is not a symbolic link to a tree.
    """
    link = layout.active(jail)
    if not os.path.lexists(link):
        return None
    name = tree_that(link)
    if name is None:
        raise RefusedError(f"{link} is not a symbolic link to trees/<tree>. Remove it, then run this again.")
    return layout.tree_of(jail, name)


def tree_that(link: Path) -> str | None:
    """Return the name of the tree that a symbolic link points to; None if it is not such a link."""
    try:
        found = _TREE_LINK.fullmatch(os.readlink(link))  # noqa: PTH115 - Path forgets what was written exactly
    except OSError:
        return None
    return found.group(1) if found else None


def set_active(tree: Tree) -> None:
    """Switch `active` to a tree with one rename: every reader sees either the old tree or the new one."""
    link = layout.active(tree.jail)
    new = link.with_name("active.new")
    new.unlink(missing_ok=True)
    new.symlink_to(f"trees/{tree.name}")
    new.replace(link)
    files.flush_folder(tree.jail)


def all_trees(jail: Path) -> list[Tree]:
    """Return everything that the claim knows as a tree, by name, complete or not."""
    names = {path.name for folder in ("trees", "meta") for path in _inside(jail / folder) if path.is_dir()}
    return [Tree(jail, name) for name in sorted(names) if re.fullmatch("[0-9a-f]{12}", name)]


def complete(tree: Tree) -> Complete | None:
    """Return the content of a tree's marker; None if the tree is not complete."""
    try:
        marker: dict[str, Any] = json.loads(tree.complete.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise RefusedError(f"{tree.complete}: is damaged: {error}. Restore it or remove the tree.") from None
    if tree.removing.exists() or not tree.root.is_dir():
        return None
    return Complete(
        tree,
        str(marker.get("source", "")),
        str(marker.get("populated", "")),
        marker.get("files", 0),
        marker.get("bytes", 0),
    )


def listing(jail: Path) -> list[dict[str, object]]:
    """Return the complete trees, the most recently populated first."""
    active = active_tree(jail)
    found = [filled for tree in all_trees(jail) if (filled := complete(tree)) is not None]
    return [
        {
            "tree": filled.tree.name,
            "source": filled.source,
            "populated": filled.populated,
            "active": filled.tree == active,
            "files": filled.files,
            "bytes": filled.bytes,
        }
        for filled in sorted(found, key=lambda filled: filled.populated, reverse=True)
    ]


def require_contents(jail: Path, filled_before: str, accepted: str = "") -> None:
    """Refuse to fill a claim that has lost its contents, which an empty tree would hide from everyone.

    Args:
        jail: root of the claim.
        filled_before: tree, claim and time of the last filling that has ended; empty if none has.
        accepted: reason for which the contents may be lost.

    Raises:
        RefusedError: the claim has neither a complete tree nor a home.
    """
    if not filled_before or _inside(layout.home(jail)) or any(map(complete, all_trees(jail))):
        return
    lost = f"the claim is empty, and the jail was filled before ({filled_before})"
    if not accepted:
        raise RefusedError(
            f"{lost}: its volume was emptied, or is another one, so homes and other shared files are not on it. "
            "Nothing was filled. Restore the volume, or name the claim that has the files. If they may be lost, set "
            "jail.storage.accept.emptied to the reason until the next up has ended (docs/storage.md)."
        )
    log(f"populate: {lost}. Accepted: {accepted}")


def left_folder(tree: Tree) -> Path:
    """Return the folder with a tree's accounts as they were when users left it."""
    return tree.meta / "left"


@contextmanager
def locked(jail: Path, wait_seconds: float = LOCK_SECONDS) -> Iterator[None]:
    """Keep others from switching or removing trees.

    Raises:
        TryAgainError: someone else did so for all of `wait_seconds`.
    """
    folder = jail / "meta"
    if not folder.is_dir():
        raise TryAgainError(f"{jail} is not a jail's claim yet: nothing has been populated there.")
    with files.opened(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW) as lock:
        deadline = time.monotonic() + wait_seconds
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise TryAgainError(
                        f"another switch or collect is still running after {wait_seconds:.0f} s. Run this again later."
                    ) from None
                time.sleep(_POLL_SECONDS)
        yield


def _inside(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise TryAgainError(f"{folder}: cannot be listed: {reason(error)}") from None
