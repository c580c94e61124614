"""Names of files: links, symbolic links, upper and lower case, characters, length, fifos and sockets."""

import errno
import os
import socket
from pathlib import Path

from jail_tools.errors import reason
from jail_tools.files import FOLDER, opened
from jail_tools.probing.seen import Seen, missing
from jail_tools.tree.attributes import path_of

LINKS = 200
"""Hard links to try. The lowest limit among known systems is 177 (Amazon EFS, quotas)."""
NAME_BYTES = 255
"""NAME_MAX of Linux (pathname(7))."""
TARGET_BYTES = 1000
ODD = (b"libc6:amd64.list", b"File::Spec.3pm", b'a<b>|"?*', b"a\\b", b"ends.", b"space ", b"\xff\xfe")
"""File names that packages have, and bytes that other systems forbid."""


def hard_links(place: Path) -> Seen:
    """Give a file a second name in another directory."""
    file, other = place / "file", place / "folder" / "second"
    file.write_bytes(b"content")
    other.parent.mkdir()
    other.hardlink_to(file)
    if not other.samefile(file) or file.stat().st_nlink != 2:
        return missing("the second name is another file")
    file.unlink()
    return Seen("work") if other.read_bytes() == b"content" else missing("the second name has lost the content")


def many_hard_links(place: Path) -> Seen:
    """Give a file many names."""
    file = place / "file"
    file.touch()
    for number in range(1, LINKS):
        try:
            (place / f"name-of-a-file-in-a-cache-{number}").hardlink_to(file)  # btrfs counts the bytes of names, too
        except OSError as error:
            if error.errno != errno.EMLINK:
                raise
            return missing(f"{number} names of a file at most")
    return Seen(f"{LINKS} names of a file, or more")


def hard_links_to_symlinks(place: Path) -> Seen:
    """Give a symbolic link a second name."""
    (place / "link").symlink_to("elsewhere")
    os.link(place / "link", place / "second", follow_symlinks=False)
    return Seen("work")


def symbolic_links(place: Path) -> Seen:
    """Make links to an existing path, to a missing one, and to a long one."""
    for name, target in (("there", "."), ("not-there", "/usr/../nowhere"), ("long", "x/" * (TARGET_BYTES // 2))):
        (place / name).symlink_to(target)
        if (kept := os.readlink(place / name)) != target:  # noqa: PTH115 Path would forget what was written exactly
            return missing(f"a link to {target[:20]!r} leads to {kept[:20]!r}")
    return Seen("work")


def case(place: Path) -> Seen:
    """Make two files whose names differ only in case."""
    for name in ("Makefile", "makefile"):
        (place / name).write_text(name)
    return Seen("two names") if (place / "Makefile").read_text() == "Makefile" else missing("one name")


def characters(place: Path) -> Seen:
    """Make files with names that other systems forbid."""
    problems = []
    folder = os.fsencode(place)
    for name in ODD:
        try:
            with opened(folder + b"/" + name, os.O_WRONLY | os.O_CREAT):
                pass
        except OSError as error:
            problems.append(f"{name!r} {reason(error)}")
        else:
            with os.scandir(folder) as listing:
                if all(item.name != name for item in listing):
                    problems.append(f"{name!r} gets another name")
    return missing(f"refused: {', '.join(problems)}") if problems else Seen("any byte but / and NUL")


def length(place: Path) -> Seen:
    """Make a file with the longest name."""
    for size in (NAME_BYTES, 200, 140, 100):
        try:
            (place / ("n" * size)).touch()
        except OSError as error:
            if error.errno not in {errno.ENAMETOOLONG, errno.EINVAL}:
                raise
            continue
        return Seen(f"{size} bytes") if size == NAME_BYTES else missing(f"{size} to {NAME_BYTES - 1} bytes")
    return missing("fewer than 100 bytes")


def fifos_and_sockets(place: Path) -> Seen:
    """Make a fifo, and a socket that a program answers on."""
    os.mkfifo(place / "fifo")
    with opened(place, FOLDER) as folder, socket.socket(socket.AF_UNIX) as server:
        name = path_of(folder, "socket")  # a socket's path has 107 bytes at most (unix(7))
        server.bind(name)
        server.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(name)
    return Seen("work")
