"""Calls to file systems, in a process of their own: any may wait in the kernel for a server that is gone."""

import errno
import os
from collections.abc import Iterator

_WRITTEN = b"ok"


def use(path: str, *, writing: bool) -> Iterator[str]:
    """Yield total blocks, available blocks, total inodes and free inodes, then create, write and read a file.

    Users can write to the same folders. So the file has an unpredictable name, must not exist before, and is used
    through its descriptor only. Through a user's link, root would write to any file; a pipe would block it.

    Args:
        path: Folder on the file system.
        writing: True if a file is created, written and read, too.

    Raises:
        OSError: The file system refuses it.
    """
    status = os.statvfs(path)
    yield f"{status.f_blocks} {status.f_bavail} {status.f_files} {status.f_ffree}"
    if not writing:
        return
    name = f"{path}/.soperator-health-{os.urandom(8).hex()}"
    file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.unlink(name)  # noqa: PTH108 - pathlib takes long to import
    os.write(file, _WRITTEN)
    if os.pread(file, len(_WRITTEN), 0) != _WRITTEN:
        raise OSError(errno.EIO, "what was written is not what was read")


def active_tree(jail: str) -> Iterator[str]:
    """Yield the path of the jail's active tree, from its links: the kernel does not follow links there for root.

    Raises:
        OSError: There is none.
    """
    tree = os.path.realpath(jail, strict=True)
    os.stat(f"{tree}/.")  # noqa: PTH116 - as above
    yield tree
