"""Differences between what is in a tree and its entry."""

import os
import stat

from jail_tools.errors import reason
from jail_tools.tree.attributes import Xattrs, path_of, read_xattrs
from jail_tools.tree.content import ReadError, digest
from jail_tools.tree.entry import KINDS, Entry, EntryKind

FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def unlike(entry: Entry, status: os.stat_result) -> str:
    """Return the difference between lstat(2) and an entry; "" if there is none. Only what lstat(2) sees is compared."""
    mode = status.st_mode
    kind = KINDS.get(stat.S_IFMT(mode))
    if kind is not entry.kind:
        return f"is a {kind or 'device or socket'}, should be a {entry.kind}"
    if kind is EntryKind.FILE and status.st_size != entry.size:
        return f"has {status.st_size:,} bytes, should have {entry.size:,}"
    if kind is not EntryKind.SYMLINK and mode & 0o7777 != entry.mode:
        return f"has mode {mode & 0o7777:04o}, should have {entry.mode:04o}"
    if status.st_uid != entry.uid or status.st_gid != entry.gid:
        return f"belongs to {status.st_uid}:{status.st_gid}, should belong to {entry.uid}:{entry.gid}"
    if status.st_mtime_ns != entry.mtime_ns:
        return f"was changed at {_time(status.st_mtime_ns)}, should be from {_time(entry.mtime_ns)}"
    return ""


def difference(folder: int, name: str, entry: Entry) -> str:
    """Return the difference between a name in an open folder and an entry other than a LINK; "" if there is none.

    Args:
        folder: descriptor of the folder.
        name: the name in it.
        entry: what it should be.
    """
    try:
        how = unlike(entry, os.stat(name, dir_fd=folder, follow_symlinks=False))
        if how:
            return how
        if entry.kind is EntryKind.FILE:
            return _file_difference(folder, name, entry)
        if entry.kind is EntryKind.SYMLINK:
            target = os.readlink(name, dir_fd=folder)
            if target != entry.target:
                return f"points to {target}, should point to {entry.target}"
        return _xattr_difference(read_xattrs(path_of(folder, name)), entry.xattrs)
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {reason(error)}"


def _file_difference(folder: int, name: str, entry: Entry) -> str:
    file = os.open(name, FILE, dir_fd=folder)
    try:
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)  # read what the volume has, not what memory has of it
        found = digest(file, entry.size, sparse=entry.sparse)
        if found != entry.sha256:
            return f"has other content: sha256 {found}, should be {entry.sha256}"
        return _xattr_difference(read_xattrs(file), entry.xattrs)
    except ReadError as error:
        return str(error)
    finally:
        os.close(file)


def _xattr_difference(found: Xattrs, wanted: Xattrs) -> str:
    if found == wanted:
        return ""
    ours, theirs = dict(found), dict(wanted)
    names = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    return f"has other attributes: {', '.join(names)}"


def _time(nanoseconds: int) -> str:
    return f"{nanoseconds // 1_000_000_000}.{nanoseconds % 1_000_000_000:09}"
