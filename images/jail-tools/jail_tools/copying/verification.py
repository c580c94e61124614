"""Verification of a tree: read all of it back and compare it with a manifest's entries."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from jail_tools.copying import parallel
from jail_tools.copying.structure import extras, wrong_links
from jail_tools.copying.volume import Limit
from jail_tools.errors import reason
from jail_tools.files import Walker, split
from jail_tools.progress import Progress
from jail_tools.tree.compare import difference
from jail_tools.tree.entry import Entry, EntryKind

READERS = 2
"""Reading processes per CPU."""


class Difference(NamedTuple):
    """A path in a tree that differs from its entry."""

    path: str
    how: str
    """The difference, as the end of a sentence: `is missing`."""

    def __str__(self) -> str:
        return f"{self.path}: {self.how}"


class Verifier:
    """Compares entries with a tree, contents included."""

    def __init__(self, tree: Path, entries: Sequence[Entry], limit: Limit, progress: Progress) -> None:
        """Set the entries to compare, without LINKs."""
        self._tree = tree
        self._entries = entries
        self._progress = progress
        self._limit = limit

    def begin(self) -> None:
        """Open the tree."""
        self._walker = Walker(self._tree)

    def work(self, batch: range) -> list[Difference]:
        """Return the differences of the entries at some positions."""
        found = []
        size = files = 0
        for position in batch:
            entry = self._entries[position]
            parent, name = split(entry.path)
            try:
                folder = self._walker.open(parent)
            except OSError as error:
                found.append(Difference(entry.path, f"cannot be reached: {reason(error)}"))
                continue
            self._limit.pace(entry.size)
            how = difference(folder, name, entry)
            if how:
                found.append(Difference(entry.path, how))
            size += entry.size
            files += entry.kind is not EntryKind.DIRECTORY
        self._progress.add_files(files)
        self._progress.add_bytes(size)
        return found


def differences(tree: Path, entries: Sequence[Entry], processes: int, limit: Limit | None = None) -> list[Difference]:
    """Return everything in a tree that differs from the entries, paths that are not among them included, in order.

    Args:
        tree: the tree's root.
        entries: entries that should be there.
        processes: number that could compute at the same time; more than that read, as they wait for the disk mostly.
        limit: limit on the rate of reading; None is none.
    """
    progress = progress_of("verify", entries)
    compared = [entry for entry in entries if entry.kind is not EntryKind.LINK]
    found: list[Difference] = []
    worker = Verifier(tree, compared, limit or Limit(None), progress)
    for _, some in parallel.run(worker, parallel.batches(compared), READERS * processes, progress.report):
        found += some
    walker = Walker(tree)
    found += [Difference(path, "is not in the manifest") for path in extras(walker, entries)]
    walker.close()
    links = [entry for entry in entries if entry.kind is EntryKind.LINK]
    found += [Difference(entry.path, f"is not the same file as {entry.target}") for entry in wrong_links(tree, links)]
    progress.report(now=True)
    return sorted(found)


def progress_of(title: str, entries: Sequence[Entry]) -> Progress:
    """Return a progress that counts all files and bytes of some entries."""
    files = [entry for entry in entries if entry.kind not in {EntryKind.DIRECTORY, EntryKind.LINK}]
    return Progress(title, len(files), sum(entry.size for entry in files))
