"""Entries: one per file in a source, in its copy and in the manifest."""

import os
import stat
from enum import StrEnum
from typing import NamedTuple


class EntryKind(StrEnum):
    """Kind of an entry."""

    DIRECTORY = "directory"
    FILE = "file"
    SYMLINK = "symlink"
    FIFO = "fifo"
    LINK = "link"
    """A hard link to a file, symbolic link or fifo; `target` is its first name."""


class Entry(NamedTuple):
    """A file in a tree, by its path relative to the tree's root.

    Paths are str as os.fsdecode makes them: bytes that are not UTF-8 are lone surrogates.
    """

    path: str
    kind: EntryKind
    mode: int = 0
    """Permission bits with setuid, setgid and sticky (07777)."""
    uid: int = 0
    gid: int = 0
    mtime_ns: int = 0
    size: int = 0
    """Bytes of a file; 0 for everything else."""
    target: str = ""
    """Target of a symbolic link; of a LINK, the path of the first name."""
    sparse: bool = False
    """The file has holes. They are kept, and its checksum covers only its data (`content`)."""
    sha256: str = ""
    """Checksum of a file's content, 64 hexadecimal digits."""
    xattrs: tuple[tuple[str, bytes], ...] = ()
    """Extended attributes in order of their names, POSIX ACLs among them."""


KINDS = {
    stat.S_IFDIR: EntryKind.DIRECTORY,
    stat.S_IFREG: EntryKind.FILE,
    stat.S_IFLNK: EntryKind.SYMLINK,
    stat.S_IFIFO: EntryKind.FIFO,
}
UNKEPT = {
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
}
"""Kinds that trees do not contain: sockets belong to their process, and devices come from the container's /dev."""

BLOCK_BYTES = 512
"""Unit of st_blocks (stat(2))."""


def entry_of(path: str, status: os.stat_result, target: str = "") -> Entry:
    """Return the entry for a result of lstat(2). Its kind must be one of KINDS."""
    mode = status.st_mode
    kind = KINDS[stat.S_IFMT(mode)]
    if kind is EntryKind.FILE:
        size = status.st_size
        sparse = status.st_blocks * BLOCK_BYTES < size
        return Entry(path, kind, mode & 0o7777, status.st_uid, status.st_gid, status.st_mtime_ns, size, "", sparse)
    return Entry(path, kind, mode & 0o7777, status.st_uid, status.st_gid, status.st_mtime_ns, 0, target)
