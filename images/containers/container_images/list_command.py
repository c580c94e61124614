"""The command `list-images`: shared images and the sizes of users' stores, as one JSON object, for root.

Files of a store are its user's, who may have put anything there: no link is followed, and nothing is waited for.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from container_images.image_store import STORE, digest_of_folder
from container_images.published_images import PUBLISHED, read_former, read_names

_HOMES = Path("/home")
_MOST_NAMES = 10_000
"""Names of a user's folder that are looked at."""

_SIZE_BYTES = 32
"""Most bytes of a file with a size."""


def main(published: Path = PUBLISHED, homes: Path = _HOMES) -> int:
    """Print the object, and return the exit code."""
    print(json.dumps({"published": [*_published(published)], "users": [*_users(homes)]}))
    return 0


def _published(store: Path) -> Iterator[dict[str, Any]]:
    """Yield the published images, and without a name those whose files are kept until a task ends."""
    names, former = read_names(store), read_former(store)
    for folder in _names_in(store / "images"):
        try:
            filled_at = (store / "images" / folder / "size").stat().st_mtime
        except OSError:
            continue  # it has just been removed
        digest = digest_of_folder(folder)
        yield {
            "names": [
                *sorted(name for name, known in names.items() if known == digest),
                *sorted({f"{name.rpartition(':')[0]}@{digest}" for name, known in former.items() if digest in known}),
            ],
            "digest": digest,
            "architecture": folder.partition(".")[2],
            "size_bytes": _size(store, Path("images", folder)),
            "filled_at": int(filled_at),
            "in_use": _in_use(store / "uses" / folder),
        }


def _users(homes: Path) -> Iterator[dict[str, Any]]:
    for user in _names_in(homes):
        images, named = (_sizes_below(homes / user, Path(STORE, kind)) for kind in ("images", "named"))
        if images or named:
            yield {
                "user": user,
                "images": len(images),
                "named_containers": len(named),
                "size_bytes": sum(size for size in (*images, *named) if size),
            }


def _names_in(folder: Path | int) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in islice(entries, _MOST_NAMES))
    except OSError:
        return []


def _sizes_below(home: Path, place: Path) -> list[int | None]:
    """Return the sizes of the images in a folder of a home; None for one that has no size."""
    try:
        with _opened(home, place) as folder:
            names = _names_in(folder)
    except OSError:
        return []
    return [_size(home, place / name) for name in names]


@contextmanager
def _opened(start: Path, place: Path) -> Iterator[int]:
    """Open a folder below the start. A link in its path is an error: root would follow it anywhere."""
    flags = os.O_RDONLY | os.O_DIRECTORY
    folder = os.open(start, flags)
    try:
        for part in place.parts:
            below = os.open(part, flags | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = below
        yield folder
    finally:
        os.close(folder)


def _size(start: Path, place: Path) -> int | None:
    """Return the bytes of an image, as its file says, or None."""
    try:
        with _opened(start, place) as folder:
            descriptor = os.open("size", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as file:
            return max(int(file.read(_SIZE_BYTES)), 0)
    except (OSError, ValueError):
        return None


def _in_use(mark: Path) -> bool | None:
    """Return True if a task of any node runs in an image, or None if the file system does not say."""
    try:
        with mark.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False
