"""Copies a folder's entries into a tree. Entries that an earlier attempt copied completely stay."""

import errno
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from jail_tools.copying.volume import Volume
from jail_tools.errors import reason
from jail_tools.files import Walker, split
from jail_tools.progress import Progress
from jail_tools.tree import content
from jail_tools.tree.attributes import Xattrs, kept, path_of, read_xattrs, write_attributes, write_file_attributes
from jail_tools.tree.compare import FILE, unlike
from jail_tools.tree.entry import Entry, EntryKind

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
REPORTED_BYTES = 8 * 1024 * 1024
VOLUME_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
"""Errors after which nothing more can be written."""


class BatchResult(NamedTuple):
    """Result of a batch."""

    copied: list[tuple[int, str, Xattrs]]
    """Position, checksum and the source's extended attributes of the entries that exist now and have either."""
    problems: list[str]
    """Entries that could not be copied, with the reason."""
    stopped: bool
    """The volume accepts no more data."""


class Copier:
    """Copies files, symbolic links and fifos."""

    def __init__(self, source: Path, volume: Volume, entries: Sequence[Entry], progress: Progress) -> None:
        """Set what to copy, and where.

        Args:
            source: the folder to copy from.
            volume: the volume to copy to; the tree's folders are there already.
            entries: entries to copy: no folders, no LINKs.
            progress: gets the numbers of each batch.
        """
        self._source = source
        self._tree = volume.tree
        self._entries = entries
        self._spaces = volume.spaces
        self._limit = volume.limit
        self._progress = progress
        self._size = 0

    def begin(self) -> None:
        """Open both roots."""
        self._from = Walker(self._source)
        self._to = Walker(self._tree)

    def work(self, batch: range) -> BatchResult:
        """Copy the entries at some positions."""
        copied: list[tuple[int, str, Xattrs]] = []
        problems = []
        for position in batch:
            entry = self._entries[position]
            folder, name = split(entry.path)
            try:
                sha256, xattrs = self._copy(self._from.open(folder), self._to.open(folder), name, entry)
            except content.ReadError as error:
                problems.append(f"{entry.path}: {error}")
            except OSError as error:
                problems.append(f"{entry.path}: {reason(error)}")
                if error.errno in VOLUME_ERRORS:
                    return BatchResult(copied, problems, stopped=True)
            else:
                if sha256 or xattrs:
                    copied.append((position, sha256, xattrs))
        self._report(len(batch))
        return BatchResult(copied, problems, stopped=False)

    def _copy(self, source: int, target: int, name: str, entry: Entry) -> tuple[str, Xattrs]:
        """Copy one entry; return its checksum and extended attributes."""
        if entry.kind is EntryKind.FILE:
            return self._copy_file(source, target, name, entry)
        xattrs = read_xattrs(path_of(source, name))
        entry = entry._replace(xattrs=kept(xattrs, self._spaces))
        if create(target, name, entry, lambda: make(target, name, entry)):
            write_attributes(target, name, entry)
        return "", xattrs

    def _copy_file(self, source_folder: int, target_folder: int, name: str, entry: Entry) -> tuple[str, Xattrs]:
        try:
            source = os.open(name, FILE, dir_fd=source_folder)
        except OSError as error:
            raise content.ReadError(f"cannot be opened: {reason(error)}") from None
        try:
            xattrs = read_xattrs(source)
            target = create(target_folder, name, entry, lambda: os.open(name, NEW_FILE, 0o600, dir_fd=target_folder))
            if target is None:
                sha256 = content.digest(source, entry.size, sparse=entry.sparse)
                self._size += entry.size
                return sha256, xattrs
            try:
                sha256 = content.copy(source, target, entry.size, sparse=entry.sparse, pace=self._pace)
                write_file_attributes(target, entry._replace(xattrs=kept(xattrs, self._spaces)) if xattrs else entry)
            finally:
                os.close(target)
            return sha256, xattrs
        finally:
            os.close(source)

    def _pace(self, size: int) -> None:
        self._limit.pace(size)
        self._size += size
        if self._size >= REPORTED_BYTES:
            self._report()

    def _report(self, files: int = 0) -> None:
        """Add to the progress. Locking the shared counters for every file would make processes wait."""
        self._progress.add_bytes(self._size)
        self._progress.add_files(files)
        self._size = 0


def create(folder: int, name: str, entry: Entry, make_it: Callable[[], int | bool]) -> int | None:
    """Create a new file under a name and return the result of `make_it`; None if it already exists completely.

    Anything else of that name, from an earlier attempt, is removed first. A file gets its time last, so one with the
    right time is complete, unless the machine lost power; verification finds that.
    """
    try:
        return make_it()
    except FileExistsError:
        if not unlike(entry, os.stat(name, dir_fd=folder, follow_symlinks=False)):
            return None
    remove(folder, name)
    return make_it()


def make(folder: int, name: str, entry: Entry) -> bool:
    """Make a symbolic link or a fifo."""
    if entry.kind is EntryKind.SYMLINK:
        os.symlink(entry.target, name, dir_fd=folder)
    else:
        os.mkfifo(name, 0o600, dir_fd=folder)
    return True


def remove(folder: int, name: str) -> None:
    """Remove an entry of an open folder, and everything below it. Symbolic links are not followed."""
    try:
        os.unlink(name, dir_fd=folder)
    except IsADirectoryError:
        shutil.rmtree(name, dir_fd=folder)
