"""Fills a tree from a root filesystem: this container's own, that is, the image that it runs."""

import os
from pathlib import Path

from jail_tools.copying import parallel
from jail_tools.copying.copier import Copier
from jail_tools.copying.structure import make_folders, make_links
from jail_tools.copying.volume import Volume
from jail_tools.errors import TryAgainError, bounded
from jail_tools.files import Walker
from jail_tools.layout import TOOLS
from jail_tools.progress import MIB, Progress
from jail_tools.sources.filled import Filled
from jail_tools.sources.scan import mount_points, scan
from jail_tools.tree.attributes import Xattrs, read_xattrs
from jail_tools.tree.entry import Entry, Kind

MOUNTS = Path("/proc/self/mountinfo")


def fill(root: Path, volume: Volume, skipped: set[str]) -> Filled:
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
    folders = [entry for entry in found.entries if entry.kind is Kind.DIRECTORY]
    links = [entry for entry in found.entries if entry.kind is Kind.LINK]
    others = [entry for entry in found.entries if entry.kind not in {Kind.DIRECTORY, Kind.LINK}]
    _require_room(volume.tree, len(found.entries), sum(entry.size for entry in others if not entry.sparse))
    progress = Progress("populate", len(others), sum(entry.size for entry in others))
    walker = Walker(volume.tree)
    make_folders(walker, folders)
    walker.close()
    copier = Copier(root, volume, others, progress)
    problems: list[str] = []
    filled = Filled(left_out=found.left_out)

    def attributed(entry: Entry, xattrs: Xattrs, sha256: str = "") -> Entry:
        return entry._replace(xattrs=filled.kept(xattrs, volume), sha256=sha256)

    for _, outcome in parallel.run(copier, parallel.batches(others), volume.processes, progress.tell):
        problems += outcome.problems
        for position, sha256, xattrs in outcome.copied:
            others[position] = attributed(others[position], xattrs, sha256)
        if outcome.stopped:
            break
    progress.tell(now=True)
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
                f"{number:,} of {root} could not be copied. What is whole stays; the next try goes on. Not copied:",
                sorted(problems),
            )
        )


def _require_room(tree: Path, entries: int, size: int) -> None:
    """Raise if a volume has less room than an empty tree needs. It is not known what an earlier attempt brought."""
    if next(tree.iterdir(), None) is not None:
        return
    volume = os.statvfs(tree)
    free = volume.f_bavail * volume.f_frsize
    if size > free:
        raise TryAgainError(
            f"the volume has {free // MIB:,} MiB free, the source has {-(-size // MIB):,} MiB. Enlarge it."
        )
    if volume.f_files and entries > volume.f_ffree:  # file systems without a fixed number of inodes say 0
        raise TryAgainError(f"the volume has {volume.f_ffree:,} inodes free, the source needs {entries:,}. Enlarge it.")
