"""Removal by root of what users have made, in bounded memory and time: they nest folders and fill them at will."""

import os
import secrets
from collections import Counter
from collections.abc import Generator
from contextlib import closing
from itertools import islice

MOST_ENTRIES = 200_000
"""Files and folders that a call looks at, which takes some 6 s. More are left to later calls."""


def remove_entries(folder: int, most: int = MOST_ENTRIES) -> bool:
    """Remove what a folder holds, following no link. Return False if it holds more than a call looks at.

    What cannot be removed stays.

    Args:
        folder: Descriptor of the folder.
        most: Entries to look at. Default: 200,000.

    Raises:
        OSError: The folder cannot be read.

    """
    left = most
    while left:
        found = Counter[bool]()
        with closing(_removals(folder)) as removals:
            found.update(islice(removals, left))
        left -= found.total()
        if not found[True]:
            break
    return left > 0


def _removals(folder: int, above: int | None = None) -> Generator[bool]:
    """Remove the entries of a folder one by one, and yield True for one that is gone from it.

    Folders in a folder move up to the one above before anything in them is removed: however deep they are, two
    descriptors do.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.name, dir_fd=folder)
                elif above is not None:
                    os.rename(entry.name, secrets.token_hex(16), src_dir_fd=folder, dst_dir_fd=above)
                else:
                    below = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                    try:
                        yield from _removals(below, folder)
                    finally:
                        os.close(below)
                    os.rmdir(entry.name, dir_fd=folder)
                yield True
            except OSError:
                yield False
