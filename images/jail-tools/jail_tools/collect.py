"""Removal of records of ended jobs, and of the oldest trees beyond the number to keep.

It never removes the active tree, a tree that a job's record names, the root of a login, or a tree that a populate is
filling. A removal may be killed. So its tree is first marked as incomplete, and the next run continues.
"""

import fcntl
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from jail_tools import claim, files, layout, resolve_beneath
from jail_tools.errors import RefusedError, TryAgainError, reason
from jail_tools.progress import log
from jail_tools.removal import remove_tree
from jail_tools.switching.undo import repair

YOUNG_SECONDS = 3600.0
"""Age below which a record stays although its job is not in the list: the job may be newer than the list."""

ABANDONED_SECONDS = 86400.0
"""Age at which a populate that is not running counts as abandoned."""


def collect(jail: Path, keep: int, in_use: Iterable[str], live_jobs: Iterable[str]) -> list[str]:
    """Remove records of ended jobs, then trees; return the names of the trees.

    Args:
        jail: the claim's root.
        keep: number of complete trees that stay, the active one included; those in use stay in addition.
        in_use: trees that logins have as their root.
        live_jobs: ids of all jobs that Slurm has not ended.

    Raises:
        TryAgainError: something could not be removed.
    """
    with claim.locked(jail):
        repair(jail)
        removed = [*_finish_removals(jail), *_remove_abandoned(jail)]
        _remove_records(jail, frozenset(live_jobs))
        active = claim.active_tree(jail)
        found = [filled for tree in claim.all_trees(jail) if (filled := claim.complete(tree)) is not None]
        spare = sorted(
            (filled for filled in found if filled.tree != active), key=lambda filled: filled.last_used, reverse=True
        )
        for filled in spare[max(keep - (active is not None), 0) :]:
            tree = filled.tree
            if tree.name in {*in_use, *_named_by_jobs(jail)}:
                log(f"collect: tree {tree.name} stays: a job or a login is in it")
                continue
            tree.complete.rename(tree.removing)
            if tree.name in _named_by_jobs(jail):  # a job began there between the two lines above
                tree.removing.rename(tree.complete)
                continue
            remove_tree(tree)
            removed.append(tree.name)
        if not removed:
            log("collect: no tree to remove")
        return removed


def _finish_removals(jail: Path) -> list[str]:
    trees = claim.all_trees(jail)
    found = [tree for tree in trees if tree.removing.exists()]
    for tree in found:
        remove_tree(tree)
    for tree in trees:
        if not os.path.lexists(tree.root) and tree.meta.is_dir() and not resolve_beneath.names(tree.meta):
            tree.meta.rmdir()  # a removal was killed just before its end
    return [tree.name for tree in found]


def _remove_abandoned(jail: Path) -> list[str]:
    """Remove trees of abandoned populates, whose source is no longer wanted."""
    found = []
    for tree in claim.all_trees(jail):
        if not _old(tree.in_progress, ABANDONED_SECONDS) or tree.complete.exists():
            continue
        with files.opened(tree.lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            log(f"collect: the populate of tree {tree.name} was abandoned")
            tree.in_progress.rename(tree.removing)
            remove_tree(tree)
        found.append(tree.name)
    return found


def _old(path: Path, seconds: float) -> bool:
    """Return True if a path exists and is older than that."""
    try:
        return time.time() - path.lstat().st_mtime > seconds
    except FileNotFoundError:
        return False


def _remove_records(jail: Path, live_jobs: frozenset[str]) -> None:
    removed = 0
    for record in _records(jail):
        if record.name.isdecimal() and record.name not in live_jobs and _old(record, YOUNG_SECONDS):
            record.unlink(missing_ok=True)
            removed += 1
    if removed:
        log(f"collect: removed the records of {removed:,} jobs that are gone")


def _named_by_jobs(jail: Path) -> set[str]:
    return {name for record in _records(jail) if (name := claim.tree_that(record)) is not None}


def _records(jail: Path) -> list[Path]:
    try:
        return list(layout.jobs(jail).iterdir())
    except FileNotFoundError:
        return []


def job_ids(where: str) -> set[str]:
    """Read the ids of live jobs.

    Raises:
        RefusedError: the argument names no file, or a line is not an id: then no job counts as gone.
    """
    if not where.startswith("@"):
        raise RefusedError(f'--live-jobs: got "{where}". Give @FILE, or @- for standard input.')
    try:
        text = sys.stdin.read() if where == "@-" else Path(where[1:]).read_text()
    except OSError as error:
        raise TryAgainError(f"--live-jobs: {where[1:]}: {reason(error)}. Nothing was removed.") from None
    ids = set(text.split())
    for id_ in ids:
        if not id_.isdecimal():
            raise RefusedError(
                f'--live-jobs: "{id_}" is not a job id (digits only, one per line). Nothing was removed.'
            )
    return ids
