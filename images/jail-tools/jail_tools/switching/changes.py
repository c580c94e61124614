"""Changes that users made in a tree since it was populated.

Compared with the manifest are kind, mode, owner, size, time and target, and the content of files whose time has
changed. Extended attributes, times of directories, and the paths in `LEFT_OUT` are not compared.
"""

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from jail_tools import resolve_beneath
from jail_tools.layout import Tree
from jail_tools.switching import dpkg
from jail_tools.switching.dpkg import Package
from jail_tools.tree import content, manifest
from jail_tools.tree.compare import FILE, unlike
from jail_tools.tree.entry import KINDS, Entry, EntryKind, entry_of

LEFT_OUT = frozenset(
    {
        # mounted over in every job and session, or made again by every program that needs it
        "dev", "home", "opt/slurm", "proc", "run", "sys", "tmp", "var/lib/extrausers", "var/spool", "var/tmp",
        "etc/hostname", "etc/hosts", "etc/mtab", "etc/profile.d/soperator.sh", "etc/resolv.conf",
        # caches and logs
        "etc/ld.so.cache", "root/.cache", "usr/share/info/dir", "usr/share/mime", "var/cache", "var/lib/apt/lists",
        "var/lib/dpkg/lock", "var/lib/dpkg/lock-frontend", "var/lib/dpkg/triggers/Lock", "var/lib/dpkg/available",
        "var/lib/dpkg/status-old", "var/lib/systemd", "var/log",
        # histories of root's programs
        "root/.bash_history", "root/.lesshst", "root/.python_history", "root/.viminfo", "root/.wget-hsts",
        # accounts and packages, which are merged record by record
        "etc/.pwd.lock", "etc/group", "etc/group-", "etc/gshadow", "etc/gshadow-", "etc/passwd", "etc/passwd-",
        "etc/shadow", "etc/shadow-", "etc/subgid", "etc/subgid-", "etc/subuid", "etc/subuid-",
        "var/lib/apt/extended_states", "var/lib/dpkg/diversions-old", "var/lib/dpkg/statoverride-old",
        "var/lib/dpkg/triggers/Unincorp", dpkg.STATUS, dpkg.TRIGGERS,
    }
)  # fmt: skip
"""Paths that are not compared, with all below them. Listed in docs/jail.md."""
LEFT_OUT_NAMES = frozenset({"__pycache__"})
"""Names that are not compared wherever they are."""

_LISTED_DIRECTORIES = 40
_NAMED_FILES = 5


class How(Enum):
    """Kind of a change to a path."""

    ADDED = "added"
    MODIFIED = "modified"
    REMOVED = "removed"


@dataclass(frozen=True)
class PathChange:
    """A path that differs from the populated tree, as it is now or, if it was removed, as it was."""

    how: How
    entry: Entry
    was: Entry | None = None
    """The path as populated; None if it did not exist."""

    @property
    def path(self) -> str:
        """Path relative to the tree's root."""
        return self.entry.path


@dataclass(frozen=True)
class PackageChange:
    """A changed Debian package. None: not installed."""

    was: Package | None
    now: Package | None

    def __str__(self) -> str:
        if self.now is None:
            return f"-{self.was.name} {self.was.version}" if self.was else ""
        if self.was is None:
            return f"+{self.now.name} {self.now.version}"
        return f"{self.now.name} {self.was.version} -> {self.now.version}"


@dataclass(frozen=True)
class Report:
    """Everything that users changed."""

    changes: tuple[PathChange, ...]
    packages: tuple[PackageChange, ...]
    owners: Mapping[str, str]
    """Paths of packages that users installed or upgraded, with the package's key."""


def find(tree: Tree, root: int, count: Callable[[int], None]) -> Report:
    """Compare a tree with its manifest.

    Args:
        tree: the tree, which must be complete.
        root: a descriptor of its root.
        count: called with a number of further paths that were looked at.

    Raises:
        OSError: something of the tree can't be read.
        ValueError: the manifest is damaged.
    """
    populated = {entry.path: entry for entry in manifest.read(tree.manifest)}
    found, seen = [], set()
    for where, directories, names, folder in os.fwalk(".", dir_fd=root):
        prefix = where.removeprefix(".").removeprefix("/")
        base = f"{prefix}/" if prefix else ""
        directories[:] = sorted(name for name in directories if not is_left_out(base + name))
        count(len(directories) + len(names))
        for name in (*directories, *sorted(names)):
            path = base + name
            if is_left_out(path):
                continue
            seen.add(path)
            change = _change(path, folder, name, populated)
            if change is not None:
                found.append(change)
    removed = (entry for path, entry in populated.items() if path not in seen and not is_left_out(path))
    changed = tuple(_package_changes(tree, root))
    kept = _without_mount_points(found)
    return Report(
        (*kept, *(PathChange(How.REMOVED, entry, entry) for entry in removed)), changed, _owners(root, changed)
    )


def is_left_out(path: str) -> bool:
    """Return True if a path, or a directory above it, is not compared."""
    parts = path.split("/")
    if not LEFT_OUT_NAMES.isdisjoint(parts) or resolve_beneath.is_new_name(parts[-1]):
        return True
    return any("/".join(parts[:length]) in LEFT_OUT for length in range(1, len(parts) + 1))


