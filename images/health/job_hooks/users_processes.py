"""Processes of a job's user that belong to no step. They are reported, and never signalled."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from job_hooks.job_on_node import JobOnNode
from node_health.bounded import BoundedProgram

FIRST_USER_ID = 1000
"""Lowest id of a user (Debian's policy, 9.2.2). System processes belong to no job."""

_STEP = re.compile(r"slurmstepd: \[(\d+)\.")
_SQUEUE_SECONDS = 10


class ProcessEntry(NamedTuple):
    """A process that has not ended, as /proc describes it."""

    pid: int
    parent: int
    uids: frozenset[int]
    """Real, effective, saved and file system user ids."""
    step_of: str
    """Job whose step the process manages, if it is a slurmstepd; empty for other processes."""


def left(job: JobOnNode, proc: str = "/proc") -> list[int]:
    """Return the user's processes that belong to no step; none while another job's step has processes of the user."""
    if job.uid < FIRST_USER_ID:
        return []
    by_pid = {entry.pid: entry for entry in _entries(Path(proc))}
    jobs = {
        pid: _job_above(process_entry, by_pid) for pid, process_entry in by_pid.items() if job.uid in process_entry.uids
    }
    if {*jobs.values()} - {"", job.job_id}:
        return []
    return sorted(pid for pid, above in jobs.items() if not above)


def has_other_jobs(job: JobOnNode) -> bool:
    """Return True if slurmctld has another job of the user on the node, or does not answer."""
    command = ("squeue", "--noheader", "--states=R,S", f"--user={job.uid}", f"--nodelist={job.node}", "--format=%A")
    end = BoundedProgram(command, _SQUEUE_SECONDS).finish()
    return end.status != 0 or bool({*end.output.split()} - {job.job_id})


def _entries(proc: Path) -> Iterator[ProcessEntry]:
    for folder in proc.iterdir():
        if folder.name.isdecimal():
            with suppress(OSError, ValueError, IndexError, StopIteration):
                state, parent = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
                if state not in {"Z", "X"} or _has_threads(folder):
                    yield ProcessEntry(int(folder.name), int(parent), _uids(folder), _step_of(folder))


def _has_threads(folder: Path) -> bool:
    """Return True for a process whose main thread has ended while other threads run."""
    return len([*(folder / "task").iterdir()]) > 1


def _uids(folder: Path) -> frozenset[int]:
    # By the kernel's line ends alone: a name may have any other character that Python ends a line with.
    lines = (folder / "status").read_bytes().split(b"\n")
    return frozenset(int(word) for word in next(line for line in lines if line.startswith(b"Uid:")).split()[1:])


def _step_of(folder: Path) -> str:
    if folder.stat().st_uid:  # a user may give a process any title
        return ""
    found = _STEP.match((folder / "cmdline").read_bytes()[:64].decode(errors="replace"))
    return found[1] if found else ""


def _job_above(process: ProcessEntry, by_pid: Mapping[int, ProcessEntry]) -> str:
    seen: set[int] = set()
    here: ProcessEntry | None = process
    while here is not None and here.pid not in seen:
        if here.step_of:
            return here.step_of
        seen.add(here.pid)
        here = by_pid.get(here.parent)
    return ""
