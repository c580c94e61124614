"""Atomic writes, and folder access that no symbolic link can lead astray."""

import ctypes
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from jail_tools.errors import TryAgainError, reason

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags for opening a folder: a symbolic link in its place is an error."""


def write_atomically(file: Path, chunks: Iterable[bytes], mode: int = 0o600) -> None:
    """Write a file atomically: a reader finds the old or the new content, even after a crash."""
    new = file.with_name(file.name + ".new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as stream:
        os.fchmod(descriptor, mode)
        stream.writelines(chunks)
        stream.flush()
        os.fsync(descriptor)
    new.replace(file)
    flush_folder(file.parent)


def flush_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk."""
    with opened(folder, FOLDER) as descriptor:
        os.fsync(descriptor)


def flush_volume(folder: Path) -> None:
    """Flush everything written to a folder's volume to the disk (syncfs(2)).

    Raises:
        TryAgainError: the volume could not take everything; since Linux 5.8 the kernel reports it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    with opened(folder, FOLDER) as descriptor:
        if libc.syncfs(descriptor):
            raise TryAgainError(
                f"{folder}: the volume did not take what was written: {reason(OSError(ctypes.get_errno(), ''))}."
            )


@contextmanager
def opened(path: str | bytes | Path, flags: int) -> Iterator[int]:
    """Yield a descriptor that is closed at the end of the block."""
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class Walker:
    """Opens the folders of one tree by relative path, component by component, never through a symbolic link.

    It keeps the path to the last folder open, so that a neighbour costs one open.
    """

    def __init__(self, root: str | Path) -> None:
        self._names: list[str] = []
        self._descriptors = [os.open(root, FOLDER)]

    def open(self, folder: str) -> int:
        """Return a descriptor of a folder (`""` is the tree's root), valid until the next call."""
        names = folder.split("/") if folder else []
        common = 0
        for ours, theirs in zip(self._names, names, strict=False):
            if ours != theirs:
                break
            common += 1
        while len(self._names) > common:
            self._names.pop()
            os.close(self._descriptors.pop())
        for name in names[common:]:
            self._descriptors.append(os.open(name, FOLDER, dir_fd=self._descriptors[-1]))
            self._names.append(name)
        return self._descriptors[-1]

    def close(self) -> None:
        """Close everything."""
        self._names.clear()
        while self._descriptors:
            os.close(self._descriptors.pop())


def split(path: str) -> tuple[str, str]:
    """Return the folder and the name of a relative path; the folder of a path in the root is `""`."""
    folder, _, name = path.rpartition("/")
    return folder, name
