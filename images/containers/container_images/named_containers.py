"""Containers with a name: copies of an image's folder in the user's store, which keep what tasks change in them."""

from collections.abc import Callable, Mapping
from pathlib import Path

from container_images.image_copying import copy_image
from container_images.image_reference import ImageError
from container_images.image_store import ImageStore
from container_images.store_cleaning import mib, size_of

_MAKER = "made_by"
"""File in a container's folder with the step that made it: all nodes of that step start it as new."""


class NamedContainers:
    """A user's named containers.

    Args:
        store: The user's store.
        environment: Variables of the program that copies.
        say: Tells the user how far it is.

    """

    def __init__(self, store: ImageStore, environment: Mapping[str, str], say: Callable[[str], None]) -> None:
        self._store = store
        self._environment = environment
        self._say = say

    def use(self, name: str, flag: str, step: str, image: Callable[[], Path] | None) -> tuple[Path, int]:
        """Return the folder of a container, and a descriptor that keeps it from being removed as long as it is open.

        Args:
            name: Name of the container, as the plugin admits it.
            flag: Pyxis' word: with `create` there must be none of the name, unless this step has made it; with `exec` a
                task must run in it. `auto` and `no_exec` start what is there, or else make it.
            step: Text that stands for the step, and for no other one.
            image: Returns the folder of the image of which a container is made. None: the job names no image.

        Raises:
            ImageError: There is no container to start, or one too many.

        """
        if flag == "exec" and not self._store.is_named_in_use(name):
            message = f"no task runs in a container {name}, and --container-name={name}:exec needs one."
            raise ImageError(message)
        lock = self._store.use_named(name)
        folder = self._store.named_folder(name)
        if not folder.is_dir():
            if image is None:
                raise ImageError(self._missing(name))
            folder = self._store.make_named(name, lambda new: self._copy(image(), new, step))
        if (folder / _MAKER).read_text() != step:
            if flag == "create":
                message = (
                    f"there is a container {name} already, and --container-name={name}:create makes a new one. Choose "
                    f"another name, or remove {folder}."
                )
                raise ImageError(message)
            if image is not None:
                self._say(f"starts the container {name} as it is: --container-image has no effect")
        return folder, lock

    def _copy(self, image: Path, new: Path, step: str) -> None:
        size = size_of(image)
        self._say(f"makes a container of {mib(size)}")
        self._store.make_room(size)
        copy_image(image, new, self._environment, self._say)
        (new / _MAKER).write_text(step)

    def _missing(self, name: str) -> str:
        names = ", ".join(self._store.names()) or "none"
        return f"there is no container {name}. Give --container-image to make it. There are: {names}."
