"""The node's report of its containers, for the metrics exporter and `soperator containers list`.

`report-containers` runs as root next to slurmd, as long as that runs. It adds up the starts that the plugin has counted
(`spank-plugin/image_count.h`), measures the copies on the node's disk, and removes those of users who are gone or start
nothing more. Jobs can't change a report: they have its folder read-only.
"""

import json
import os
import pwd
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from container_images.bounded_removal import remove_entries
from container_images.copies_on_disk import DISK, remove_unused
from container_images.store_sizes import names_in, opened, sizes_below

COUNTS = Path("/run/slurm/container-starts")
"""File with the starts, a line for every one."""

REPORTS = Path("/jail/container-images/nodes")
"""Folder of the reports of all nodes, on the jail's volume (`soperator_pulumi/render/layout.py`)."""

JAIL_PASSWD = Path("/jail/active/etc/passwd")
"""Users of the active tree."""

RESULTS = ("present", "brought", "failed")

_ROUND_SECONDS = 30
_IDLE_SECONDS = 600
"""Time between two looks at the copies, and between two reports, on a node that starts nothing."""

_GONE_SECONDS = 3600
"""Time for which a user must be unknown before copies go: a file of users that is replaced removes none."""


class NodeReport:
    """Report of a node.

    Args:
        node: Name of the node.
        counts: File with the starts.
        disk: The node's disk for copies, which may be missing.
        reports: Folder of the reports.
        say: Tells the admin of a failure, and of removed copies.
        is_known: Returns True if there is a user of this number.
        has_processes: Returns True if a process of this user's number runs on the node.
        unused_seconds: Returns the age of the last start at which a copy goes; None: it stays.

    """

    def __init__(
        self,
        node: str,
        *,
        counts: Path = COUNTS,
        disk: Path = DISK,
        reports: Path = REPORTS,
        say: Callable[[str], None],
        is_known: Callable[[int], bool],
        has_processes: Callable[[int], bool],
        unused_seconds: Callable[[], float | None],
    ) -> None:
        self._file = reports / f"{node}.json"
        self._counts, self._disk, self._say = counts, disk, say
        self._is_known, self._has_processes = is_known, has_processes
        self._unused_seconds = unused_seconds
        self._starts = Counter[str]()
        self._brought_bytes, self._brought_milliseconds = 0, 0
        self._copies: dict[str, int] | None = None
        self._unknown_since: dict[int, float] = {}
        self._looked_at, self._written_at = float("-inf"), float("-inf")
        self._written: dict[str, Any] = {}
        self._problem = ""

    def round(self, now: float) -> None:
        """Count, measure and report once. A failure is told when it begins, and the next round tries again.

        Args:
            now: Seconds, which only grow.

        """
        try:
            has_started = self._take_starts()
            if has_started or now >= self._looked_at + _IDLE_SECONDS:
                self._looked_at = now
                self._look_at_copies(now)
            self._write(now)
            problem = ""
        except OSError as error:
            problem = f"{error.filename or self._file}: {error.strerror}. Metrics of this node's containers are old."
        if problem and problem != self._problem:
            self._say(problem)
        self._problem = problem

    def _take_starts(self) -> bool:
        """Add up the starts of the round before this one, and return True if there were any."""
        # A start that has just opened the file may still write into it: it is read a round after it was moved away.
        taken = self._counts.with_suffix(".taken")
        lines = []
        with suppress(FileNotFoundError):
            lines = taken.read_text().splitlines()
            taken.unlink()
        for line in lines:
            self._add(line)
        with suppress(FileNotFoundError):
            self._counts.rename(taken)
        return bool(lines)

    def _add(self, line: str) -> None:
        result, _, numbers = line.partition(" ")
        size, _, milliseconds = numbers.partition(" ")
        if result in RESULTS and size.isdecimal() and milliseconds.isdecimal():
            self._starts[result] += 1
            if result == "brought":
                self._brought_bytes += int(size)
                self._brought_milliseconds += int(milliseconds)

    def _look_at_copies(self, now: float) -> None:
        if not self._disk.is_dir():
            return
        sizes, unused_seconds = [], self._unused_seconds()
        for user in self._users():
            if self._is_gone(user, now):
                self._remove(user, now)
            elif removed := remove_unused(self._disk, user, time.time(), unused_seconds):
                self._say(f"removed {removed} copies of container images of the user {user}: not started for too long")
            sizes += sizes_below(self._disk, Path(str(user), "images"))
        # Files with sizes are their users', who may have written anything there.
        disk = os.statvfs(self._disk)
        used = (disk.f_blocks - disk.f_bfree) * disk.f_frsize
        self._copies = {"images": len(sizes), "bytes": min(sum(size or 0 for size in sizes), used)}

    def _users(self) -> Iterator[int]:
        """Yield the users with a folder of copies, which belongs to them."""
        for name in names_in(self._disk):
            if name.isdecimal() and name == str(int(name)):
                with suppress(FileNotFoundError):
                    if (self._disk / name).lstat().st_uid == int(name):
                        yield int(name)

    def _is_gone(self, user: int, now: float) -> bool:
        if self._is_known(user):
            self._unknown_since.pop(user, None)
            return False
        since = self._unknown_since.setdefault(user, now)
        return now >= since + _GONE_SECONDS and not self._has_processes(user)

    def _remove(self, user: int, now: float) -> None:
        folder = self._disk / str(user)
        try:
            with opened(self._disk, Path(str(user))) as descriptor:
                is_done = remove_entries(descriptor)
            if is_done:  # otherwise, the next look goes on
                folder.rmdir()
                self._say(f"removed the copies of container images of the user {user}, who is gone")
        except OSError as error:
            self._unknown_since[user] = now
            self._say(f"{folder}, of a user who is gone, stays for another hour: {error}. Remove it on the machine.")

    def _write(self, now: float) -> None:
        report = {
            "starts": {result: self._starts[result] for result in RESULTS},
            "brought_bytes": self._brought_bytes,
            "brought_seconds": self._brought_milliseconds / 1000,
            "copies": self._copies,
        }
        if report == self._written and now < self._written_at + _IDLE_SECONDS:
            return
        self._file.parent.mkdir(exist_ok=True)
        self._file.parent.chmod(0o755)
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(report))
        new.chmod(0o644)
        new.replace(self._file)
        self._written, self._written_at = report, now


