"""Copying of an image's folder, for named containers and for copies on a node's disk."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from container_images.program_running import run_program
from container_images.store_cleaning import mib, recorded_size, size_of


def copy_image(
    image: Path,
    new: Path,
    environment: Mapping[str, str],
    say: Callable[[str], None],
    *,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Copy the files and the settings of an image into an empty folder. The copies belong to the user.

    Args:
        image: Folder of the image.
        new: The empty folder.
        environment: Variables of the program that copies.
        say: Tells the user every 10 s how far it is.
        check: Called as often. It raises ImageError to end the copying. Default: nothing is checked.

    Raises:
        ImageError: The program has failed, or the check.

    """
    size = recorded_size(image)

    def go_on() -> None:
        check()
        say(f"has copied {mib(size_of(new))} of {mib(size)}")

    run_program(
        ["cp", "--archive", "--reflink=auto", str(image / "rootfs"), str(new / "rootfs")], environment, progress=go_on
    )
    for setting in image.iterdir():
        if setting.is_file() and setting.name != "size":
            shutil.copyfile(setting, new / setting.name)
