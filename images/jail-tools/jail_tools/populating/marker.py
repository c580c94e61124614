"""The lock and the marker of a tree that is being filled: one populate runs, and continues only its own work."""

import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from jail_tools.errors import RefusedError, TryAgainError, reason
from jail_tools.files import opened, write_atomically
from jail_tools.layout import Tree
from jail_tools.progress import log

LOCK_SECONDS = 5.0
"""Time that a killed populate may take to end."""
LOCKLESS = {errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK}


@contextmanager
def only_one(tree: Tree) -> Iterator[None]:
    """Keep other populates of the same tree out."""
    with opened(tree.lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW) as lock:
        until = time.monotonic() + LOCK_SECONDS
        while not _locked(lock):
            if time.monotonic() > until:
                raise TryAgainError(f"another populate of tree {tree.name} is running, perhaps of an earlier pod.")
            time.sleep(0.05)
        yield


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in LOCKLESS:
            raise
        log(f"populate: the volume has no locks ({reason(error)}): that only one Job fills a tree is up to Kubernetes")
    return True


def begin(tree: Tree, source: str) -> int:
    """Write the marker, or find an earlier one. Return when the first attempt began, in ns since 1970.

    Raises:
        RefusedError: the tree has something in it that no populate of this source brought there.
    """
    try:
        marker = json.loads(tree.in_progress.read_bytes())
    except FileNotFoundError:
        if tree.root.is_dir() and next(tree.root.iterdir(), None) is not None:
            raise RefusedError(
                f"{tree.root} is not empty, and no populate began there. Nothing was changed. "
                "Move its content away or remove it, then run this again."
            ) from None
        began = time.time_ns()
        marker = {"tree": tree.name, "source": source, "began_ns": began}
        write_atomically(tree.in_progress, [json.dumps(marker).encode() + b"\n"])
        return began
    except ValueError as error:
        raise RefusedError(
            f"{tree.in_progress} is not a marker ({error}). Remove {tree.root} and {tree.meta}."
        ) from None
    if marker["source"] != source:
        raise RefusedError(
            f"{tree.root} was started from {marker['source']}, not from {source}. Nothing was changed. "
            f"If nothing needs this tree, remove {tree.root} and {tree.meta}."
        )
    log(f"populate: continues the one of {utc(marker['began_ns'])}")
    return int(marker["began_ns"])


def utc(nanoseconds: int) -> str:
    """Return a time in ISO 8601: `2026-11-21T13:00:00Z`."""
    return datetime.fromtimestamp(nanoseconds // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
