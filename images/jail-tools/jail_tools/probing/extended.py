"""Extended attributes (xattr(7)): those of users, file capabilities, access control lists."""

import os
from pathlib import Path

from jail_tools.copying.volume import keeps
from jail_tools.files import FOLDER, opened
from jail_tools.probing.seen import Seen, missing
from jail_tools.tree.attributes import path_of


def user_attributes(place: Path) -> Seen:
    """Test if the volume keeps users' extended attributes."""
    return _seen(place, "user.")


def capabilities(place: Path) -> Seen:
    """Test if the volume keeps file capabilities."""
    return _seen(place, "security.capability")


def access_lists(place: Path) -> Seen:
    """Test if the volume keeps POSIX access control lists."""
    return _seen(place, "system.posix_acl_access", "system.posix_acl_default")


def _seen(place: Path, *spaces: str) -> Seen:
    with opened(place, FOLDER) as folder, opened(place / "file", os.O_WRONLY | os.O_CREAT) as file:
        lost = [space for space in spaces if not keeps(space, file, path_of(folder, "."))]
    return missing(f"{', '.join(lost)}: not kept") if lost else Seen("kept")
