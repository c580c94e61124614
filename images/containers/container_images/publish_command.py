"""The command `publish-images [IMAGE...]`: fill the store of published images, and remove what is not named.

It runs as root without a capability, in a pod that has the store alone. What a killed run has left is gone on with.
"""

import fcntl
import os
import platform
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from container_images import registry_passwords
from container_images.bringing import ImageBringer
from container_images.image_reference import ImageError, ImageReference, RegistryUnreachableError, parse
from container_images.image_store import ImageStore, folder_name
from container_images.import_settings import SETTINGS, ImportSettings, read_settings
from container_images.program_running import ADMIN_HINTS
from container_images.published_images import PUBLISHED, open_to_all, read_former, read_names, write_names
from container_images.registry_settings import in_mirrors, skopeo_home
from container_images.store_cleaning import empty_trash, gib, remove_images, remove_parts

_MACHINE = platform.machine()

_OPEN_FOLDERS = ("", "images", "uses")
"""Folders of the store that users read; the others are root's alone."""

_RESERVE_BYTES, _RESERVE_DIVISOR = 10 * 1024**3, 50
"""Space on the volume that images never use, because the homes are on it: 10 GiB, or a fiftieth of a small volume."""


def main(
    images: Sequence[str],
    environment: Mapping[str, str] = os.environ,
    settings_file: Path = SETTINGS,
    folder: Path = PUBLISHED,
) -> int:
    """Fill the store, and print progress. Return the exit code: 1 after a message about every image that is missing."""
    os.umask(0o022)
    try:
        settings = read_settings(settings_file)
        publisher = _Publisher(folder, settings, environment)
        problems = publisher.publish(images)
    except (ImageError, OSError) as error:
        problems = [str(error)]
    for problem in problems:
        _say(problem)
    return 1 if problems else 0


def _say(text: str) -> None:
    print(text, flush=True)


class _Publisher:
    def __init__(self, folder: Path, settings: ImportSettings, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._settings = settings
        self._environment = environment
        self._store = ImageStore(folder, _say)
        for name in _OPEN_FOLDERS:
            (folder / name).chmod(0o755)

    def publish(self, images: Sequence[str]) -> list[str]:
        """Bring missing images, and remove unwanted ones. Return a problem for every image that is missing."""
        with (self._folder / "locks/publisher").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                _say("waits for another process that fills this store")
                fcntl.flock(lock, fcntl.LOCK_EX)
            return self._publish(images)

    def _publish(self, images: Sequence[str]) -> list[str]:
        former = read_names(self._folder)
        names, problems = dict[str, str](), []
        for text in images:
            try:
                image = parse(text, Path("/"))
            except ImageError as error:
                problems.append(str(error))
                continue
            try:
                digest = self._bring(image)
            except (ImageError, OSError) as error:
                problems.append(f"{image.full_name}: {error}")
                if not isinstance(error, RegistryUnreachableError):
                    remove_parts(self._folder)  # what is pulled is of no use for the next try, and takes room
                names = {name: former[name] for name in image.full_names if name in former} | names
            else:
                found = {name: names.setdefault(name, digest) for name in image.full_names}
                problems += [
                    f"{name}: containers.images has it with two digests, {first} and {digest}. Remove one."
                    for name, first in found.items()
                    if first != digest
                ]
            write_names(self._folder, former | names)
        write_names(self._folder, names)
        kept = {*names.values(), *chain.from_iterable(read_former(self._folder).values())}
        remove_images(self._folder, {folder_name(digest, _MACHINE) for digest in kept}, _say)
        if not problems:
            remove_parts(self._folder)
        empty_trash(self._folder)
        return problems

    def _bring(self, image: ImageReference) -> str:
        """Bring an image unless it is there, and return its digest."""
        logins = {
            place.registry: registry_passwords.find(place, self._environment, _say)
            for place in (image, *in_mirrors(image, self._settings.registries))
        }
        authentication = registry_passwords.auth_file(logins)
        try:
            with skopeo_home(self._settings.registries) as home:
                variables = {**self._settings.variables, **self._environment, "HOME": str(home)}
                bringer = ImageBringer(
                    image, authentication, variables, _say, hints=ADMIN_HINTS, check_room=self._check_room
                )
                digest = bringer.digest()

                def bring(part: Path, new: Path) -> None:
                    bringer.bring(digest, part, new)
                    _say("opens its files to all users")
                    open_to_all(new / "rootfs")
                    new.chmod(0o755)
                    _say("waits until the volume has its files")
                    os.sync()  # a folder of this name counts as whole, also after a loss of power
                    _say("measures its files")

                self._store.folder_of(digest, bring, bringer.least_bytes)
                (self._folder / "uses" / folder_name(digest, _MACHINE)).touch(0o644)
        finally:
            os.close(authentication)
        _say(f"{image.full_name} is published as {digest}")
        return digest

    def _check_room(self, wanted: int) -> None:
        volume = os.statvfs(self._folder)
        free, size = (blocks * volume.f_frsize for blocks in (volume.f_bavail, volume.f_blocks))
        reserve = min(_RESERVE_BYTES, size // _RESERVE_DIVISOR)
        if size and free < wanted + reserve:  # some file systems don't say
            message = (
                f"the jail's volume has {gib(free)} free, and needs {gib(wanted + reserve)}, of "
                f"which {gib(reserve)} stay free for the homes. Make the volume larger "
                "(jail.storage.size_gib), remove files in homes, or take images out of containers.images."
            )
            raise ImageError(message)
