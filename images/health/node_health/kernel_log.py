r"""Failures in the kernel's log, by signature.

A record of /dev/kmsg is `priority,sequence,microseconds,flags;text`, the time since boot
(Documentation/ABI/testing/dev-kmsg of Linux). Containers mostly have no /dev/kmsg: then its checks have no reading.

Users write into this log: the kernel prints the names of crashing programs (15 characters, often first in a line, then
the process in brackets) and of their files. So a line counts from its beginning alone, by more than such a name.
"""

import os
import re
from collections.abc import Iterator
from typing import Any

HOUR_SECONDS = 3600.0

XIDS = frozenset({48, 62, 64, 74, 79, 95, 119, 120, 140})
"""Errors after which a GPU needs a reset or a replacement, whatever job ran (NVIDIA, "Xid Errors", Xid catalog):
uncorrectable ECC errors (48, 95, 140), a halted engine (62), rows that cannot be remapped (64), NVLink (74), a GPU that
fell off the bus (79), the GPU's own processor (119, 120). Errors that programs cause (13, 31, 43, 45) and remapped rows
(63, 92, 94) are none."""

_XID = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+)")

SIGNATURES = {
    "network": re.compile(
        r"mlx5_core \w+:\w+:\w+\.\w+\b.*"
        r"(health poll failed|device's health compromised|[Ff]atal error|fw fatal|firmware internal error)"
    ),
    "disk": re.compile(
        r"(\w+: )?(EXT4-fs error \(device|EXT4-fs \(\S+\): Remounting filesystem read-only|"
        r"XFS \(\S+\): [^[]*([Cc]orruption|[Ss]hutting down|log I/O error)|"
        r"(I/O|critical medium) error, dev (nvme|sd|vd))"
    ),
    "machine_check": re.compile(
        r"mce: \[Hardware Error\]: (Machine check events logged|CPU \d+: Machine Check)|EDAC MC\d+: \d+ UE [^[]"
    ),
    # A user's program can have any name, but not root's id.
    "killed_slurm": re.compile(
        r"(Out of memory|Memory cgroup out of memory)[^:]*: Killed process \d+ \((slurmd|slurmstepd)\) "
        r"total-vm:\w+, anon-rss:\w+, file-rss:\w+, shmem-rss:\w+, UID:0\b"
    ),
}
"""Beginnings of lines of the drivers mlx5_core, ext4, xfs, of block devices, EDAC and the kernel's memory."""

_RECORD_BYTES = 8192
_KERNELS_OWN = 8
"""Priorities of the kernel's facility are lower: programs write to /dev/kmsg with one of their own."""

_MOST_FOUND = 20
"""Failures that are kept of a signature: disks that fail all the time push no GPU's out."""


class KernelLog:
    """Failures found so far, of which later rounds read on from the last record."""

    def __init__(self, memory: dict[str, Any], boot: str) -> None:
        """Keep what was found, in place; forget that of an earlier boot."""
        if memory.get("boot") != boot:
            memory.clear()
            memory.update(boot=boot, sequence=-1, found=[])
        self._memory = memory

    def add(self, records: Iterator[str]) -> None:
        """Look for failures in new records."""
        found: list[Any] = self._memory["found"]
        for record in records:
            head, _, text = record.partition(";")
            fields = head.split(",")
            if len(fields) < 3 or not all(each.isdecimal() for each in fields[:3]):
                continue
            sequence, seconds = int(fields[1]), int(fields[2]) / 1e6
            if sequence <= self._memory["sequence"]:
                continue
            self._memory["sequence"] = sequence
            if int(fields[0]) < _KERNELS_OWN:
                for name, place in _signatures(text):
                    _keep(found, name, seconds, place)

    def failures(self, uptime_seconds: float) -> dict[str, list[str]]:
        """Return places of failures by signature: of the last hour, of XIDs since boot."""
        result: dict[str, list[str]] = {}
        for name, seconds, place in self._memory["found"]:
            places = result.setdefault(name, [])
            if (name == "xid" or uptime_seconds - seconds <= HOUR_SECONDS) and place not in places:
                places.append(place)
        return result


def _keep(found: list[Any], name: str, seconds: float, place: str) -> None:
    """Keep a failure, instead of the same one before, and of its signature the oldest."""
    same = [each for each in found if each[0] == name]
    outdated = [each for each in same if each[2] == place] or same[: 1 - _MOST_FOUND]
    found[:] = [*(each for each in found if each not in outdated), [name, seconds, place]]


def _signatures(text: str) -> Iterator[tuple[str, str]]:
    line = text.partition("\n")[0]
    if (xid := _XID.match(line)) and int(xid[2]) in XIDS:
        yield "xid", f"Xid {xid[2]} of {xid[1]}"
    for name, pattern in SIGNATURES.items():
        if found := pattern.match(line):
            yield name, "".join(each for each in found[0] if each.isprintable())[:60]


def records(path: str = "/dev/kmsg") -> Iterator[str]:
    """Yield the kernel's records that are there now.

    Raises:
        OSError: The container has no such device, or may not read it.
    """
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        while True:
            try:
                record = os.read(file, _RECORD_BYTES)
            except BlockingIOError:
                return
            except BrokenPipeError:  # the record was overwritten meanwhile: the next read gets the oldest that is left
                continue
            if not record:
                return
            yield record.decode(errors="replace")
    finally:
        os.close(file)
