"""A tree's folders and hard links, and leftovers of an earlier attempt in it."""

import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from jail_tools.copying.copier import remove
from jail_tools.files import FOLDER, Walker, split
from jail_tools.tree.attributes import path_of, write_attributes
from jail_tools.tree.entry import Entry, EntryKind

INHERITED = "system.posix_acl_default"
ACLS = (INHERITED, "system.posix_acl_access")


def make_root(root: Path) -> None:
    """Make a tree's root: root:root 0755, nothing inherited from the volume's own folder."""
    root.mkdir(mode=0o755, parents=True, exist_ok=True)
    descriptor = os.open(root, FOLDER)
    try:
        for name in set(os.listxattr(descriptor)).intersection(ACLS):
            os.removexattr(descriptor, name)
        os.fchown(descriptor, 0, 0)
        os.fchmod(descriptor, 0o755)
    finally:
        os.close(descriptor)


def make_folders(walker: Walker, folders: Iterable[Entry]) -> None:
    """Make folders, parents first, for root only until they are filled. Replace other files with their names."""
    for entry in folders:
        parent, name = split(entry.path)
        folder = walker.open(parent)
        try:
            os.mkdir(name, 0o700, dir_fd=folder)
        except FileExistsError:
            try:
                walker.open(entry.path)
            except NotADirectoryError:
                remove(folder, name)
                os.mkdir(name, 0o700, dir_fd=folder)
            else:
                _inherit_nothing(path_of(walker.open(parent), name))


def _inherit_nothing(folder: str) -> None:
    """Remove the default ACL that an earlier attempt gave to a folder, as new files in it would inherit it."""
    if INHERITED in os.listxattr(folder, follow_symlinks=False):
        os.removexattr(folder, INHERITED, follow_symlinks=False)


def make_links(tree: Path, links: Iterable[Entry]) -> None:
    """Make the hard links of files."""
    firsts, seconds = Walker(tree), Walker(tree)
    for entry in links:
        first_folder, first_name = split(entry.target)
        folder, name = split(entry.path)
        link_file(firsts.open(first_folder), first_name, seconds.open(folder), name)
    firsts.close()
    seconds.close()


def link_file(first_folder: int, first_name: str, folder: int, name: str) -> None:
    """Make a hard link to a file, unless it exists. Anything else of that name is removed."""
    try:
        os.link(first_name, name, src_dir_fd=first_folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        if not _same(first_folder, first_name, folder, name):
            remove(folder, name)
            os.link(first_name, name, src_dir_fd=first_folder, dst_dir_fd=folder, follow_symlinks=False)


def wrong_links(tree: Path, links: Iterable[Entry]) -> list[Entry]:
    """Return the LINKs that are not hard links to their targets."""
    firsts, seconds = Walker(tree), Walker(tree)
    wrong = []
    for entry in links:
        first_folder, first_name = split(entry.target)
        folder, name = split(entry.path)
        try:
            right = _same(firsts.open(first_folder), first_name, seconds.open(folder), name)
        except OSError:
            right = False  # a missing folder; the first name's own difference has the reason
        if not right:
            wrong.append(entry)
    firsts.close()
    seconds.close()
    return wrong


def _same(first_folder: int, first_name: str, folder: int, name: str) -> bool:
    first = os.stat(first_name, dir_fd=first_folder, follow_symlinks=False)
    return os.path.samestat(first, os.stat(name, dir_fd=folder, follow_symlinks=False))


def finish_folders(walker: Walker, folders: Iterable[Entry]) -> None:
    """Give folders their owners, modes, attributes and times, now that they are complete."""
    for entry in folders:
        parent, name = split(entry.path)
        write_attributes(walker.open(parent), name, entry)


def names_by_folder(entries: Iterable[Entry]) -> dict[str, set[str]]:
    """Return the names in every folder, the tree's root (`""`) included."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    found[""] = set()
    for entry in entries:
        folder, name = split(entry.path)
        found[folder].add(name)
        if entry.kind is EntryKind.DIRECTORY:
            found[entry.path].update()
    return dict(found)


def extras(walker: Walker, entries: Iterable[Entry]) -> list[str]:
    """Return the paths in a tree that are not among its entries, without the content of such folders."""
    found = []
    for folder, names in names_by_folder(entries).items():
        try:
            present = os.listdir(walker.open(folder))  # noqa: PTH208 - pathlib has no descriptors
        except OSError:
            continue  # a missing folder is a difference of its own
        found += [f"{folder}/{name}" if folder else name for name in present if name not in names]
    return sorted(found)
