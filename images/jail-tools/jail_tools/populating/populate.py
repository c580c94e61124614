"""One attempt at filling a tree. It can be killed at any moment: the next attempt continues."""

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jail_tools import layout
from jail_tools.copying import verification
from jail_tools.copying.copier import remove
from jail_tools.copying.parallel import default_processes
from jail_tools.copying.structure import extras, finish_folders, make_folders, make_root
from jail_tools.copying.volume import Limit, Volume, volume_of
from jail_tools.errors import TryAgainError, bounded, reason
from jail_tools.files import FOLDER, Walker, flush_folder, flush_volume, opened, split, write_atomically
from jail_tools.populating.additions import additions, make_additions, together
from jail_tools.populating.marker import begin, only_one, utc
from jail_tools.progress import log
from jail_tools.removal import remove_tree
from jail_tools.sources import root, tarball
from jail_tools.tree import manifest
from jail_tools.tree.entry import Entry, EntryKind

ACCOUNTS = ("passwd", "group", "shadow")


@dataclass(frozen=True)
class Request:
    """A tree, its source, and limits of the copy."""

    tree: layout.Tree
    source: str
    """Name of the source, for people and to recognize an attempt of the same source."""
    root: Path | None
    """Root filesystem to copy; None for a tarball."""
    url: str = ""
    sha256: str = ""
    """Checksum of the tarball at `url`."""
    limit_mib_per_second: float | None = None
    processes: int | None = None


def populate(request: Request) -> None:
    """Fill a tree, verify it and mark it complete; make it the active one if there is none.

    Raises:
        TryAgainError: something could not be read or written, or the copy is not as it should be; all of it is named.
        RefusedError: the tree holds something else.
    """
    tree = request.tree
    if tree.removing.exists():
        remove_tree(tree)  # the removal was cut short
    make_claim(tree)
    with only_one(tree):
        if tree.complete.exists() and tree.root.is_dir():
            activate(tree)
            log(f"populate: tree {tree.name} is complete already")
            return
        tree.complete.unlink(missing_ok=True)  # of a tree that is gone
        began = begin(tree, request.source)
        make_root(tree.root)
        numbers = fill(request, began)
        activate(tree)
        log(json.dumps(numbers))


def make_claim(tree: layout.Tree) -> None:
    """Make the claim's own folders, for root alone to write to."""
    for folder, mode in (
        (tree.jail, 0o755),
        (tree.jail / "trees", 0o755),
        (tree.jail / "meta", 0o700),
        (tree.meta, 0o700),
        (layout.jobs(tree.jail), 0o700),
    ):
        folder.mkdir(exist_ok=True)
        with opened(folder, FOLDER) as descriptor:
            os.fchown(descriptor, 0, 0)
            os.fchmod(descriptor, mode)
    if not layout.home(tree.jail).is_dir():
        layout.home(tree.jail).mkdir(mode=0o755)


def fill(request: Request, began_ns: int) -> dict[str, float]:
    """Copy, prepare, verify and mark complete; return the amount and the duration."""
    tree = request.tree
    started = time.monotonic()
    processes = request.processes or default_processes()
    limit = Limit(request.limit_mib_per_second)
    volume = volume_of(tree.root, tree.meta, limit, processes)
    began_ns = volume.kept_time(began_ns)
    if request.root is None:
        filled = tarball.fill(request.url, request.sha256, volume, began_ns)
    else:
        filled = root.fill(request.root, volume, own_path(request.root, tree.jail))
    for line in filled.left_out:
        log(f"populate: left out: {line}")
    for space, number in sorted(filled.unkept.items()):
        log(f"populate: the volume keeps no {space} attributes: {number:,} files are without them")
    entries = finish(tree, filled.entries, began_ns)
    flush_volume(tree.root)
    copied = time.monotonic()
    verify(tree, entries, volume)
    verified = time.monotonic()
    manifest.write(tree.manifest, entries)
    keep_as_populated(tree)
    flush_folder(tree.meta)
    files = [entry for entry in entries if entry.kind is not EntryKind.DIRECTORY]
    numbers: dict[str, float] = {
        "files": len(files),
        "bytes": sum(entry.size for entry in files),
        "seconds": round(time.monotonic() - started, 3),
        "copy_seconds": round(copied - started, 3),
        "verify_seconds": round(verified - copied, 3),
    }
    complete = {"tree": tree.name, "source": request.source, "populated": utc(time.time_ns())} | numbers
    write_atomically(tree.complete, [json.dumps(complete | {"not_kept": dict(filled.unkept)}).encode() + b"\n"])
    tree.in_progress.unlink()
    return numbers


def own_path(source: Path, jail: Path) -> set[str]:
    """Return the claim's own path below a source, which must not be copied into itself."""
    claim = jail.resolve()
    return {str(claim.relative_to(source))} if claim.is_relative_to(source) else set()


def finish(tree: layout.Tree, brought: Sequence[Entry], began_ns: int) -> list[Entry]:
    """Make the additions, remove leftovers of an earlier attempt, and finish the folders; return all entries."""
    walker = Walker(tree.root)
    added = additions(brought, began_ns)
    make_folders(walker, [entry for entry in added if entry.kind is EntryKind.DIRECTORY])
    make_additions(walker, added)
    entries = together(brought, added)
    for path in extras(walker, entries):
        log(f"populate: removed what an earlier attempt left: {path}")
        parent, name = split(path)
        remove(walker.open(parent), name)
    finish_folders(walker, [entry for entry in entries if entry.kind is EntryKind.DIRECTORY])
    walker.close()
    return entries


def verify(tree: layout.Tree, entries: Sequence[Entry], volume: Volume) -> None:
    """Compare the whole tree with its entries; remove what differs, so that the next attempt copies it again.

    Raises:
        TryAgainError: something differs; all of it is named.
    """
    wrong = verification.differences(tree.root, entries, volume.processes, volume.limit)
    if not wrong:
        return
    kinds = {entry.path: entry.kind for entry in entries}
    walker = Walker(tree.root)
    for path, _ in wrong:
        if kinds.get(path) is EntryKind.DIRECTORY:
            continue  # the next try makes it right, with all that is in it
        parent, name = split(path)
        try:
            remove(walker.open(parent), name)
        except FileNotFoundError:
            continue
    walker.close()
    headline = f"{len(wrong):,} differ from the source; they are removed, the next try copies them again:"
    raise TryAgainError(bounded(headline, [str(difference) for difference in wrong]))


def keep_as_populated(tree: layout.Tree) -> None:
    """Keep copies of the files that a later switch of trees needs for its merge."""
    tree.accounts.mkdir(mode=0o700, exist_ok=True)
    walker = Walker(tree.root)
    for path, copy in [(f"etc/{name}", tree.accounts / name) for name in ACCOUNTS] + [
        ("var/lib/dpkg/status", tree.dpkg_status)
    ]:
        folder, name = split(path)
        try:
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=walker.open(folder))
        except OSError as error:
            log(f"populate: no copy of {path} is kept: {reason(error)}")
            copy.unlink(missing_ok=True)
            continue
        with os.fdopen(file, "rb") as stream:
            write_atomically(copy, stream)
    walker.close()


def activate(tree: layout.Tree) -> None:
    """Make a complete tree the active one if there is none."""
    try:
        layout.active(tree.jail).symlink_to(f"trees/{tree.name}")
    except FileExistsError:
        return
    flush_folder(tree.jail)
    log(f"populate: tree {tree.name} is the active one")
