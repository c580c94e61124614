"""The node's disk with copies of images, as root sees it: users own the folders in it, and can put anything there.

No link in them is followed. A store there has the form of the one in the home (`image_store.py`), with its locks.
"""

import fcntl
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from container_images.bounded_removal import remove_entries
from container_images.store_sizes import names_in, opened

DISK = Path("/var/lib/soperator/local-images")
"""Mount of the node's disk in a worker and in the jail (`soperator_pulumi/render/layout.py`)."""

_PART_SECONDS = 86_400
"""Age at which the rest of a copy that was killed is removed."""


def remove_unused(disk: Path, user: int, now: float, unused_seconds: float | None) -> int:
    """Remove a user's copies that no task uses and that were not started for too long. Return their number.

    What killed processes have left goes too, and up to 200,000 files and folders of the trash. Users do the same at
    every start (`store_cleaning.py`), without a limit.

    Args:
        disk: The disk.
        user: Number of the user, which is the name of the folder.
        now: Seconds since the epoch.
        unused_seconds: Age of the last start at which a copy goes. None: it stays.

    """
    store = Path(str(user))
    removed = 0 if unused_seconds is None else _throw_away(disk, store / "images", store / "uses", now - unused_seconds)
    _throw_away(disk, store / "parts", store / "locks", now - _PART_SECONDS)
    with suppress(OSError), opened(disk, store / "trash") as trash:
        remove_entries(trash)
    return removed


def _throw_away(disk: Path, place: Path, locks: Path, oldest: float) -> int:
    """Move folders to the trash that have not changed since, and whose lock is free. Return their number."""
    thrown = 0
    with (
        suppress(OSError),
        opened(disk, place) as folder,
        opened(disk, locks) as held,
        opened(disk, place.parent / "trash") as trash,
    ):
        for name in names_in(folder):
            with suppress(OSError):
                lock = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=held)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode) and found.st_mtime < oldest:
                        os.rename(name, f"{name}.{secrets.token_hex(8)}", src_dir_fd=folder, dst_dir_fd=trash)
                        thrown += 1
                finally:
                    os.close(lock)
    return thrown
