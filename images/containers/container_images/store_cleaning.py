"""Removal of images from a user's store: never of one that a task uses, on any node (`image_store.py`)."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Container, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from container_images.image_reference import ImageError

_DAY = 86_400
_BLOCK = 4096

_PART_SECONDS = _DAY
"""Age at which the data that a killed process pulled is removed: a next try is expected sooner, and continues with it.
"""


@dataclass(frozen=True)
class StoreLimits:
    """Limits of a store.

    Attributes:
        images_bytes: Bytes of all images, unpacked, and of named containers, which stay. None: no limit.
        unused_seconds: Age of the last start at which an image goes; a named container stays. None: it stays.
        origin: Setting that the bytes come from, for messages.

    """

    images_bytes: int | None = None
    unused_seconds: float | None = None
    origin: str = "containers.images_gib"


NO_LIMITS = StoreLimits()


@dataclass(frozen=True)
class _StoredImage:
    folder: Path
    size: int
    used: float

    @property
    def words(self) -> str:
        try:
            reference = (self.folder / "reference").read_text()
        except OSError:
            reference = self.folder.name
        return f"{reference} ({gib(self.size)})"


class _NamedContainer(_StoredImage):
    @property
    def words(self) -> str:
        return f"{self.folder.name} ({gib(self.size)})"


def clean(store: Path, limits: StoreLimits, say: Callable[[str], None]) -> None:
    """Move to the trash images that no task uses and data that killed processes pulled, if they are too old."""
    now = time.time()
    for part in (store / "parts").iterdir():
        with _closed(store / "locks" / part.name, now - _PART_SECONDS) as closed:
            if closed:
                _throw_away(store, part)
    if limits.unused_seconds is None:
        return
    for image in _images(store):
        if image.used < now - limits.unused_seconds:
            with _closed(store / "uses" / image.folder.name) as closed:
                if closed:
                    say(f"removes {image.words}: last started {(now - image.used) / _DAY:.0f} days ago")
                    _throw_away(store, image.folder)


def make_room(store: Path, limits: StoreLimits, wanted: int, say: Callable[[str], None]) -> None:
    """Remove the images that no task uses, the least recently started first, until another one fits.

    Raises:
        ImageError: It does not fit without the images in use. Nothing is removed.
    """
    limit = limits.images_bytes
    if limit is None:
        return
    images = _images(store)
    named = [_NamedContainer(folder, size_of(folder), 0) for folder in sorted(folders_in(store / "named"))]
    excess = sum(kept.size for kept in (*images, *named)) + wanted - limit
    with ExitStack() as closed:
        unused: list[_StoredImage] = []
        for image in images:
            if excess <= sum(image.size for image in unused):
                break
            if closed.enter_context(_closed(store / "uses" / image.folder.name)):
                unused.append(image)
        if excess > sum(image.size for image in unused):
            raise ImageError(_refusal(wanted, limits, [image for image in images if image not in unused], named))
        for image in unused:
            say(f"removes {image.words} to make room")
            _throw_away(store, image.folder)
    empty_trash(store)


def remove_images(store: Path, kept: Container[str], say: Callable[[str], None]) -> None:
    """Move images to the trash that no task uses and whose folder has none of the kept names."""
    for image in _images(store):
        if image.folder.name not in kept:
            with _closed(store / "uses" / image.folder.name) as closed:
                if closed:
                    say(f"removes {image.words}")
                    _throw_away(store, image.folder)
                else:
                    say(f"{image.words} is not wanted any more, and stays for now: a task runs in it")


def remove_parts(store: Path) -> None:
    """Remove everything that was pulled but not unpacked. A full volume may have no space for the trash."""
    for part in (store / "parts").iterdir():
        remove(part)


def empty_trash(store: Path) -> None:
    """Remove what is in the trash, unless another process does it."""
    trash = store / "trash"
    if not any(trash.iterdir()):
        return
    lock = store / "locks/trash"
    lock.touch()
    with _closed(lock) as closed:
        for thing in trash.iterdir() if closed else ():
            with suppress(OSError):
                remove(thing)


def held_bytes(store: Path) -> int:
    """Return the bytes of the images in a store, which may be missing; named containers do not count."""
    return sum(image.size for image in _images(store))


def size_of(folder: Path) -> int:
    """Return the bytes that files below a folder take, in whole blocks of 4 KiB; those with many names count once."""
    sizes: dict[tuple[int, int], int] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # another process may be at work there, or a task has closed the folder
                status = Path(parent, name).lstat()
                sizes[status.st_dev, status.st_ino] = -(-status.st_size // _BLOCK) * _BLOCK
    return sum(sizes.values())


def open_to_owner(folder: Path, rights: int = 0o700) -> None:
    """Give the owner rights on a folder and all folders in it, and to read files, as root has in a container.

    That root looks at no modes. Its files are the user's here, for whom modes count.

    Args:
        folder: The folder.
        rights: Rights of the owner on folders. Default: all. Modes with these rights stay as they are.
    """
    _add_rights(folder, rights)
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(parent, name)
            with suppress(FileNotFoundError):  # a task may be at work there
                if not path.is_symlink():
                    _add_rights(path, rights if name in folders else 0o400)


def _add_rights(path: Path, rights: int) -> None:
    mode = path.stat().st_mode & 0o7777
    if mode | rights != mode:
        path.chmod(mode | rights)


def remove(folder: Path) -> None:
    """Remove a folder and its contents, also if an image has set modes that forbid it."""
    if folder.is_dir():
        open_to_owner(folder)
        shutil.rmtree(folder)


def _images(store: Path) -> list[_StoredImage]:
    """Return the images, the least recently started first."""
    found = []
    for folder in folders_in(store / "images"):
        with suppress(FileNotFoundError):  # another process has just removed it
            found.append(_StoredImage(folder, recorded_size(folder), folder.stat().st_mtime))
    return sorted(found, key=lambda image: image.used)


def folders_in(folder: Path) -> list[Path]:
    """Return the folders of images or named containers, without hidden ones."""
    return [path for path in folder.glob("*") if not path.name.startswith(".")]


def recorded_size(image: Path) -> int:
    """Return the size of an image's folder in bytes, as recorded in it, or else the sum of its files."""
    try:
        return max(int((image / "size").read_text()), 0)
    except (OSError, ValueError):
        return size_of(image)


