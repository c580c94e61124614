"""Additions to a source's content: mount points, and programs of Slurm and of GPU drivers on the PATH."""

import os
from collections.abc import Iterable, Mapping

from jail_tools.copying.copier import NEW_FILE, create, make
from jail_tools.files import Walker, split
from jail_tools.layout import CLIENTS
from jail_tools.tree.attributes import write_attributes, write_file_attributes
from jail_tools.tree.entry import Entry, EntryKind

FOLDERS = {
    "dev": 0o755,
    "etc": 0o755,
    "home": 0o755,
    "opt": 0o755,
    "opt/slurm": 0o755,
    "proc": 0o555,
    "root": 0o700,
    "run": 0o755,
    "srv": 0o755,
    "sys": 0o555,
    "tmp": 0o1777,
    "usr": 0o755,
    "usr/local": 0o755,
    "usr/local/bin": 0o755,
    "usr/local/nvidia": 0o755,
    "var": 0o755,
    "var/lib": 0o755,
    "var/lib/extrausers": 0o755,
    "var/spool": 0o755,
    "var/spool/slurmd": 0o755,
}
"""Folders that the view of a job or the admin shell mounts on, or that the links below need."""
FILES = ("etc/hostname", "etc/hosts", "etc/resolv.conf")
"""Regular files that the node's own files are mounted over."""
DRIVER_FOLDERS = ("usr/local/bin", "usr/bin")
DRIVER_PROGRAMS = ("nvidia-smi", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server", "nvidia-debugdump")
"""Programs of a GPU driver that users run by name."""
LINKS = {
    **{f"usr/local/bin/{client}": f"/opt/slurm/bin/{client}" for client in CLIENTS},
    # The first in the PATH of a shell; the second if there is no PATH, as the C library looks in /bin and /usr/bin.
    **{f"{folder}/{name}": f"/usr/local/nvidia/bin/{name}" for folder in DRIVER_FOLDERS for name in DRIVER_PROGRAMS},
}
"""Links to programs that a view mounts. Without a GPU driver they lead nowhere, and a shell finds no program."""


def additions(entries: Iterable[Entry], mtime_ns: int) -> list[Entry]:
    """Return the entries to add to `entries`, parent folders first.

    Existing entries stay as they are, except a symbolic link that must become a regular file. Nothing is added below an
    entry that is not a folder: the view's builder follows such links itself when it mounts.
    """
    there = {entry.path: entry.kind for entry in entries}
    found: list[Entry] = []

    def add(entry: Entry, replaced: EntryKind | None = None) -> None:
        folder, _ = split(entry.path)
        free = entry.path not in there or there[entry.path] is replaced
        if free and (not folder or there.get(folder) is EntryKind.DIRECTORY):
            there[entry.path] = entry.kind
            found.append(entry)

    for path, mode in FOLDERS.items():
        add(Entry(path, EntryKind.DIRECTORY, mode, mtime_ns=mtime_ns))
    for path in FILES:
        add(Entry(path, EntryKind.FILE, 0o644, mtime_ns=mtime_ns, sha256=EMPTY_SHA256), replaced=EntryKind.SYMLINK)
    for path, target in LINKS.items():
        add(Entry(path, EntryKind.SYMLINK, 0o777, mtime_ns=mtime_ns, target=target))
    return found


EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
"""SHA-256 of nothing."""


def make_additions(walker: Walker, added: Iterable[Entry]) -> None:
    """Make empty files and symbolic links. Folders are ignored."""
    for entry in added:
        parent, _ = split(entry.path)
        if entry.kind is not EntryKind.DIRECTORY:
            _make_addition(walker.open(parent), entry)


def _make_addition(folder: int, entry: Entry) -> None:
    _, name = split(entry.path)
    if entry.kind is EntryKind.SYMLINK:
        if create(folder, name, entry, lambda: make(folder, name, entry)):
            write_attributes(folder, name, entry)
        return
    file = create(folder, name, entry, lambda: os.open(name, NEW_FILE, 0o600, dir_fd=folder))
    if file is not None:
        write_file_attributes(file, entry)
        os.close(file)


def together(entries: Iterable[Entry], added: Iterable[Entry]) -> list[Entry]:
    """Return entries and additions. An addition replaces an entry with its path."""
    whole: Mapping[str, Entry] = {entry.path: entry for entry in entries} | {entry.path: entry for entry in added}
    return list(whole.values())
