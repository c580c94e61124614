"""Probe of a claim, in a separate directory: once per claim, and again after a refusal.

A killed probe leaves that directory; the next one removes it.
"""

import errno
import fcntl
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from jail_tools.errors import RefusedError, TryAgainError, bounded, reason
from jail_tools.files import FOLDER, opened, write_atomically
from jail_tools.probing.catalogue import PROPERTIES, ROOM, VolumeProperty
from jail_tools.probing.findings import StorageFinding, StorageReport, read_report
from jail_tools.probing.mounted import claim_mount
from jail_tools.probing.seen import FULL, PASSING, FindingLevel, Seen, missing
from jail_tools.progress import log
from jail_tools.resolve_beneath import names

RECORD = Path("meta/storage.json")
"""Record of the findings, in the claim."""

_OWN = re.compile(r"\.storage-probe-[0-9a-f]{16}")
_WRITABLE = VolumeProperty(
    "writable",
    lambda _: Seen("yes"),
    FindingLevel.REFUSED,
    "root makes directories in the volume's root",
    "Nothing can be filled.",
    "Remove ro from the mount's options; export with rw and no_root_squash.",
    acceptable=False,
)


def require_storage(jail: Path, accepted: Mapping[str, str]) -> None:
    """Probe a claim that has no valid record, and report the findings.

    Args:
        jail: root of the claim.
        accepted: reasons, by property, for which a finding does not count.

    Raises:
        RefusedError: a jail cannot live there; all findings are named, and nothing was filled.
        TryAgainError: the volume's server did not answer as it should.
    """
    known = recorded(jail)
    if known is not None and not known.refused(accepted):
        log(f"storage: probed before, see {RECORD} in the claim")
        return
    log("storage: probing the claim, which takes seconds")
    report = probe(jail)
    for line in report.lines(accepted):
        log(f"storage: {line}")
    log(report.as_json(accepted))
    refused = report.refused(accepted)
    if refused:
        headline = "the claim's storage cannot hold a jail. Nothing was filled."
        hint = "Choose other storage, or accept a finding with a reason in jail.storage.accept (docs/storage.md)."
        raise RefusedError(bounded(f"{headline} {hint}", [finding.line(accepted) for finding in refused]))
    (jail / RECORD.parent).mkdir(mode=0o700, exist_ok=True)
    probed = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    write_atomically(jail / RECORD, [report.as_json(accepted, probed=probed).encode() + b"\n"])


def recorded(jail: Path) -> StorageReport | None:
    """Return the findings of an earlier probe; None if there is none, or if the claim was moved to another system."""
    try:
        found = read_report((jail / RECORD).read_text(errors="replace"))
    except OSError:
        return None
    return None if found is None or found.filesystem != claim_mount(jail.resolve()).filesystem else found


def probe(jail: Path) -> StorageReport:
    """Test all properties, and return the findings.

    Raises:
        TryAgainError: the volume's server did not answer as it should.
    """
    filesystem = claim_mount(jail.resolve()).filesystem
    try:
        remove_leftovers(jail)
        with _own_folder(jail) as folder:
            return StorageReport(filesystem, tuple(_findings(folder)))
    except OSError as error:
        _raise_if_passing(error)
        broken = ROOM if error.errno in FULL else _WRITABLE
        return StorageReport(filesystem, (_finding(broken, missing(reason(error))),))


def _findings(folder: Path) -> Iterator[StorageFinding]:
    """Yield a finding for every property, and stop after one that reports a full volume."""
    for volume_property in PROPERTIES:
        place = folder / volume_property.name
        place.mkdir()
        try:
            seen = volume_property.check(place)
        except OSError as error:
            if error.errno in FULL or error.errno == errno.EROFS:
                raise
            _raise_if_passing(error)
            seen = missing(reason(error))
        finding = _finding(volume_property, seen)
        yield finding
        if volume_property is ROOM and finding.level is FindingLevel.REFUSED:
            return


def _finding(wanted: VolumeProperty, seen: Seen) -> StorageFinding:
    level = wanted.level if seen.level is None else seen.level
    return StorageFinding(wanted.name, level, seen.found, wanted.needed, wanted.consequence, wanted.cure)


def _raise_if_passing(error: OSError) -> None:
    if error.errno in PASSING:
        raise TryAgainError(f"the storage's server does not answer as it should: {reason(error)}.") from error


@contextmanager
def _own_folder(jail: Path) -> Iterator[Path]:
    """Yield a new, locked directory of the claim, and remove it at the end."""
    folder = jail / f".storage-probe-{secrets.token_hex(8)}"
    folder.mkdir(mode=0o700)
    try:
        with opened(folder, FOLDER) as descriptor:
            _lock(descriptor)
            yield folder
    finally:
        _remove(folder)


def remove_leftovers(jail: Path) -> None:
    """Remove directories of killed probes. A running probe holds a lock, if the volume has locks."""
    for name in names(jail):
        if not _OWN.fullmatch(name):
            continue
        try:
            with opened(jail / name, FOLDER) as descriptor:
                free = _lock(descriptor)
        except OSError:  # gone meanwhile, or someone else's: no directory
            continue
        if free:
            _remove(jail / name)


def _lock(folder: int) -> bool:
    """Lock a directory; return False if another process holds the lock."""
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a volume without locks: the findings say so
    return True


def _remove(folder: Path) -> None:
    """Remove a directory of the probe without following a link (shutil.rmtree)."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        log(f"storage: {folder.name} could not be removed; it only holds files of the probe")
