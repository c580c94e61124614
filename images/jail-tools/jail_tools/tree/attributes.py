"""Owners, modes, times and extended attributes of files in a tree."""

import os

from jail_tools.tree.entry import Entry, EntryKind

Xattrs = tuple[tuple[str, bytes], ...]

SPACES = ("user.", "trusted.", "security.capability", "system.posix_acl_")
"""Extended attributes that belong to a file. Others (SELinux labels, NFS's own ACLs) are the volume's own."""


def path_of(folder: int, name: str) -> str:
    """Return a path to a name in an open folder, for calls that accept no folder descriptor."""
    return f"/proc/self/fd/{folder}/{name}"


def read_xattrs(file: int | str) -> Xattrs:
    """Return the extended attributes that belong to a file, given by descriptor or path. Links are not followed."""
    follow = isinstance(file, int)
    names = os.listxattr(file, follow_symlinks=follow)
    if not names:
        return ()
    return tuple(
        (name, os.getxattr(file, name, follow_symlinks=follow)) for name in sorted(names) if name.startswith(SPACES)
    )


def write_xattrs(file: int | str, wanted: Xattrs) -> None:
    """Give a file these extended attributes."""
    for name, value in wanted:
        os.setxattr(file, name, value, follow_symlinks=isinstance(file, int))


def space(name: str) -> str:
    """Return the class of an extended attribute. A volume keeps all attributes of a class, or none."""
    return name if name.startswith(("security.", "system.")) else name.partition(".")[0] + "."


def kept(xattrs: Xattrs, spaces: frozenset[str]) -> Xattrs:
    """Return the extended attributes whose class is in `spaces`."""
    return tuple((name, value) for name, value in xattrs if space(name) in spaces)


def lost(xattrs: Xattrs, spaces: frozenset[str]) -> set[str]:
    """Return the classes of the given extended attributes that are not in `spaces`."""
    return {space(name) for name, _ in xattrs} - spaces


def write_attributes(folder: int, name: str, entry: Entry) -> None:
    """Give a folder, symbolic link or fifo its owner, attributes, mode and time."""
    os.chown(name, entry.uid, entry.gid, dir_fd=folder, follow_symlinks=False)
    if entry.xattrs:
        write_xattrs(path_of(folder, name), entry.xattrs)
    if entry.kind is not EntryKind.SYMLINK:
        os.chmod(name, entry.mode, dir_fd=folder)
    os.utime(name, ns=(entry.mtime_ns, entry.mtime_ns), dir_fd=folder, follow_symlinks=False)


def write_file_attributes(file: int, entry: Entry) -> None:
    """Give an open file its owner, attributes and mode, and its time last: a file with its time is complete."""
    os.fchown(file, entry.uid, entry.gid)
    if entry.xattrs:
        write_xattrs(file, entry.xattrs)
    os.fchmod(file, entry.mode)
    os.utime(file, ns=(entry.mtime_ns, entry.mtime_ns))
