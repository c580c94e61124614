"""Access to files below an untrusted directory.

Root in the jail may have planted a symbolic link, a FIFO or a huge file anywhere in its tree. Every path is therefore
walked one component at a time from a directory that is held open, no link is followed, and files to read or write must
be regular.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from jail_tools.files import FOLDER, split

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK

_NEW_SUFFIX = ".jail-tools-new"
"""Suffix of a file that is written before it replaces another. The next run removes the file of a killed one."""
_LONGEST_NAME_BYTES = 200

TEXT_LIMIT_BYTES = 64 * 2**20
"""Largest text file to read. A dpkg status of 100,000 packages has a third of it."""


@dataclass(frozen=True)
class Owned:
    """Content with mode and owner, as in one file."""

    content: bytes
    mode: int
    uid: int = 0
    gid: int = 0


def parents(path: str) -> list[str]:
    """Return the directories above a relative path, the outermost first."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[: length + 1]) for length in range(len(parts))]


def names(folder: int | Path) -> list[str]:
    """Return the names in a directory."""
    with os.scandir(folder) as listing:
        return [item.name for item in listing]


@contextmanager
def directory(root: int | str, path: str = "") -> Iterator[int]:
    """Open a directory below `root` (a trusted path, or a descriptor) without following a link.

    Raises:
        OSError: a component is missing, is not a directory, or is a symbolic link (ENOTDIR).
    """
    here = os.open(root, FOLDER) if isinstance(root, str) else os.dup(root)
    try:
        for name in filter(None, path.split("/")):
            if name in {".", ".."}:
                raise OSError(errno.EINVAL, "not a path below the tree", path)
            try:
                deeper = os.open(name, FOLDER, dir_fd=here)
            except OSError as error:
                error.filename = path
                raise
            os.close(here)
            here = deeper
        yield here
    finally:
        os.close(here)


@contextmanager
def maybe_directory(root: int, path: str) -> Iterator[int | None]:
    """Open a directory below `root`; None if it does not exist or is not a directory."""
    with ExitStack() as stack:
        try:
            descriptor = stack.enter_context(directory(root, path))
        except (FileNotFoundError, NotADirectoryError):
            yield None
        else:
            yield descriptor


def lookup(root: int, path: str) -> os.stat_result | None:
    """Return lstat(2) of a path; None if it does not exist."""
    parent, name = split(path)
    try:
        with directory(root, parent) as at:
            return os.stat(name, dir_fd=at, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None


def read(root: int, path: str, limit_bytes: int = TEXT_LIMIT_BYTES) -> Owned | None:
    """Read a regular file; None if it does not exist.

    Raises:
        OSError: it is not a regular file (EINVAL), is too large (EFBIG), or can't be read.
    """
    parent, name = split(path)
    try:
        with directory(root, parent) as at:
            descriptor = os.open(name, _READ, dir_fd=at)
    except FileNotFoundError:
        return None
    except OSError as error:
        error.filename = path
        raise
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", path)
        content = file.read(limit_bytes + 1)
        if len(content) > limit_bytes:
            raise OSError(errno.EFBIG, f"is larger than {limit_bytes // 2**20} MiB", path)
        return Owned(content, stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid)


def replace(root: int, path: str, file: Owned, *, chown: bool = True) -> None:
    """Replace a file atomically: a reader finds the old or the new content."""
    parent, name = split(path)
    with directory(root, parent) as at, new_name(at, name) as new:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=at)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(file.content)
            stream.flush()
            if chown:
                os.fchown(descriptor, file.uid, file.gid)
            os.fchmod(descriptor, file.mode)
            os.fsync(descriptor)
        os.rename(new, name, src_dir_fd=at, dst_dir_fd=at)


@contextmanager
def new_name(at: int, name: str) -> Iterator[str]:
    """Yield a temporary name for a file that is then renamed to `name`. Leftovers of that name are removed first."""
    new = name_of_new(name)
    discard(at, new)
    try:
        yield new
    finally:
        discard(at, new)


def name_of_new(name: str) -> str:
    """Return the temporary name of a file. It fits even if the name has 255 bytes."""
    short = name if len(os.fsencode(name)) <= _LONGEST_NAME_BYTES else hashlib.sha256(os.fsencode(name)).hexdigest()
    return f".{short}{_NEW_SUFFIX}"


def is_new_name(name: str) -> bool:
    """Return True for a leftover of a killed run."""
    return name.endswith(_NEW_SUFFIX)


def discard(at: int, name: str) -> None:
    """Remove a file or an empty directory. A directory with content stays."""
    try:
        os.unlink(name, dir_fd=at)
    except FileNotFoundError:
        return
    except IsADirectoryError:
        try:
            os.rmdir(name, dir_fd=at)
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                raise