@contextmanager
def _closed(path: Path, before: float = float("inf")) -> Iterator[bool]:
    """Hold a lock exclusively, and yield True; False if another process has it, or the file is missing or too new."""
    try:
        lock = path.open("r+")
    except FileNotFoundError:
        yield False
        return
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield os.fstat(lock.fileno()).st_mtime < before


def _throw_away(store: Path, folder: Path) -> None:
    with suppress(FileNotFoundError):  # it was gone before the lock was had
        folder.rename(Path(tempfile.mkdtemp(dir=store / "trash")) / folder.name)


def _refusal(wanted: int, limits: StoreLimits, used: list[_StoredImage], named: list[_NamedContainer]) -> str:
    limit = limits.images_bytes or 0
    message = (
        f"{gib(wanted)} are needed, and your images and named containers may take {gib(limit)} in all "
        f"({limits.origin})."
    )
    if wanted > limit:
        return message
    if used:
        message += f" Jobs are running in {', '.join(image.words for image in used)}: wait until they have ended."
    if named:
        message += f" Named containers stay: {', '.join(container.words for container in named)}. Remove one by hand."
    return message


def gib(size: int) -> str:
    """Return bytes in GiB, for messages."""
    return f"{size / 1024**3:.2f} GiB"


def mib(size: int) -> str:
    """Return bytes in whole MiB, for messages."""
    return f"{size / 1024**2:.0f} MiB"
