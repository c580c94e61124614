"""Our cgroup: every process that we start and every pod is below it, so that all of them are found again.

Both layouts are supported: one hierarchy a controller (v1, also in systemd's hybrid form) and the unified one (v2).
"""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from tools.console import UserError

ROOT = Path("/sys/fs/cgroup")
_KILL_SECONDS = 20
_V1_FOR_SERVERS = ("pids", "freezer", "devices", "memory")
"""The v1 hierarchy that marks our servers, by preference: none of these changes how a process runs."""


@dataclass(frozen=True)
class Layout:
    """The machine's cgroup hierarchies."""

    hierarchies: tuple[Path, ...]
    unified: bool

    @property
    def marking(self) -> Path:
        """The hierarchy in which our servers' processes are put."""
        if self.unified:
            return self.hierarchies[0]
        by_name = {name: path for path in self.hierarchies for name in path.name.split(",")}
        for name in _V1_FOR_SERVERS:
            if name in by_name:
                return by_name[name]
        raise UserError(f"{ROOT}: none of the cgroup controllers {', '.join(_V1_FOR_SERVERS)} is mounted")


def layout(mounts: str | None = None) -> Layout:
    """Return the layout that /proc/mounts (or the given text) shows."""
    text = Path("/proc/mounts").read_text() if mounts is None else mounts
    found = [line.split()[:3] for line in text.splitlines()]
    v1 = [Path(target) for _, target, kind in found if kind == "cgroup"]
    if v1:
        return Layout(tuple(dict.fromkeys(v1)), unified=False)
    v2 = [Path(target) for _, target, kind in found if kind == "cgroup2"]
    return Layout(tuple(v2[:1]), unified=True)


class Cgroup:
    """One named cgroup in all hierarchies."""

    def __init__(self, name: str, machine: Layout | None = None) -> None:
        self.name = name
        self._layout = machine or layout()

    @property
    def folders(self) -> list[Path]:
        """Its folder in each hierarchy."""
        return [hierarchy / self.name for hierarchy in self._layout.hierarchies]

    @property
    def servers(self) -> Path:
        """The folder whose `cgroup.procs` takes our servers' processes."""
        return self._layout.marking / self.name / "servers"

    def create(self) -> None:
        """Make it in all hierarchies, with all controllers that the machine hands out."""
        for folder in self.folders:
            folder.mkdir(exist_ok=True)
            if self._layout.unified:
                controllers = (folder.parent / "cgroup.controllers").read_text().split()
                wanted = " ".join(f"+{controller}" for controller in controllers)
                for level in (folder.parent, folder):
                    (level / "cgroup.subtree_control").write_text(wanted)
            elif (folder / "cpuset.cpus").exists():
                # A v1 cpuset starts empty, and no process can enter an empty one.
                for file in ("cpuset.cpus", "cpuset.mems"):
                    if not (folder / file).read_text().strip():
                        (folder / file).write_text((folder.parent / file).read_text())
        self.servers.mkdir(exist_ok=True)

    def processes(self) -> set[int]:
        """Return the ids of all processes in it and below."""
        found: set[int] = set()
        for folder in self.folders:
            for file in folder.rglob("cgroup.procs"):
                try:
                    found |= {int(pid) for pid in file.read_text().split()}
                except OSError:  # it was removed meanwhile
                    continue
        return found - {0, os.getpid()}

    def kill(self) -> int:
        """Kill all processes in it, also those that are started meanwhile; return how many there were."""
        killed: set[int] = set()
        deadline = time.monotonic() + _KILL_SECONDS
        while processes := self.processes():
            if time.monotonic() > deadline:
                raise UserError(
                    f"processes {sorted(processes)} of cgroup {self.name} did not end within {_KILL_SECONDS} s"
                )
            for pid in processes:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            killed |= processes
            time.sleep(0.05)
        return len(killed)

    def remove(self) -> int:
        """Remove it and all below, empty of processes; return how many folders there were."""
        return sum(remove(folder) for folder in self.folders if folder.exists())


def remove(folder: Path) -> int:
    """Remove a cgroup and all below it; return how many there were."""
    below = [Path(path) for path, _, _ in os.walk(folder, topdown=False)]
    for cgroup in below:
        cgroup.rmdir()
    return len(below)
