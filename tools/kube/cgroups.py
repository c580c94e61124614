"""The cgroup of the embedded Kubernetes: all its processes and pods are below it, so that `make down` finds them.

Both versions are supported: one hierarchy per controller (v1, also systemd's hybrid form) and the unified one (v2).
"""

import errno
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tools.console import UserError

ROOT = Path("/sys/fs/cgroup")
_KILL_SECONDS = 20
_REMOVE_SECONDS = 5
_POLL_SECONDS = 0.05
_V1_FOR_SERVERS = ("pids", "freezer", "devices", "memory")
"""Hierarchy of v1 that marks this Kubernetes' servers, by preference: none of these changes how a process runs."""


@dataclass(frozen=True)
class Hierarchies:
    """Cgroup hierarchies of a machine: folders and controllers."""

    folders: tuple[Path, ...]
    controllers: frozenset[str]
    unified: bool

    @property
    def marking(self) -> Path:
        """Hierarchy that holds the processes of this Kubernetes' servers."""
        if self.unified:
            return ROOT
        by_name = {name: path for path in self.folders for name in path.name.split(",")}
        return next((by_name[name] for name in _V1_FOR_SERVERS if name in by_name), ROOT / _V1_FOR_SERVERS[0])


def hierarchies(mounts: str | None = None, v2_controllers: str | None = None) -> Hierarchies:
    """Return the hierarchies in /proc/mounts, or in the given text."""
    text = Path("/proc/mounts").read_text() if mounts is None else mounts
    lines = [line.split() for line in text.splitlines()]
    v1 = {Path(target): options.split(",") for _, target, kind, options, *_ in lines if kind == "cgroup"}
    if v1:
        named = frozenset(option for options in v1.values() for option in options)
        # systemd's hybrid form has a v2 hierarchy without controllers next to them, where runc makes folders, too.
        v2 = [Path(target) for _, target, kind, *_ in lines if kind == "cgroup2"]
        return Hierarchies((*v1, *v2), named, unified=False)
    if v2_controllers is None:
        file = ROOT / "cgroup.controllers"
        v2_controllers = file.read_text() if file.exists() else ""
    return Hierarchies((ROOT,), frozenset(v2_controllers.split()), unified=True)


class Cgroup:
    """A named cgroup in every hierarchy."""

    def __init__(self, name: str, machine: Hierarchies | None = None) -> None:
        self.name = name
        self._hierarchies = machine or hierarchies()

    @property
    def folders(self) -> list[Path]:
        """Folders of the cgroup, one per hierarchy."""
        return [hierarchy / self.name for hierarchy in self._hierarchies.folders]

    @property
    def servers(self) -> Path:
        """File to which the servers' process ids are written."""
        return self._hierarchies.marking / self.name / "servers" / "cgroup.procs"

    def create(self) -> None:
        """Create the cgroup in every hierarchy, with every controller that the machine delegates."""
        for folder in self.folders:
            folder.mkdir(exist_ok=True)
            if self._hierarchies.unified:
                for level in (folder.parent, folder):
                    self._hand_out(level)
            elif (folder / "cpuset.cpus").exists():
                # A v1 cpuset starts empty, and an empty one takes no process.
                for file in ("cpuset.cpus", "cpuset.mems"):
                    if not (folder / file).read_text().strip():
                        (folder / file).write_text((folder.parent / file).read_text())
        self.servers.parent.mkdir(exist_ok=True)

    def _hand_out(self, level: Path) -> None:
        """Delegate all controllers of `level` to the cgroups below it (v2)."""
        file = level / "cgroup.subtree_control"
        wanted = " ".join(f"+{controller}" for controller in sorted(self._hierarchies.controllers))
        try:
            file.write_text(wanted)
        except OSError as error:
            raise UserError(
                f"{file} does not take {wanted} ({error.strerror}): in a container, move the processes of its root "
                "cgroup into a cgroup below it first"
            ) from error

    def processes(self) -> set[int]:
        """Return the ids of all processes in the cgroup and below."""
        return set().union(*(processes(folder) for folder in self.folders))

    def kill(self) -> int:
        """Kill all processes in the cgroup, including those started meanwhile; return their number."""
        killed: set[int] = set()
        deadline = time.monotonic() + _KILL_SECONDS
        while found := self.processes():
            if time.monotonic() > deadline:
                raise UserError(f"processes {sorted(found)} of cgroup {self.name} did not end within {_KILL_SECONDS} s")
            for folder in self.folders:
                _thaw(folder)
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            killed |= found
            time.sleep(_POLL_SECONDS)
        return len(killed)

    def remove(self) -> int:
        """Remove the cgroup, which must have no process, and all below it; return the number of folders."""
        return sum(remove(folder) for folder in self.folders if folder.exists())


def _thaw(folder: Path) -> None:
    """Thaw processes below `folder` that a killed runc has left frozen, as they could not end."""
    for file in _each(folder, "freezer.state"):
        with suppress(OSError):  # removed meanwhile, or the root
            file.write_text("THAWED")
    for file in _each(folder, "cgroup.freeze"):
        with suppress(OSError):
            file.write_text("0")


def processes(folder: Path) -> set[int]:
    """Return the ids of all processes in a cgroup's folder and below, except this one."""
    found: set[int] = set()
    for file in _each(folder, "cgroup.procs"):
        try:
            found |= {int(pid) for pid in file.read_text().split()}
        except OSError:  # removed meanwhile
            continue
    return found - {0, os.getpid()}


def _each(folder: Path, name: str) -> Iterator[Path]:
    """Yield a file of every cgroup from `folder` down; skip those removed meanwhile."""
    return (Path(path, name) for path, _, files in os.walk(folder) if name in files)


def remove(folder: Path) -> int:
    """Remove a cgroup and all below it; return their number."""
    below = [Path(path) for path, _, _ in os.walk(folder, topdown=False)]
    for cgroup in below:
        _remove_one(cgroup)
    return len(below)


def _remove_one(cgroup: Path) -> None:
    """Remove a cgroup. For a moment after its last process has ended, the kernel reports it busy."""
    deadline = time.monotonic() + _REMOVE_SECONDS
    while True:
        try:
            cgroup.rmdir()
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise UserError(f"cgroup {cgroup} cannot be removed: {error.strerror}") from error
            time.sleep(_POLL_SECONDS)
        else:
            return