def is_known(user: int, jail_passwd: Path = JAIL_PASSWD) -> bool:
    """Return True if the node or the jail has a user of this number, or if the jail's users cannot be read.

    Users whom an admin has added inside the jail run jobs on all nodes, which do not know them.
    """
    try:
        pwd.getpwuid(user)
    except KeyError:
        try:
            lines = jail_passwd.read_text(errors="replace").splitlines()
        except OSError:
            return True
        return any(fields[2:3] == [str(user)] for fields in (line.split(":") for line in lines))
    return True


def has_processes(user: int) -> bool:
    """Return True if a process of this user's number runs on the node, or if that cannot be found out."""
    return subprocess.run(["pgrep", "-U", str(user)], stdout=subprocess.DEVNULL, check=False).returncode != 1


def unused_seconds() -> float | None:
    """Return the limit of the cluster's settings; None without one, or if the settings are of another version."""
    from container_images.image_reference import ImageError  # noqa: PLC0415 - only nodes with a disk load these
    from container_images.import_settings import SETTINGS, read_settings  # noqa: PLC0415

    try:
        local = read_settings(SETTINGS).local
    except ImageError:
        return None
    return local.store.unused_seconds if local else None


def main() -> None:
    """Report until the process ends."""
    report = NodeReport(
        os.uname().nodename,
        say=lambda text: print(text, file=sys.stderr, flush=True),
        is_known=is_known,
        has_processes=has_processes,
        unused_seconds=unused_seconds,
    )
    while True:
        report.round(time.monotonic())
        time.sleep(_ROUND_SECONDS)
