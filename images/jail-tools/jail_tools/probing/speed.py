"""Free space and speed: every test gives a verdict within two seconds."""

import os
import time
from pathlib import Path
from statistics import median

from jail_tools.files import opened
from jail_tools.probing.seen import FindingLevel, Seen, missing
from jail_tools.progress import MIB

LEAST_MIB = 16
LEAST_FILES = 1000
"""Free MiB and files below which nothing can be filled."""
ROOM_MIB = 2048
ROOM_FILES = 100_000
"""Free MiB and files for two trees with compilers and Python, such as the default jail."""

SLOW_FLUSH_MS = 10.0
"""Median of a flush above which a volume is slow. dpkg flushes every file that it unpacks (dpkg(1), unsafe-io): 1,000
files of a package then take 10 seconds."""
SLOW_FILES_PER_SECOND = 200
"""Rate below which a volume is slow: a root filesystem of 60,000 files takes 5 minutes."""

_FLUSHES = 100
_FILES = 200
_SECONDS = 2.0
_FEWEST = 5
_BLOCK = b"\xa5" * 4096


def room(place: Path) -> Seen:
    """Return the free space and the number of files that fit."""
    free = os.statvfs(place)
    if not free.f_blocks:
        return Seen("not reported by the file system")
    mib, files = free.f_bavail * free.f_frsize // MIB, free.f_favail
    found = f"{mib:,} MiB" + (f", {files:,} files" if free.f_files else "")  # btrfs and others count no files
    if mib < LEAST_MIB or (free.f_files and files < LEAST_FILES):
        return missing(found)
    tight = mib < ROOM_MIB or (free.f_files and files < ROOM_FILES)
    return Seen(found, FindingLevel.WARNING if tight else FindingLevel.OK)


def flushes(place: Path) -> Seen:
    """Write 4 KiB and flush, again and again, as databases and package managers do."""
    taken: list[float] = []
    began = time.monotonic()
    with opened(place / "file", os.O_WRONLY | os.O_CREAT) as file:
        while len(taken) < _FEWEST or (len(taken) < _FLUSHES and time.monotonic() - began < _SECONDS):
            before = time.monotonic()
            os.pwrite(file, _BLOCK, len(taken) * len(_BLOCK))
            os.fsync(file)
            taken.append((time.monotonic() - before) * 1000)
    worst = sorted(taken)[min(len(taken) - 1, len(taken) * 99 // 100)]
    found = f"median {median(taken):.1f} ms, 99th percentile {worst:.1f} ms, of {len(taken)}"
    return missing(found) if median(taken) > SLOW_FLUSH_MS else Seen(found)


def new_files(place: Path) -> Seen:
    """Make files of 4 KiB."""
    made, began = 0, time.monotonic()
    while made < _FEWEST or (made < _FILES and time.monotonic() - began < _SECONDS):
        (place / str(made)).write_bytes(_BLOCK)
        made += 1
    rate = made / max(time.monotonic() - began, 1e-6)
    found = f"{rate:,.0f} files a second"
    return missing(found) if rate < SLOW_FILES_PER_SECOND else Seen(found)
