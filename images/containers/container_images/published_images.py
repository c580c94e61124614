"""Shared images: the admin publishes them in a store that users read, and everyone who may run jobs may start them.

The store has the folders of a user's store (`image_store.py`), `names.json`, the digest of every published name, and
`former.json`, the digests that these names had before and jobs may have begun with. All in it is root's, and jobs have
it read-only. A container runs as its user, to whom the files of an image belong in the own store, and not here. So
every file of a published image is open to all for reading and writing, and every folder: changes go to the layer of
the task.
"""

import fcntl
import json
import os
import platform
import stat
import time
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from container_images.image_reference import ImageReference
from container_images.image_store import folder_name

PUBLISHED = Path("/var/lib/soperator/images")
"""Place of the store in the jail, for jobs, and in the pod that fills it (`soperator_pulumi/render/layout.py`)."""

FORMER_SECONDS = 7 * 86_400
"""Time for which an image stays after its name has moved: jobs that began with it may start more steps."""

_TRIES, _PAUSE_SECONDS = 10, 0.1
_FOLDER, _FILE, _PROGRAM = 0o777, 0o666, 0o111


class PublishedImages:
    """The published images, as a job finds them.

    Args:
        folder: The store's folder, which may be missing. Default: `PUBLISHED`.
        say: Tells the user of an image that nothing keeps from being removed.
        machine: Architecture whose images are wanted, as the kernel names it. Default: this machine's.

    """

    def __init__(
        self, folder: Path = PUBLISHED, *, say: Callable[[str], None], machine: str = platform.machine()
    ) -> None:
        self._folder = folder
        self._say = say
        self._machine = machine

    def digest(self, image: ImageReference) -> str | None:
        """Return the digest with which an image is published: by its name, or by the digest that the user wants."""
        if image.registry is None:
            return None
        names = read_names(self._folder)
        name, _, wanted = image.full_name.partition("@")
        if not wanted:
            return names.get(name)
        same = (wanted in digests and known.rpartition(":")[0] == name for known, digests in self._kept().items())
        return wanted if image.full_name in names or any(same) else None

    def use(self, digest: str) -> tuple[Path, int] | None:
        """Return an image's folder, and a descriptor that keeps it from being removed as long as it is open.

        None if it is not published, or is being removed. Users read the mark, and can hold the lock on it alone, as a
        removal does. But an image has left the lists before it is removed.
        """
        folder = self._folder / "images" / folder_name(digest, self._machine)
        mark = self._folder / "uses" / folder.name
        try:
            lock = os.open(mark, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        locked = _lock(lock)
        if (locked or digest in chain.from_iterable(self._kept().values())) and (folder / "rootfs").is_dir():
            if not locked:
                self._say(f"another process holds {mark} alone: nothing keeps this image if it leaves the list")
            return folder, lock
        os.close(lock)
        return None

    def _kept(self) -> dict[str, set[str]]:
        """Return the digests of every name, its former ones included."""
        former = read_former(self._folder)
        return {name: {digest, *former.get(name, ())} for name, digest in read_names(self._folder).items()}


def _lock(descriptor: int) -> bool:
    """Take a shared lock, and return True; return False if another process keeps an exclusive lock."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_SECONDS)
        else:
            return True
    return False


def read_names(folder: Path) -> dict[str, str]:
    """Return the digests of the published images by their names (`ImageReference.full_name`)."""
    return _read(folder / "names.json")


def read_former(folder: Path) -> dict[str, dict[str, float]]:
    """Return the former digests of published names, with the time (seconds since 1970) at which the name moved."""
    return _read(folder / "former.json")


def _read(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}  # nothing was published yet
    return content


def write_names(folder: Path, names: Mapping[str, str]) -> None:
    """Write the digests atomically, the replaced ones first, so that a starting job finds its digest in either file.

    A name that is missing has no former digests either. They go after `FORMER_SECONDS`.
    """
    now, before, former = time.time(), read_names(folder), read_former(folder)
    for name, digest in names.items():
        known = ({before[name]: now} if name in before else {}) | former.get(name, {})
        former[name] = {old: since for old, since in known.items() if old != digest and since > now - FORMER_SECONDS}
    _write(folder, "former", {name: former[name] for name in names if former[name]})
    _write(folder, "names", names)


def _write(folder: Path, name: str, content: Mapping[str, object]) -> None:
    new = folder / f"{name}.new"
    with new.open("w") as file:
        json.dump(content, file, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    new.replace(folder / f"{name}.json")


def open_to_all(root: Path) -> None:
    """Give all users the rights that root would have on an image's files, except set-user-ID and set-group-ID."""
    _open(root)
    for parent, folders, files in os.walk(root):
        for name in (*folders, *files):
            _open(Path(parent, name))


def _open(path: Path) -> None:
    mode = path.lstat().st_mode
    if stat.S_ISDIR(mode):
        path.chmod(_FOLDER)
    elif stat.S_ISREG(mode):
        path.chmod(_FILE | (_PROGRAM if mode & _PROGRAM else 0))
