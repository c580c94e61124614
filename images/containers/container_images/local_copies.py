"""Copies of images on a disk of the node, from which tasks start without a read of the shared volume.

Every user has a store of copies on the disk, in the form of the store in the home (`image_store.py`) and closed to all
others. A start first gets the image in the shared store, with all checks, and only then its copy. So whoever may not
start the image does not get a copy. A start that gets no copy runs from the shared store, and says so.
"""

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from container_images.copies_on_disk import DISK
from container_images.image_copying import copy_image
from container_images.image_reference import ImageError
from container_images.image_store import ImageStore, digest_of_folder
from container_images.program_running import run_program
from container_images.store_cleaning import StoreLimits, gib, held_bytes, recorded_size


@dataclass(frozen=True)
class LocalLimits:
    """Limits of copies.

    Attributes:
        store: Limits of a user's copies on a node.
        free_percent: Percentage of the disk that copies leave free.

    """

    store: StoreLimits
    free_percent: float


class LocalCopies:
    """The user's copies on this node.

    Args:
        limits: Limits of copies.
        environment: Variables of the programs that copy.
        say: Tells the user how far it is, and why there is no copy.
        disk: The disk. If it is missing, the node has none. Default: `DISK`.

    """

    def __init__(
        self, limits: LocalLimits, environment: Mapping[str, str], say: Callable[[str], None], disk: Path = DISK
    ) -> None:
        self._limits = limits
        self._environment = environment
        self._say = say
        self._disk = disk

    def use(self, image: Path, lock: int) -> tuple[Path, int]:
        """Return the folder of the image's copy, and a descriptor that keeps the copy as long as it is open.

        Args:
            image: Folder of the image in the shared store.
            lock: Descriptor that keeps this folder. If there can be no copy, both are returned as they are.
        """
        if not self._disk.is_dir():
            return image, lock
        try:
            return self._copy_of(image)
        except (ImageError, OSError) as error:
            words = f"{error.filename or self._disk}: {error.strerror}" if isinstance(error, OSError) else error
            self._say(f"starts from the shared store, as this node can have no copy of the image. {words}")
            return image, lock

    def _copy_of(self, image: Path) -> tuple[Path, int]:
        folder = self._own_folder()
        store = ImageStore(folder, self._say, limits=self._store_limits(folder))
        digest = digest_of_folder(image.name)
        lock = store.use(digest)
        try:
            store.clean()
            return store.folder_of(digest, lambda _part, new: self._copy(image, new), recorded_size(image)), lock
        except BaseException:
            os.close(lock)
            raise

    def _own_folder(self) -> Path:
        """Return the user's folder on the disk. No other user can create or replace it.

        Raises:
            ImageError: Another user could.

        """
        disk, user = self._disk.stat(), os.geteuid()
        if disk.st_uid not in {0, user} or not disk.st_mode & stat.S_ISVTX:
            message = f"{self._disk} needs root as its owner and the mode 1777: users could replace copies of others."
            raise ImageError(message)
        folder = self._disk / str(user)
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != user:
            raise ImageError(f"{folder} belongs to the user {found.st_uid}. Ask the cluster's admin to remove it.")
        return folder

    def _store_limits(self, folder: Path) -> StoreLimits:
        """Return the limits that count now: copies of other users, and other files, can have filled the disk."""
        limits = self._limits.store
        room = max(held_bytes(folder) + self._free_bytes(), 0)
        if limits.images_bytes is not None and limits.images_bytes <= room:
            return limits
        kept = f"{self._limits.free_percent:g} % of the disk stay free, containers.local.free_percent"
        return StoreLimits(room, limits.unused_seconds, kept)

    def _free_bytes(self) -> int:
        """Return the bytes that copies may still take; below 0 if other files have taken what stays free."""
        disk = os.statvfs(self._disk)
        return (disk.f_bavail - int(disk.f_blocks * self._limits.free_percent / 100)) * disk.f_frsize

    def _check_room(self) -> None:
        if self._free_bytes() < 0:
            raise ImageError(f"{self._disk} has less than {self._limits.free_percent:g} % of its space free.")

    def _copy(self, image: Path, new: Path) -> None:
        self._say(f"copies the image to this node's disk: {gib(recorded_size(image))}")
        copy_image(image, new, self._environment, self._say, check=self._check_room)
        self._say("waits until the disk has its files")  # a copy that has its name is whole, also after a loss of power
        run_program(["sync", "--file-system", str(new)], self._environment)
