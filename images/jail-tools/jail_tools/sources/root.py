"""Source of a tree: the root filesystem of this container's image."""

import os
import stat
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from jail_tools.copying import parallel
from jail_tools.copying.copier import Copier
from jail_tools.copying.structure import make_folders, make_links
from jail_tools.copying.volume import Volume
from jail_tools.errors import TryAgainError, bounded, reason
from jail_tools.files import Walker
from jail_tools.layout import TOOLS
from jail_tools.progress import MIB, Progress
from jail_tools.sources import TreeContent
from jail_tools.tree.attributes import Xattrs, read_xattrs
from jail_tools.tree.entry import KINDS, UNKEPT, Entry, EntryKind, entry_of

MOUNTS = Path("/proc/self/mountinfo")


def fill(root: Path, volume: Volume, skipped: set[str]) -> TreeContent:
    """Copy a root filesystem into a tree.

    Args:
        root: the filesystem's root. What is mounted below it is left out.
        volume: where to copy it to.
        skipped: paths below the root to leave out.

    Raises:
        TryAgainError: something could not be read or written; the message names all of it.
    """
    found = scan(root, mount_points(MOUNTS.read_text(errors="surrogateescape"), root), {TOOLS} | skipped)
    _refuse(root, found.problems)
    found.entries = [volume.timed(entry) for entry in found.entries]
    folders = [entry for entry in found.entries if entry.kind is EntryKind.DIRECTORY]
    links = [entry for entry in found.entries if entry.kind is EntryKind.LINK]
    others = [entry for entry in found.entries if entry.kind not in {EntryKind.DIRECTORY, EntryKind.LINK}]
    _require_room(volume.tree, len(found.entries), sum(entry.size for entry in others if not entry.sparse))
    progress = Progress("populate", len(others), sum(entry.size for entry in others))
    walker = Walker(volume.tree)
    make_folders(walker, folders)
    walker.close()
    copier = Copier(root, volume, others, progress)
    problems: list[str] = []
    filled = TreeContent(left_out=found.left_out)

    def attributed(entry: Entry, xattrs: Xattrs, sha256: str = "") -> Entry:
        return entry._replace(xattrs=filled.kept(xattrs, volume), sha256=sha256)

    for _, outcome in parallel.run(copier, parallel.batches(others), volume.processes, progress.report):
        problems += outcome.problems
        for position, sha256, xattrs in outcome.copied:
            others[position] = attributed(others[position], xattrs, sha256)
        if outcome.stopped:
            break
    progress.report(now=True)
    _refuse(root, problems)
    make_links(volume.tree, links)
    folders = [attributed(entry, read_xattrs(str(root / entry.path))) for entry in folders]
    filled.entries = folders + others + links
    return filled


def _refuse(root: Path, problems: list[str]) -> None:
    """Raise if there are problems."""
    if problems:
        number = len(problems)
        raise TryAgainError(
            bounded(
                f"{number:,} entries of {root} could not be copied. The next try continues with them:",
                sorted(problems),
            )
        )


def _require_room(tree: Path, entries: int, size: int) -> None:
    """Raise if a volume has less space than an empty tree needs. A continued attempt is not checked."""
    if next(tree.iterdir(), None) is not None:
        return
    volume = os.statvfs(tree)
    free = volume.f_bavail * volume.f_frsize
    if size > free:
        raise TryAgainError(
            f"the volume has {free // MIB:,} MiB free, the source has {-(-size // MIB):,} MiB. Enlarge the volume."
        )
    if volume.f_files and entries > volume.f_ffree:  # 0 on file systems without a fixed number of inodes
        raise TryAgainError(
            f"the volume has {volume.f_ffree:,} inodes free, the source needs {entries:,}. Enlarge the volume."
        )


@dataclass
class Scan:
    """Content of a source."""

    entries: list[Entry] = field(default_factory=list)
    """Entries: every folder precedes its content, and hard links follow the first name of their file."""
    left_out: list[str] = field(default_factory=list)
    """Paths that are not copied, with the reason: sockets, devices, mounts."""
    problems: list[str] = field(default_factory=list)
    """Paths that could not be read, with the reason."""


def scan(root: Path, mounted: Collection[str], skipped: Collection[str] = ()) -> Scan:
    """Return the content of a folder.

    Args:
        root: the folder, absolute.
        mounted: paths below it where something is mounted: a folder there is taken as an empty one, a file is left out.
        skipped: paths below it to leave out altogether.
    """
    found = Scan()
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
                if entry.kind is not EntryKind.DIRECTORY:
                    continue
            found.entries.append(entry)
            if entry.kind is EntryKind.DIRECTORY and path not in mounted:
                inside.append(path)
        folders.extend(reversed(inside))
    return found


def _entry(path: str, item: os.DirEntry[str], first_names: dict[tuple[int, int], Entry], found: Scan) -> Entry | None:
    """Return the entry of a name; None for a kind that trees do not contain."""
    status = item.stat(follow_symlinks=False)
    form = stat.S_IFMT(status.st_mode)
    if form not in KINDS:
        found.left_out.append(f"{path}: {UNKEPT.get(form, 'unknown kind')}")
        return None
    entry = entry_of(path, status, _target(item.path) if form == stat.S_IFLNK else "")
    if status.st_nlink > 1 and entry.kind is not EntryKind.DIRECTORY:
        first = first_names.setdefault((status.st_dev, status.st_ino), entry)
        if first is not entry:
            return entry._replace(kind=EntryKind.LINK, target=first.path, size=0, sparse=False)
    return entry


def _target(path: str) -> str:
    return os.readlink(path)  # noqa: PTH115 - pathlib would tidy it: `./a//b` must stay so


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
