"""What root of a worker changes in the file system while jobs run: the system calls of slurmd and its steps.

The tracer runs on the machine of the embedded Kubernetes: a pod has no right to trace.
"""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.debian_packages import missing_with_requirements, unpacked_packages
from tests.waiting import wait_until

_CHANGES = str.split(
    "openat open creat mkdir mkdirat mknod mknodat rename renameat renameat2 unlink unlinkat rmdir symlink symlinkat "
    "link linkat chmod fchmodat fchmodat2 chown lchown fchownat truncate bind"
)
"""System calls that change what a path names. An open counts where it may write or make."""

_BECOMES = str.split("setuid setreuid setresuid")
_FORKS = str.split("fork vfork clone clone3")
_OPENS = ("openat", "open")
_PATH = re.compile(r'(?:(?:AT_FDCWD|\d+)<([^>]*)>, |sun_path=)?"((?:[^"\\]|\\.)*)"')
_CHILD = re.compile(r"= (\d+)(?: /\* (\d+) in strace's PID NS \*/)?$")


@dataclass(frozen=True)
class Change:
    """A change that root has tried to make."""

    call: str
    path: str
    """The path as root named it; relative to the working directory for calls that take no other."""


@contextmanager
def traced(process: int, folder: Path) -> Iterator[list[Change]]:
    """Trace a process of this machine and all that it starts; after the block the list has what root changed."""
    found: list[Change] = []
    program, environment = _strace()
    calls = f"trace={','.join(f'?{call}' for call in [*_CHANGES, *_BECOMES, *_FORKS])}"  # ?: if the tracer knows it
    options = ["-ff", "-y", "-qq", "--decode-pids=pidns", "-s", "4096", "-e", calls, "-e", "signal=none"]
    tracer = subprocess.Popen([program, *options, "-o", str(folder / "calls"), "-p", str(process)], env=environment)
    try:
        tasks = Path(f"/proc/{process}/task")
        wait_until(
            lambda: tracer.poll() is not None or all(map(_is_traced, tasks.iterdir())),
            what=f"process {process} is traced",
        )
        assert tracer.poll() is None, "strace has ended: its words are above"
        roots = sorted(int(task.name) for task in tasks.iterdir())
        yield found
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.wait(timeout=60)
    for task in roots:
        found += _changes(folder, task, 0)


def _is_traced(task: Path) -> bool:
    return "TracerPid:\t0\n" not in (task / "status").read_text()


def _strace() -> tuple[str, dict[str, str]]:
    """Return the program on PATH, else that of the distribution's packages, with its environment."""
    if found := shutil.which("strace"):
        return found, {**os.environ}
    root = unpacked_packages("strace", ["strace"], missing_with_requirements(["strace"]))
    libraries = {str(file.parent) for file in root.rglob("*.so*")}
    return str(root / "usr/bin/strace"), {**os.environ, "LD_LIBRARY_PATH": ":".join(sorted(libraries))}


def _changes(folder: Path, task: int, user: int) -> Iterator[Change]:
    """Give what a thread changes while it is root, then its children's: each begins as whoever made it."""
    file = folder / f"calls.{task}"
    for line in file.read_text(errors="replace").splitlines() if file.exists() else ():
        call, _, rest = line.partition("(")
        if call in _FORKS:
            if child := _CHILD.search(line):
                yield from _changes(folder, int(child[2] or child[1]), user)
        elif call in _BECOMES:
            user = _user_after(call, rest, user)
        elif user == 0 and call in _CHANGES and (call not in _OPENS or re.search(r"O_(WRONLY|RDWR|CREAT|TRUNC)", rest)):
            yield from (Change(call, str(Path(match[1] or "/", match[2]))) for match in _PATH.finditer(rest))


def _user_after(call: str, rest: str, user: int) -> int:
    """Return the effective user after a call, which may have failed."""
    arguments, _, result = rest.partition(")")
    numbers = [int(word) for word in arguments.split(",")]
    effective = numbers[0] if call == "setuid" else numbers[1]
    return user if effective == -1 or result.split()[:2] != ["=", "0"] else effective


def slurmd_of(pod: str) -> int:
    """Return the process of slurmd in the pod with this uid, as the machine numbers it: the oldest of that name."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "comm").read_text() == "slurmd\n" and f"pod{pod}" in (process / "cgroup").read_text():
                found.append(int(process.name))
        except OSError:
            continue  # it has ended
    return min(found)
