"""The volume of a tree: the attributes that it keeps, and the rate of writing to it."""

import errno
import multiprocessing
import os
import secrets
import time
from dataclasses import dataclass
from multiprocessing.context import ForkContext
from pathlib import Path

from jail_tools.files import FOLDER, opened
from jail_tools.progress import MIB
from jail_tools.tree.attributes import path_of
from jail_tools.tree.entry import Entry

UNSUPPORTED = {errno.ENOTSUP, errno.EPERM, errno.EINVAL}
STEPS_NS = (1, 100, 1_000, 1_000_000, 1_000_000_000, 2_000_000_000)
"""Resolutions of times in file systems: most keep nanoseconds, SMB 100 of them, Lustre and BeeGFS seconds."""

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


class Limit:
    """Rate limit in MiB per second, shared by this process and its forks.

    A process reserves the time that its data takes at that rate, and waits for it.
    """

    def __init__(self, mib_per_second: float | None) -> None:
        """Set the limit; None means no limit."""
        context: ForkContext = multiprocessing.get_context("fork")
        self._seconds_per_byte = 1 / (mib_per_second * MIB) if mib_per_second else 0.0
        self._free_at = context.Value("d", 0.0)

    def pace(self, size: int) -> None:
        """Wait until a number of bytes may be written."""
        if not self._seconds_per_byte:
            return
        with self._free_at:
            now = time.monotonic()
            begins = max(now, self._free_at.value)
            self._free_at.value = begins + size * self._seconds_per_byte
        if begins > now:
            time.sleep(begins - now)


@dataclass(frozen=True)
class Volume:
    """A tree to write to, and the limits of its volume."""

    tree: Path
    limit: Limit
    processes: int
    spaces: frozenset[str]
    """Classes of extended attributes that the volume keeps."""
    step_ns: int = 1
    """Resolution of times on the volume."""

    def timed(self, entry: Entry) -> Entry:
        """Return an entry with the time as the volume keeps it."""
        return entry if self.step_ns == 1 else entry._replace(mtime_ns=self.kept_time(entry.mtime_ns))

    def kept_time(self, time_ns: int) -> int:
        """Return a time as the volume keeps it."""
        return time_ns - time_ns % self.step_ns


def volume_of(tree: Path, probes: Path, limit: Limit, processes: int) -> Volume:
    """Return the volume of a tree, after testing it.

    Args:
        tree: the tree's root.
        probes: a folder on the same volume to try in.
        limit: limit on the rate of writing.
        processes: number of processes that copy.
    """
    name = f"probe-{secrets.token_hex(4)}"
    with opened(probes, FOLDER) as folder:
        os.mkdir(name, 0o700, dir_fd=folder)
        file = os.open(f"{name}/file", os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600, dir_fd=folder)
        try:
            spaces = frozenset(space for space in _PROBES if keeps(space, file, path_of(folder, name)))
            return Volume(tree, limit, processes, spaces, _step_ns(file))
        finally:
            os.close(file)
            os.unlink(f"{name}/file", dir_fd=folder)
            os.rmdir(name, dir_fd=folder)


def keeps(space: str, file: int, folder: str) -> bool:
    """Return True if a volume keeps a class of extended attributes, tested on an open file or directory."""
    name, value = _PROBES[space]
    try:
        if space == "system.posix_acl_default":
            os.setxattr(folder, name, value)
        else:
            os.setxattr(file, name, value)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        return False
    return True


def _step_ns(file: int) -> int:
    """Return the resolution of times on the volume."""
    exact = 1_234_567_891_123_456_789
    os.utime(file, ns=(exact, exact))
    kept = os.fstat(file).st_mtime_ns
    return next((step for step in STEPS_NS if exact - exact % step == kept), STEPS_NS[-1])
