"""The command `save-image FOLDER PATH`: write a container's files into a squashfs file when its task has ended.

Its standard input is a socket to the task (`spank-plugin/image_save.h`). The command answers `ready`, or why it cannot
save; then it gets a descriptor of the container's root and one of the task's process, and a byte when the task starts.
"""

import os
import select
import shlex
import socket
import stat
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from container_images.image_reference import ImageError
from container_images.image_settings import settings_of_folder, write_for_enroot
from container_images.program_running import run_program
from container_images.store_cleaning import mib, open_to_owner

_STDIN = 0
_READY = "ready"
_ANSWER_BYTES = 299
"""Bytes of an answer that the task reads."""

_MEMORY_MIB = 128
"""Memory of mksquashfs, whose default is a quarter of the machine's. The job's own memory is in use."""


def main(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> int:
    """Save the container, and print progress. Return the exit code: 1 after a message about the failure."""
    folder, target = Path(arguments[0]), Path(os.path.realpath(arguments[1]))
    with socket.socket(fileno=os.dup(_STDIN)) as task:
        problem = _problem(folder, target)
        task.send((problem or _READY).encode(errors="replace")[:_ANSWER_BYTES])
        if problem:
            return 1
        _, descriptors, _, _ = socket.recv_fds(task, 1, 2)
        if len(descriptors) != 2 or not task.recv(1):
            return 0  # the task has not started, and says why
    tree, process = descriptors
    _await_end(process)
    try:
        _save(tree, folder, target, environment)
    except ImageError as error:
        print(f"{target} was not saved. {error}", flush=True)
        return 1
    except OSError as error:
        print(f"{target} was not saved. {error.filename or target}: {error.strerror}", flush=True)
        return 1
    return 0


def _problem(folder: Path, target: Path) -> str | None:
    """Return why a file cannot be written, or None. It is checked before the task runs, which may take hours."""
    if os.path.isdir(target):  # noqa: PTH112 - Path.is_dir raises an error if the user does not get there
        return f"{target} is a folder: give the path of a file"
    if _is_kept_by_another(target):
        return f"{target} is another user's, and its folder is sticky as /tmp is: give another path"
    try:
        settings_of_folder(folder)
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    try:
        with _part(target):
            return None
    except OSError as error:
        return f"{target.parent} is not a folder that you can write to: {error.strerror}"


def _is_kept_by_another(target: Path) -> bool:
    """Return True if only another user may replace a file."""
    try:
        file, folder = target.lstat(), target.parent.stat()
    except OSError:
        return False  # there is none, or its folder is told
    return bool(folder.st_mode & stat.S_ISVTX) and os.geteuid() not in (file.st_uid, folder.st_uid)


def _part(target: Path) -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent)


def _await_end(process: int) -> None:
    poll = select.poll()
    poll.register(process, select.POLLIN)
    while not poll.poll():
        pass


def _save(tree: int, folder: Path, target: Path, environment: Mapping[str, str]) -> None:
    """Write the file next to its place and move it there, so that a reader finds the former file or the new one."""
    began = time.monotonic()
    os.fchdir(tree)
    open_to_owner(Path(), 0o500)
    with _part(target) as part:
        new = Path(part, "new")
        write_for_enroot(Path(part), settings_of_folder(folder))
        print(f"saves the container in {target}", flush=True)
        run_program(
            [
                *("mksquashfs", ".", str(new), "-noappend", "-quiet", "-no-progress", "-no-xattrs", "-all-root"),
                *("-exit-on-error", "-comp", "zstd", "-mem", f"{_MEMORY_MIB}M"),
                *("-processors", str(len(os.sched_getaffinity(0))), *_with_settings(Path(part))),
            ],
            environment,
            progress=lambda: print(f"has written {mib(_size(new))}", flush=True),
        )
        size = _size(new)
        _move(new, target)
    print(f"has saved {mib(size)} in {time.monotonic() - began:.0f} s", flush=True)


def _move(new: Path, target: Path) -> None:
    """Move a saved container to its place, or next to it if the earlier container cannot be replaced.

    Raises:
        ImageError: It is in that folder.
    """
    try:
        new.replace(target)
    except OSError as error:
        kept = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent), target.name)
        new.replace(kept)
        message = f"What is there cannot be replaced: {error.strerror}. The container is in {kept}"
        raise ImageError(message) from error


def _with_settings(folder: Path) -> list[str]:
    """Return arguments of mksquashfs, the last ones, with which a folder's settings take the place of those in `/etc`.

    The tree stays as it is: that of a named container is used further, and may have no room.
    """
    try:
        mode = Path("etc").lstat().st_mode
    except FileNotFoundError:
        new = ["-p", "etc d 755 0 0"]
    else:
        if not stat.S_ISDIR(mode):
            print(
                "saves it without variables, working directory and entry point: /etc in it is not a folder", flush=True
            )
            return []
        new = []
    for name in ("environment", "rc"):
        new += ["-p", f"etc/{name} f 644 0 0 cat {shlex.quote(str(folder / name))}"]
    return [*new, "-e", "etc/environment", "etc/rc"]


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
