"""Namespaces of test runs that were killed: pods in them would keep the machine's processors from the next run."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import IO

from tools import paths

_FOLDER = paths.state_dir() / "test-namespaces"


def record(namespace: str) -> str:
    """Record that this process deploys to a namespace, and return the namespace."""
    print(namespace, file=_record_of_this_process(), flush=True)
    return namespace


def by_killed_runs() -> Iterator[str]:
    """Yield the namespaces of processes that are no more, and forget those whose removal raised nothing."""
    own = Path(_record_of_this_process().name)  # a lock of lockf ends when its process closes the file anywhere
    for path in sorted({*_FOLDER.glob("*")} - {own}):
        try:
            file = path.open("r+")
        except FileNotFoundError:
            continue  # another process of this run was faster
        with file:
            if _has_holder(file):
                continue
            yield from file.read().split()
            path.unlink(missing_ok=True)


@cache
def _record_of_this_process() -> IO[str]:
    _FOLDER.mkdir(parents=True, exist_ok=True, mode=0o700)
    while True:
        file = tempfile.NamedTemporaryFile("w", dir=_FOLDER, delete=False)  # noqa: SIM115 - open until the process ends
        fcntl.lockf(file, fcntl.LOCK_EX)  # held by this process alone, not by what it forks
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()  # another run found it before it was locked, and removed it


def _has_holder(file: IO[str]) -> bool:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
