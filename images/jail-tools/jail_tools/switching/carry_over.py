"""Carries users' changes from one tree to another, in a three-way merge: what the other tree changed too is a conflict.

Added and modified files are carried over; removals are not. A package that the new tree has at the same or a newer
version is taken from there, with all its files.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from jail_tools import resolve_beneath
from jail_tools.files import split
from jail_tools.resolve_beneath import Owned
from jail_tools.switching import changes, dpkg
from jail_tools.switching.changes import How, PackageChange, PathChange, Report
from jail_tools.switching.dpkg import Package
from jail_tools.tree.attributes import path_of, read_xattrs, write_attributes, write_file_attributes
from jail_tools.tree.compare import FILE
from jail_tools.tree.content import copy
from jail_tools.tree.entry import Entry, EntryKind, entry_of


@dataclass(frozen=True)
class CarryPlan:
    """Files to write into the new tree, and the conflicts that prevent it."""

    files: tuple[PathChange, ...]
    """Files, parents before their content."""
    lists: Mapping[str, Owned]
    """dpkg's own files with the packages that are carried over, by path."""
    reasons: tuple[str, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths that are written."""
        return (*(change.path for change in self.files), *self.lists)


def missing(report: Report, old: int, new: int) -> Report:
    """Return the part of a report that the new tree lacks."""
    there = dpkg.installed(_status(new))
    left = tuple(change for change in report.packages if not _has_package(change, there))
    files = tuple(change for change in report.changes if not _has(change, old, new))
    return replace(report, changes=files, packages=left)


def plan(report: Report, old: int, new: int) -> CarryPlan:
    """Plan what to carry over; write nothing."""
    reasons: list[str] = []
    reasons += (
        f"package {package.name} {package.version} is {package.state} in the old tree: "
        "`dpkg --configure --pending`, or remove it"
        for package in dpkg.broken(_status(old))
    )
    newer, lists = _merge_packages(report, old, new, reasons)
    wanted: dict[str, PathChange] = {}
    for change in sorted(report.changes, key=lambda change: change.path):
        if change.how is How.REMOVED or report.owners.get(change.path) in newer:
            continue
        reason = _in_the_way(change, new)
        if reason:
            reasons.append(reason)
        elif _wanted(change, new):
            for parent in resolve_beneath.parents(change.path):
                if parent not in wanted and resolve_beneath.lookup(new, parent) is None:
                    wanted[parent] = PathChange(How.ADDED, _entry(old, parent))
            wanted[change.path] = change
    return CarryPlan(tuple(wanted.values()), lists, tuple(reasons))


def carry(plan: CarryPlan, old: int, new: int, count: Callable[[int], None]) -> None:
    """Write a plan into the new tree: files first, then the list of packages. `count` gets the number of files.

    Raises:
        OSError: something can't be read or written; what was written stays, for the caller to undo.
    """
    for change in plan.files:
        _carry_one(change.entry, old, new)
        count(1)
    for path, file in plan.lists.items():
        resolve_beneath.replace(new, path, file)


def _has_package(change: PackageChange, there: Mapping[str, Package]) -> bool:
    """Return True if the new tree has a package as users have it in the old one."""
    if change.now is None:
        return change.was is None or change.was.key not in there
    return change.now.key in there and there[change.now.key].version == change.now.version


def _has(change: PathChange, old: int, new: int) -> bool:
    """Return True if the new tree already has the users' changes to the old tree."""
    there = resolve_beneath.lookup(new, change.path)
    if change.how is How.REMOVED or there is None:
        return change.how is How.REMOVED and there is None
    parent, name = split(change.path)
    entry = change.entry
    try:
        with resolve_beneath.directory(old, parent) as ours, resolve_beneath.directory(new, parent) as theirs:
            if entry.kind is EntryKind.FILE:
                entry = entry._replace(sha256=changes.checksum(ours, name, entry), mtime_ns=there.st_mtime_ns + 1)
            return changes.same(entry, theirs, name)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _in_the_way(change: PathChange, new: int) -> str | None:
    """Return why a change cannot be carried over."""
    path = change.path
    if change.entry.kind is EntryKind.FIFO:
        return f"/{path}: is a FIFO, which is not carried over: remove it"
    for parent in resolve_beneath.parents(path):
        there = resolve_beneath.lookup(new, parent)
        if there is not None and not _is_directory(there):
            return f"/{path}: /{parent} is not a directory in the new tree"
    there = resolve_beneath.lookup(new, path)
    if there is None:
        return None
    if _is_directory(there):
        return None if change.entry.kind is EntryKind.DIRECTORY else f"/{path}: is a directory in the new tree"
    if _as_populated(change, new):
        return None
    return f"/{path}: users {change.how.value.replace('modified', 'changed')} it, and the new tree has another one"


def _wanted(change: PathChange, new: int) -> bool:
    """Return True if a change must be carried over. An existing directory keeps its mode and owner."""
    is_directory = change.entry.kind is EntryKind.DIRECTORY
    return not is_directory or resolve_beneath.lookup(new, change.path) is None or _as_populated(change, new)


def _as_populated(change: PathChange, new: int) -> bool:
    """Return True if the new tree has what the old one was populated with."""
    if change.was is None:
        return False
    parent, name = split(change.path)
    with resolve_beneath.directory(new, parent) as at:
        return changes.same(change.was, at, name)


def _merge_packages(report: Report, old: int, new: int, reasons: list[str]) -> tuple[set[str], dict[str, Owned]]:
    """Return the packages that the new tree has in no older version, and dpkg's files with the others added."""
    newer: set[str] = set()
    carried: dict[str, Package] = {}
    file = resolve_beneath.read(new, dpkg.STATUS)
    known = dpkg.parse(file.content) if file else {}
    there = dpkg.installed(known)
    for change in report.packages:
        if change.now is None:
            continue
        key, version = change.now.key, change.now.version
        if key in there and dpkg.compare_versions(there[key].version, version) >= 0:
            newer.add(key)
        elif key in there and (change.was is None or change.was.version != there[key].version):
            reasons.append(
                f"package {change.now.name}: users have {version}, the new tree has the older {there[key].version}"
            )
        else:
            carried[key] = change.now
    if carried and file is None:
        names = ", ".join(sorted(package.name for package in carried.values()))
        reasons.append(f"the new tree has no dpkg: {names} can't be carried over")
    merged = {**known, **carried}
    for package in carried.values():
        unmet = dpkg.unmet(package, dpkg.installed(merged).values())
        if unmet and file is not None:
            reasons.append(f"package {package.name} {package.version} needs {', '.join(unmet)}, not in the new tree")
    if not carried or file is None:
        return newer, {}
    lists = {dpkg.STATUS: replace(file, content=dpkg.format_status(merged.values()))}
    ours, theirs = resolve_beneath.read(old, dpkg.TRIGGERS), resolve_beneath.read(new, dpkg.TRIGGERS)
    if ours is not None and theirs is not None:
        triggers = dpkg.merge_triggers(ours.content, theirs.content, carried.values())
        lists[dpkg.TRIGGERS] = replace(theirs, content=triggers)
    return newer, lists


def _carry_one(entry: Entry, old: int, new: int) -> None:
    parent, name = split(entry.path)
    with resolve_beneath.directory(old, parent) as source, resolve_beneath.directory(new, parent) as target:
        if entry.kind is EntryKind.DIRECTORY:
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=target)
            write_attributes(target, name, entry._replace(xattrs=read_xattrs(path_of(source, name))))
            return
        with resolve_beneath.new_name(target, name) as made:
            if entry.kind is EntryKind.SYMLINK:
                os.symlink(entry.target, made, dir_fd=target)
                write_attributes(target, made, entry)
            else:
                _copy_file(source, name, target, made)
            os.rename(made, name, src_dir_fd=target, dst_dir_fd=target)


def _copy_file(source: int, name: str, target: int, made: str) -> None:
    """Copy a file in its current state, which may be newer than the compared one."""
    read = os.open(name, FILE, dir_fd=source)
    try:
        entry = entry_of(name, os.fstat(read))._replace(xattrs=read_xattrs(read))
        write = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=target)
        try:
            copy(read, write, entry.size, sparse=entry.sparse, pace=lambda _: None)
            write_file_attributes(write, entry)
            os.fsync(write)
        finally:
            os.close(write)
    finally:
        os.close(read)


def _entry(root: int, path: str) -> Entry:
    parent, name = split(path)
    with resolve_beneath.directory(root, parent) as at:
        return entry_of(path, os.stat(name, dir_fd=at, follow_symlinks=False))


def _is_directory(status: os.stat_result) -> bool:
    return status.st_mode & 0o170000 == 0o040000


def _status(root: int) -> dict[str, Package]:
    file = resolve_beneath.read(root, dpkg.STATUS)
    return dpkg.parse(file.content) if file else {}