def same(entry: Entry, folder: int, name: str) -> bool:
    """Return True if a name in a directory matches its entry. A different time alone does not count."""
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    kind = entry.kind
    if kind is EntryKind.DIRECTORY or kind is EntryKind.SYMLINK:
        entry = entry._replace(mtime_ns=status.st_mtime_ns)
    if kind is EntryKind.SYMLINK:
        return not unlike(entry, status) and os.readlink(name, dir_fd=folder) == entry.target
    if not unlike(entry, status):
        return True
    if kind is not EntryKind.FILE or unlike(entry._replace(mtime_ns=status.st_mtime_ns), status):
        return False
    return checksum(folder, name, entry) == entry.sha256


def checksum(folder: int, name: str, entry: Entry) -> str:
    """Return a file's checksum as a manifest has it."""
    file = os.open(name, FILE, dir_fd=folder)
    try:
        return content.digest(file, entry.size, sparse=entry.sparse)
    finally:
        os.close(file)


def describe(report: Report) -> list[str]:
    """Return a report's lines: packages, then files by directory; none if nothing was changed."""
    lines = [f"package {change}" for change in report.packages]
    directories: dict[str, list[PathChange]] = {}
    for change in report.changes:
        if change.path not in report.owners:
            directories.setdefault(_directory_of(change.path), []).append(change)
    lines += [_line(directory, directories[directory]) for directory in sorted(directories)[:_LISTED_DIRECTORIES]]
    if len(directories) > _LISTED_DIRECTORIES:
        lines.append(f"files in {len(directories) - _LISTED_DIRECTORIES:,} more directories")
    return lines


def _line(directory: str, found: list[PathChange]) -> str:
    """Return the numbers of added, modified and removed files, and the paths of the first ones."""
    counts = Counter(change.how for change in found)
    numbers = ", ".join(f"{counts[how]:,} {how.value}" for how in How if counts[how])
    named = sorted(change.path.removeprefix(directory.lstrip("/")).lstrip("/") for change in found)
    more = ", ..." if len(named) > _NAMED_FILES else ""
    return f"files in {directory}: {numbers} ({', '.join(named[:_NAMED_FILES])}{more})"


def _change(path: str, folder: int, name: str, populated: Mapping[str, Entry]) -> PathChange | None:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        form = stat.S_IFMT(status.st_mode)
        if form not in KINDS:
            return None
        target = os.readlink(name, dir_fd=folder) if form == stat.S_IFLNK else ""
        entry = entry_of(path, status, target)
        was = populated.get(path)
        if was is None:
            return PathChange(How.ADDED, entry)
        first = populated.get(was.target, was) if was.kind is EntryKind.LINK else was
        return None if same(first, folder, name) else PathChange(How.MODIFIED, entry, first)
    except FileNotFoundError:
        return None  # went between listing and looking: it counts as removed when it was populated


def _without_mount_points(found: list[PathChange]) -> list[PathChange]:
    """Leave out the empty directories that the view of a job or session makes as mount points."""
    kept = {change.path for change in found if not _like_a_mount_point(change)}
    kept |= {parent for path in kept for parent in resolve_beneath.parents(path)}
    return [change for change in found if change.path in kept]


def _like_a_mount_point(change: PathChange) -> bool:
    entry = change.entry
    made = (entry.kind, entry.mode, entry.uid, entry.gid)
    return change.how is How.ADDED and made == (EntryKind.DIRECTORY, 0o755, 0, 0)


def _package_changes(tree: Tree, root: int) -> Iterable[PackageChange]:
    status = resolve_beneath.read(root, dpkg.STATUS)
    if status is None or not tree.dpkg_status.exists():
        return
    was = dpkg.installed(dpkg.parse(tree.dpkg_status.read_bytes()))
    now = dpkg.installed(dpkg.parse(status.content))
    for key in sorted(was.keys() | now.keys()):
        before, after = was.get(key), now.get(key)
        if before is None or after is None or before.version != after.version:
            yield PackageChange(before, after)


def _owners(root: int, changed: Iterable[PackageChange]) -> dict[str, str]:
    """Return the paths of packages, dpkg's own data about them included."""
    brought = [package for change in changed if (package := change.now or change.was) is not None]
    merged = _merged_directories(root)
    found: dict[str, str] = {}
    for package in brought:
        for path in package.lists:
            listed = resolve_beneath.read(root, path)
            for line in listed.content.decode("utf-8", "surrogateescape").splitlines() if listed else ():
                top, slash, rest = line.lstrip("/").partition("/")
                found[merged.get(top, top) + slash + rest] = package.key
    stems = {stem: package.key for package in brought for stem in (package.name, package.key)}
    with resolve_beneath.maybe_directory(root, dpkg.INFO) as info:
        for name in resolve_beneath.names(info) if info is not None else ():
            stem = name.rpartition(".")[0]
            if stem in stems:
                found[f"{dpkg.INFO}/{name}"] = stems[stem]
    return found


def _merged_directories(root: int) -> dict[str, str]:
    """Return the top directories, such as /bin, that are links into /usr, as dpkg lists files by the old paths."""
    found = {}
    for name in resolve_beneath.names(root):
        if stat.S_ISLNK(os.stat(name, dir_fd=root, follow_symlinks=False).st_mode):
            target = os.readlink(name, dir_fd=root).lstrip("/")
            if target == f"usr/{name}":
                found[name] = target
    return found


def _directory_of(path: str) -> str:
    """Return the first three components of a path's directory: enough to recognize it, and short enough to read."""
    return "/" + "/".join(path.split("/")[:-1][:3])
