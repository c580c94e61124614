"""Owners, modes, times and extended attributes of what is in a tree."""

import errno
import os
import secrets

from jail_tools.entry import Entry, Kind

Xattrs = tuple[tuple[str, bytes], ...]

SPACES = ("user.", "trusted.", "security.capability", "system.posix_acl_")
"""Extended attributes that belong to a file. Others (SELinux labels, NFS's own ACLs) are the volume's own."""
UNSUPPORTED = {errno.ENOTSUP, errno.EPERM, errno.EINVAL}


def path_of(folder: int, name: str) -> str:
    """Return a path to a name in an opened folder, for calls that take no descriptor of a folder."""
    return f"/proc/self/fd/{folder}/{name}"


def read_xattrs(file: int | str) -> Xattrs:
    """Return the extended attributes that belong to a file, given by descriptor or path (no link is followed)."""
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
    """Return the class of an extended attribute: a volume keeps all of one class or none."""
    return name if name.startswith(("security.", "system.")) else name.partition(".")[0] + "."


def kept(xattrs: Xattrs, spaces: frozenset[str]) -> Xattrs:
    """Return those extended attributes whose class is among `spaces`."""
    return tuple((name, value) for name, value in xattrs if space(name) in spaces)


def lost(xattrs: Xattrs, spaces: frozenset[str]) -> set[str]:
    """Return the classes of those extended attributes whose class is not among `spaces`."""
    return {space(name) for name, _ in xattrs} - spaces


_ACL = b"\x02\x00\x00\x00" + b"".join(
    tag.to_bytes(2, "little") + permission.to_bytes(2, "little") + number.to_bytes(4, "little", signed=True)
    for tag, permission, number in ((0x01, 7, -1), (0x02, 4, 1), (0x04, 5, -1), (0x10, 5, -1), (0x20, 5, -1))
)
_CAPABILITY = bytes.fromhex("0100000200200000000000000000000000000000")
_PROBES = {
    "user.": ("user.jail_tools", b"1"),
    "trusted.": ("trusted.jail_tools", b"1"),
    "security.capability": ("security.capability", _CAPABILITY),
    "system.posix_acl_access": ("system.posix_acl_access", _ACL),
    "system.posix_acl_default": ("system.posix_acl_default", _ACL),
}


def kept_spaces(folder: int) -> frozenset[str]:
    """Return the classes of extended attributes that a volume keeps, tried on a folder of it made for that."""
    name = f"probe-{secrets.token_hex(4)}"
    os.mkdir(name, 0o700, dir_fd=folder)
    file = os.open(f"{name}/file", os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600, dir_fd=folder)
    kept = set()
    try:
        for which, (attribute, value) in _PROBES.items():
            probed: int | str = path_of(folder, name) if which == "system.posix_acl_default" else file
            try:
                os.setxattr(probed, attribute, value)
            except OSError as error:
                if error.errno not in UNSUPPORTED:
                    raise
            else:
                kept.add(which)
    finally:
        os.close(file)
        os.unlink(f"{name}/file", dir_fd=folder)
        os.rmdir(name, dir_fd=folder)
    return frozenset(kept)


def write_attributes(folder: int, name: str, entry: Entry) -> None:
    """Give a folder, symbolic link or fifo its owner, attributes, mode and time."""
    os.chown(name, entry.uid, entry.gid, dir_fd=folder, follow_symlinks=False)
    if entry.xattrs:
        write_xattrs(path_of(folder, name), entry.xattrs)
    if entry.kind is not Kind.SYMLINK:
        os.chmod(name, entry.mode, dir_fd=folder)
    os.utime(name, ns=(entry.mtime_ns, entry.mtime_ns), dir_fd=folder, follow_symlinks=False)


def write_file_attributes(file: int, entry: Entry) -> None:
    """Give an open file its owner, attributes and mode, and its time last: a file with its time is whole."""
    os.fchown(file, entry.uid, entry.gid)
    if entry.xattrs:
        write_xattrs(file, entry.xattrs)
    os.fchmod(file, entry.mode)
    os.utime(file, ns=(entry.mtime_ns, entry.mtime_ns))
