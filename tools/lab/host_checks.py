"""Requirements on this machine before a machine of the lab starts on it: all problems at once, with the next steps."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.console import UserError
from tools.kube.machine import Filesystem, available_memory, filesystem

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the memory of a machine, a file without a name
"""Folder in which user-mode Linux makes the memory of a machine, and from which it runs programs."""

LARGE_MIB = 2048
"""Memory of a machine from which on its programs may need more mappings than a kernel allows."""

LARGE_MAPS = 1_048_576
"""Mappings of a process for a large machine. User-mode Linux maps the pages of its processes one by one: with the usual
65,530, a process of 256 MiB may hang."""


@dataclass(frozen=True)
class Host:
    """Facts about this machine. The defaults meet every requirement."""

    shared_memory: Filesystem
    uid: int = 0
    mappings: int = LARGE_MAPS
    """Value of vm.max_map_count."""

    memory_bytes: int = 1 << 40
    """Memory that programs may take."""


def host() -> Host:
    """Return the facts about this machine."""
    return Host(
        filesystem(SHARED_MEMORY),
        os.geteuid(),
        int(Path("/proc/sys/vm/max_map_count").read_text()),
        available_memory(Path("/proc/meminfo").read_text()),
    )


def require(facts: Host, memory_mib: int) -> None:
    """Raise a UserError that lists every problem of a machine with this memory, if there is any."""
    if found := list(problems(facts, memory_mib)):
        listed = "\n".join(f"  - {problem}" for problem in found)
        raise UserError(f"this machine cannot run a machine of the lab yet:\n{listed}")


def problems(facts: Host, memory_mib: int) -> Iterator[str]:
    """Yield the problems of a machine with this memory: the finding and the next step."""
    if facts.uid != 0:
        yield f"this command runs as user id {facts.uid}, and a machine reads root's files: rerun as root, as with sudo"
    if memory_mib >= LARGE_MIB and facts.mappings < LARGE_MAPS:
        yield (
            f"vm.max_map_count is {facts.mappings}, and a machine of {LARGE_MIB} MiB and more needs {LARGE_MAPS}: "
            f"sysctl -w vm.max_map_count={LARGE_MAPS}"
        )
    if (available := facts.memory_bytes >> 20) < memory_mib:
        yield (
            f"{available} MiB of memory are available, and the machine takes up to {memory_mib} MiB: "
            "end other programs, or give it less, as with MEMORY_MIB of `make lab`"
        )
    shared = facts.shared_memory
    if (free := shared.free_bytes >> 20) < memory_mib:
        yield (
            f"{shared.path} has {free} MiB free, and the machine takes up to {memory_mib} MiB of it: "
            f"mount -o remount,size={memory_mib + 1024}m {shared.path}"
        )
    if shared.noexec:
        yield f"{shared.path} is mounted noexec, and the machine runs from it: mount -o remount,exec {shared.path}"
