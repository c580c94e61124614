r"""Failures in the kernel's log, by signature.

A record of /dev/kmsg is `priority,sequence,microseconds,flags;text`, the time since boot
(Documentation/ABI/testing/dev-kmsg of Linux). Containers mostly have no /dev/kmsg: then its checks have no reading.

Users write into this log: the kernel prints the names of crashing programs (15 characters, often first in a line, then
the process in brackets) and of their files. So a line counts from its beginning alone, by more than such a name.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from node_health import gpu_log
from node_health.patterns import pattern
from node_health.xids import FINDING

HOUR_SECONDS = 3600.0

SIGNATURES = {
    "network": pattern(
        r"mlx5_core \w+:\w+:\w+\.\w+\b.*"
        r"(health poll failed|device's health compromised|[Ff]atal error|fw fatal|firmware internal error)"
    ),
    "disk": pattern(
        r"(\w+: )?(EXT4-fs error \(device|EXT4-fs \(\S+\): Remounting filesystem read-only|"
        r"XFS \(\S+\): [^[]*([Cc]orruption|[Ss]hutting down|log I/O error)|"
        r"(I/O|critical medium) error, dev (nvme|sd|vd))"
    ),
    "machine_check": pattern(
        r"mce: \[Hardware Error\]: (Machine check events logged|CPU \d+: Machine Check)|EDAC MC\d+: \d+ UE [^[]"
    ),
    # A user's program can have any name, but not root's id.
    "killed_slurm": pattern(
        r"(Out of memory|Memory cgroup out of memory)[^:]*: Killed process \d+ \((slurmd|slurmstepd)\) "
        r"total-vm:\w+, anon-rss:\w+, file-rss:\w+, shmem-rss:\w+, UID:0\b"
    ),
}
"""Beginnings of log lines: drivers mlx5_core, ext4 and xfs, block devices, EDAC, and memory management."""

_RECORD_BYTES = 8192
_KERNELS_OWN = 8
"""Priorities of the kernel's facility are lower: programs write to /dev/kmsg with one of their own."""

_MOST_FOUND = 20
"""Failures that are kept per signature, so that a disk that fails all the time displaces no GPU error."""

XID, XID_NOTED = "xid", "xid_noted"
"""GPU errors that take a node out of service until something ends them, and GPU errors that only deserve a look."""

_ASKED = "Xid 154 "
"""Prefix of the text for an action that the driver asks for."""

_NUMBER = pattern(r"[0-9]{1,20}")

_RECORD = pattern(r"\n(?=\d+,\d+,\d+,)")


class KernelLog:
    """Failures found so far. Later rounds continue after the last record."""

    def __init__(self, memory: dict[str, Any], boot: str) -> None:
        """Keep the earlier failures; forget those of an earlier boot."""
        if memory.get("boot") != boot:
            memory.clear()
            memory.update(boot=boot, sequence=-1, found=[])
        self._memory = memory

    def add(self, records: Iterator[str]) -> None:
        """Look for failures in new records."""
        self._memory["new"] = []
        for record in records:
            head, _, text = record.partition(";")
            fields = head.split(",")
            if len(fields) < 3 or not all(_NUMBER.fullmatch(field) for field in fields[:3]):
                continue
            sequence, seconds = int(fields[1]), int(fields[2]) / 1e6
            if sequence <= self._memory["sequence"]:
                continue
            self._memory["sequence"] = sequence
            if int(fields[0]) < _KERNELS_OWN:
                self._add_gpus(text, seconds)
                for name, place in _signatures(text):
                    self._keep(name, seconds, place)

    def _add_gpus(self, text: str, seconds: float) -> None:
        """Keep a GPU error, or end the errors that a line shows to be over."""
        line = gpu_log.read_line(text, self._memory.pop("begun", ""))
        if begun := gpu_log.begins(text):
            self._memory["begun"] = begun
        if line is None:
            return
        if line.ends:
            self._forget(lambda place: _is_of(line.device, place))
            return
        if line.words.startswith(_ASKED):  # an action that the driver asks for takes the place of the one before it
            self._forget(lambda place: _is_of(line.device, place) and place.startswith(_ASKED))
        self._keep(XID_NOTED if line.action == FINDING else XID, seconds, line.words)

    def settle(self, devices: Iterable[str]) -> None:
        """End the GPU errors of earlier rounds if the driver asks for no action."""
        settled = [*devices]
        self._forget(lambda place: any(_is_of(device, place) for device in settled))

    def settle_switches(self) -> None:
        """End the errors of switches, as all GPUs behind them and their fabric are healthy."""
        self._forget(lambda place: place.startswith("SXid "))

    def forget_known(self) -> None:
        """End the GPU errors that earlier rounds found, as an admin has undrained the node since."""
        new = self._memory.get("new", [])
        self._forget(lambda place: place not in new)

    def forget_before(self, seconds: float) -> None:
        """End the errors of GPUs from before a time since boot."""
        found = self._memory["found"]
        found[:] = [failure for failure in found if failure[0] != XID or failure[1] >= seconds]

    def _forget(self, is_over: Callable[[str], bool]) -> None:
        found = self._memory["found"]
        found[:] = [failure for failure in found if failure[0] != XID or not is_over(failure[2])]

    def _keep(self, name: str, seconds: float, place: str) -> None:
        """Keep a failure in place of an equal one, or of the oldest if its signature has `_MOST_FOUND`."""
        self._memory["new"].append(place)
        found: list[Any] = self._memory["found"]
        same = [failure for failure in found if failure[0] == name]
        outdated = [failure for failure in same if failure[2] == place] or same[: 1 - _MOST_FOUND]
        found[:] = [*(failure for failure in found if failure not in outdated), [name, seconds, place]]

    def failures(self, uptime_seconds: float) -> dict[str, list[str]]:
        """Return places of failures by signature: of the last hour, or since boot for GPUs that need an action."""
        result: dict[str, list[str]] = {}
        for name, seconds, place in self._memory["found"]:
            places = result.setdefault(name, [])
            if (name == XID or uptime_seconds - seconds <= HOUR_SECONDS) and place not in places:
                places.append(place)
        return result


def _is_of(device: str, place: str) -> bool:
    return not device or f" {device} " in f"{place} "


def _signatures(text: str) -> Iterator[tuple[str, str]]:
    line = text.partition("\n")[0]
    for name, signature in SIGNATURES.items():
        if found := signature.match(line):
            yield name, "".join(text for text in found[0] if text.isprintable())[:60]


def records(path: str = "/dev/kmsg") -> Iterator[str]:
    """Yield the records that the kernel's log has now.

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
            # The device gives one record a time; a file of a test has several.
            yield from _RECORD.split(record.decode(errors="replace"))
    finally:
        os.close(file)
