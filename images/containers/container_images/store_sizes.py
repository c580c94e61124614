"""Sizes of users' image folders, read as root: follows no links, and never blocks on special files."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

_MOST_NAMES = 10_000
"""Names of a folder that are looked at."""

_SIZE_BYTES = 32
"""Most bytes of a file with a size."""


def names_in(folder: Path | int) -> list[str]:
    """Return the sorted names in a folder, without hidden ones, at most 10,000; none if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in islice(entries, _MOST_NAMES) if not entry.name.startswith("."))
    except OSError:
        return []


def sizes_below(home: Path, place: Path) -> list[int | None]:
    """Return the sizes of the images in a folder of a home; None for one that has no size."""
    try:
        with opened(home, place) as folder:
            names = names_in(folder)
    except OSError:
        return []
    return [size_of_image(home, place / name) for name in names]


@contextmanager
def opened(start: Path, place: Path) -> Iterator[int]:
    """Yield a descriptor of a folder below the start. A link in its path is an error: root would follow it anywhere."""
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


def size_of_image(start: Path, place: Path) -> int | None:
    """Return the bytes of an image in a folder below the start, as its file says, or None."""
    try:
        with opened(start, place) as folder:
            descriptor = os.open("size", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        try:  # os.fdopen would leave the descriptor of a folder open
            return max(int(os.read(descriptor, _SIZE_BYTES)), 0)
        finally:
            os.close(descriptor)
    except (OSError, ValueError):
        return None
