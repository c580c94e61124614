"""Images in files of squashfs, as `enroot import` and mksquashfs write them, unpacked as an ordinary user."""

import hashlib
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from container_images.image_reference import SQUASHFS, ImageError, ImageReference, version_of
from container_images.image_settings import settings_of_tree, write_settings
from container_images.program_running import run_program
from container_images.store_cleaning import mib, open_to_owner, size_of

_SUPERBLOCK_BYTES = 96
_QUEUE_MIB = 32
"""Memory of a queue of unsquashfs. Its default of 256 MiB is more than many jobs have."""


_OF_ROOT = re.compile(r"because you're not superuser")
"""Errors of unsquashfs about devices. No user can make them, and a container has those of the job."""


class SquashfsBringer:
    """Brings one image from a file.

    Args:
        image: The image.
        environment: Variables of unsquashfs.
        say: Tells the user how far it is.
    """

    def __init__(self, image: ImageReference, environment: Mapping[str, str], say: Callable[[str], None]) -> None:
        self._image = image
        self._path = Path(image.skopeo.removeprefix(SQUASHFS))
        self._environment = environment
        self._say = say
        self.least_bytes = self._path.stat().st_size
        """Bytes of the file, which is compressed."""

    def digest(self) -> str:
        """Return a digest of the file's path, version and first bytes: reading all of it may take minutes."""
        with self._path.open("rb") as file:
            start = file.read(_SUPERBLOCK_BYTES)
        return (
            f"sha256:{hashlib.sha256(os.fsencode(f'{self._image.skopeo} {self._image.version} ') + start).hexdigest()}"
        )

    def bring(self, _digest: str, _part: Path, new: Path) -> None:
        """Make `rootfs` and the settings in the folder `new`.

        Raises:
            ImageError: The file cannot be unpacked, or has changed meanwhile.

        """
        began = time.monotonic()
        root = new / "rootfs"
        self._say(f"unpacks {self._path} of {mib(self.least_bytes)}")
        queues = ("-data-queue", str(_QUEUE_MIB), "-frag-queue", str(_QUEUE_MIB))
        processors = ("-processors", str(len(os.sched_getaffinity(0))))
        run_program(
            [
                "unsquashfs",
                "-quiet",
                "-no-progress",
                "-no-xattrs",
                *queues,
                *processors,
                "-dest",
                str(root),
                str(self._path),
            ],
            self._environment,
            progress=lambda: self._say(f"has unpacked {mib(size_of(root))}"),
            harmless=_OF_ROOT,
        )
        if version_of(self._path.stat()) != self._image.version:
            message = f"{self._path} has changed while it was unpacked. Start the job again when it is whole."
            raise ImageError(message)
        open_to_owner(root)
        write_settings(new, settings_of_tree(root))
        (new / "reference").write_bytes(os.fsencode(self._image.skopeo))
        self._say(f"has brought it in {time.monotonic() - began:.0f} s")
