"""Files in use: locked by another process, unlinked, replaced, mapped into memory."""

import errno
import fcntl
import mmap
import os
from collections.abc import Callable
from pathlib import Path

from jail_tools.errors import reason
from jail_tools.files import FOLDER, opened
from jail_tools.probing.seen import Seen, missing

Lock = Callable[[int, int], object]

_BUSY = {errno.EAGAIN, errno.EACCES}
_FREE, _HELD = 0, 1
_OLD, _NEW = b"old", b"new"


def flock(place: Path) -> Seen:
    """Hold a lock on a whole file (flock(2)) against another process."""
    return _locks(place, fcntl.flock)


def record_locks(place: Path) -> Seen:
    """Hold a lock on a record (fcntl(2), F_SETLK) against another process."""
    return _locks(place, fcntl.lockf)


def _locks(place: Path, lock: Lock) -> Seen:
    file = place / "file"
    file.touch()
    with opened(file, os.O_RDWR) as ours:
        try:
            lock(ours, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return missing(reason(error))
        if in_another_process(lambda: _try(lock, file)) != _HELD:
            return missing("another process takes a lock that is held")
        lock(ours, fcntl.LOCK_UN)
        if in_another_process(lambda: _try(lock, file)) != _FREE:
            return missing("a lock stays after it was given back")
    return Seen("hold between two processes of this machine")


def _try(lock: Lock, file: Path) -> int:
    with opened(file, os.O_RDWR) as theirs:
        try:
            lock(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _BUSY:
                raise
            return _HELD
    return _FREE


def in_another_process(work: Callable[[], int]) -> int:
    """Return a small number that a forked process determined; 255 if it failed."""
    child = os.fork()
    if not child:
        code = 255
        try:
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def unlink_open(place: Path) -> Seen:
    """Remove an open file, and keep using it."""
    file = place / "file"
    file.write_bytes(_OLD)
    with opened(file, os.O_RDWR) as descriptor:
        file.unlink()
        os.pwrite(descriptor, _NEW, 0)
        kept = os.pread(descriptor, 10, 0)
    if kept != _NEW:
        return missing("the content is gone")
    return missing("the name stays") if file.exists() else Seen("the file stays until it is closed")


def replace_open(place: Path) -> Seen:
    """Rename a file over one that is open, across directories."""
    file, other = place / "file", place / "folder" / "other"
    other.parent.mkdir()
    file.write_bytes(_OLD)
    other.write_bytes(_NEW)
    with opened(file, os.O_RDONLY) as descriptor:
        other.replace(file)
        kept = os.pread(descriptor, 10, 0)
    if kept != _OLD:
        return missing("a process with the old file open reads the new one")
    return Seen("readers keep the old file") if file.read_bytes() == _NEW else missing("the old file stays")


def shared_map(place: Path) -> Seen:
    """Write to a file through a mapping that two processes share."""
    file = place / "file"
    file.write_bytes(_OLD * mmap.PAGESIZE)
    with opened(file, os.O_RDWR) as descriptor, mmap.mmap(descriptor, mmap.PAGESIZE) as shared:
        shared[:3] = _NEW
        seen = in_another_process(lambda: int(_mapped(file) == _NEW))
        shared.flush()
        kept = os.pread(descriptor, 3, 0)
    if seen != 1:
        return missing("another process does not see what is written")
    return Seen("work") if kept == _NEW else missing("what is written does not reach the file")


def _mapped(file: Path) -> bytes:
    with opened(file, os.O_RDWR) as descriptor, mmap.mmap(descriptor, mmap.PAGESIZE) as shared:
        return shared[:3]


def flushed_folder(place: Path) -> Seen:
    """Flush the names in a directory to the disk (fsync(2))."""
    (place / "file").touch()
    with opened(place, FOLDER) as folder:
        os.fsync(folder)
    return Seen("works")
