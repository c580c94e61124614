"""What a source has: everything below a folder, apart from what is mounted there."""

import os
import stat
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from jail_tools.errors import reason
from jail_tools.tree.entry import KINDS, UNKEPT, Entry, Kind, entry_of


@dataclass
class Source:
    """What a scan found."""

    entries: list[Entry] = field(default_factory=list)
    """Every folder stands before what is in it; a file's further names stand after its first."""
    left_out: list[str] = field(default_factory=list)
    """What a tree does not get, with the reason: sockets, devices, what is mounted."""
    problems: list[str] = field(default_factory=list)
    """What could not be read, with the reason."""


def scan(root: Path, mounted: Collection[str], skipped: Collection[str] = ()) -> Source:
    """Return what is in a folder.

    Args:
        root: the folder, absolute.
        mounted: paths below it where something is mounted: a folder there is taken as an empty one, a file is left out.
        skipped: paths below it to leave out altogether.
    """
    found = Source()
    first_names: dict[tuple[int, int], Entry] = {}
    folders = [""]
    while folders:
        folder = folders.pop()
        inside: list[str] = []
        try:
            with os.scandir(root / folder) as listing:
                items = list(listing)
        except OSError as error:
            found.problems.append(f"{folder or '/'}: cannot be listed: {reason(error)}")
            continue
        for item in items:
            path = f"{folder}/{item.name}" if folder else item.name
            if path in skipped:
                continue
            try:
                entry = _entry(path, item, first_names, found)
            except OSError as error:
                found.problems.append(f"{path}: cannot be read: {reason(error)}")
                continue
            if entry is None:
                continue
            if path in mounted:
                found.left_out.append(f"{path}: what is mounted there is not the source's")
                if entry.kind is not Kind.DIRECTORY:
                    continue
            found.entries.append(entry)
            if entry.kind is Kind.DIRECTORY and path not in mounted:
                inside.append(path)
        folders.extend(reversed(inside))
    return found


def _entry(path: str, item: os.DirEntry[str], first_names: dict[tuple[int, int], Entry], found: Source) -> Entry | None:
    """Return what a name stands for; None for what no tree has."""
    status = item.stat(follow_symlinks=False)
    form = stat.S_IFMT(status.st_mode)
    if form not in KINDS:
        found.left_out.append(f"{path}: {UNKEPT.get(form, 'unknown kind')}")
        return None
    entry = entry_of(path, status, _target(item.path) if form == stat.S_IFLNK else "")
    if status.st_nlink > 1 and entry.kind is not Kind.DIRECTORY:
        first = first_names.setdefault((status.st_dev, status.st_ino), entry)
        if first is not entry:
            return entry._replace(kind=Kind.LINK, target=first.path, size=0, sparse=False)
    return entry


def _target(path: str) -> str:
    return os.readlink(path)  # noqa: PTH115 - pathlib would tidy what it says: `./a//b` must stay so


def mount_points(mountinfo: str, root: Path) -> set[str]:
    """Return the paths below a folder where something is mounted, relative to it.

    Args:
        mountinfo: the text of /proc/self/mountinfo (proc_pid_mountinfo(5)).
        root: the folder, absolute and without symbolic links.
    """
    found = set()
    for line in mountinfo.splitlines():
        point = Path(os.fsdecode(_plain(os.fsencode(line.split(" ")[4]))))
        if point != root and point.is_relative_to(root):
            found.add(str(point.relative_to(root)))
    return found


def _plain(escaped: bytes) -> bytes:
    r"""Undo the kernel's escapes: `\040` is a space."""
    head, *tail = escaped.split(b"\\")
    return head + b"".join(bytes([int(part[:3], 8)]) + part[3:] for part in tail)
