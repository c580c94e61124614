"""Jobs, as squeue prints them in columns of fixed width, and times in seconds since 1970.

`squeue --json` of 5,000 jobs is some 30 MB, and ten times that in memory. Columns need no more than a line at a time,
and no name that a user has chosen can be taken for another column.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from slurm_exporter.samples import Unread, printable, whole_number
from slurm_wire import hostlists

_WIDTHS = {
    "JobID": 12,
    "UserName": 33,
    "Account": 65,
    "Partition": 65,
    "State": 16,
    "Reason": 48,
    "SubmitTime": 12,
    "StartTime": 12,
    "EndTime": 12,
    "NumCPUs": 9,
    "NumNodes": 9,
    "tres-alloc": 160,
    "NodeList": 320,
    "JobArrayID": 64,
    "Name": 64,
}

_BEFORE_NAME = sum(_WIDTHS.values()) - _WIDTHS["Name"]
"""Width of all columns before the name. A shorter line continues a name that contains line breaks."""

COMMAND = (
    *("squeue", "--noheader", "--all", "--states=all"),
    "--Format=" + ",".join(f"{name}:{width}" for name, width in _WIDTHS.items()),
)

_ACTIVE = {"PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "COMPLETING", "STOPPED", "SIGNALING", "RESIZING"}
_OTHER_STATES = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "EXPEDITING", "FAILED", "LAUNCH_FAILED", "NODE_FAIL"),
    *("OUT_OF_MEMORY", "POWER_UP_NODE", "PREEMPTED", "RECONFIG_FAIL", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD"),
    *("RESV_DEL_HOLD", "REVOKED", "SPECIAL_EXIT", "STAGE_OUT", "TIMEOUT", "UPDATE_DB"),
}
"""Slurm's other words for a job's state: https://slurm.schedmd.com/job_state_codes.html."""

_AMOUNT = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)([KMGTP]?)")
_MIB_OF_UNIT = {"": 1, "K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}
_STATE = re.compile(r"[A-Z_]+")
_ARRAY = re.compile(r"\[([^\]%]*)")


@dataclass(frozen=True)
class JobRow:
    """A job, or the pending tasks of an array that have no line of their own yet."""

    job_id: str
    name: str
    user: str
    account: str
    partition: str
    state: str
    """Base state, such as RUNNING."""
    reason: str
    """Reason of a pending job; empty for other jobs."""
    tasks: int
    """Number of an array's tasks that the line stands for; 1 without an array."""
    submit_time: int | None
    start_time: int | None
    end_time: int | None
    """Time at which the job ended, or reaches its time limit."""
    cpus: int
    gpus: int
    memory_bytes: int
    nodes: tuple[str, ...]

    @property
    def is_active(self) -> bool:
        """Return True until the job has ended."""
        return self.state in _ACTIVE

    @property
    def is_held(self) -> bool:
        """Return True if someone must release the job before it can start."""
        return self.reason in {"JobHeldUser", "JobHeldAdmin"}


def parse(lines: Iterable[bytes], unread: Unread) -> Iterator[JobRow]:
    """Yield the jobs of the program's output.

    Without accounting, an account may contain any text, even line breaks. Such a line is skipped, and other jobs are
    kept.
    """
    for line in lines:
        row = _row(line.rstrip(b"\n"), unread)
        if row is not None:
            yield row


def _row(line: bytes, unread: Unread) -> JobRow | None:
    if len(line) < _BEFORE_NAME:
        return None
    column: dict[str, str] = {}
    place = 0
    for name, width in _WIDTHS.items():
        column[name] = printable(line[place : place + width].decode(errors="replace").strip())
        place += width
    state = column["State"]
    if whole_number(column["JobID"]) is None or not _STATE.fullmatch(state):
        unread.add("line", f"{column['JobID']} {state}")
        return None
    if state not in _ACTIVE | _OTHER_STATES:
        unread.add("State", state)
    tres = dict(item.split("=", 1) for item in column["tres-alloc"].split(",") if "=" in item)
    return JobRow(
        job_id=column["JobID"],
        name=column["Name"],
        user=column["UserName"],
        account=column["Account"].replace("(null)", ""),
        # A pending job names all of its partitions.
        partition=column["Partition"].partition(",")[0],
        state=state,
        reason=column["Reason"] if state == "PENDING" else "",
        tasks=_tasks(column["JobArrayID"]) if state == "PENDING" else 1,
        submit_time=whole_number(column["SubmitTime"]),
        start_time=whole_number(column["StartTime"]),
        end_time=whole_number(column["EndTime"]),
        cpus=_count(column["NumCPUs"], "NumCPUs", unread),
        gpus=_count(tres.get("gres/gpu", "0"), "gres/gpu", unread),
        memory_bytes=_memory_bytes(tres.get("mem", "0"), unread),
        nodes=_nodes(column["NodeList"]),
    )


def _nodes(hosts: str) -> tuple[str, ...]:
    """Return the node names of a list, or none if squeue cut it off or its form is unknown."""
    if hosts == "(null)" or len(hosts) >= _WIDTHS["NodeList"]:
        return ()
    try:
        return tuple(hostlists.names(hosts))
    except ValueError:
        return ()


def _count(text: str, field: str, unread: Unread) -> int:
    number = whole_number(text)
    if number is None:
        unread.add(field, text)
    return number or 0


def _memory_bytes(text: str, unread: Unread) -> int:
    found = _AMOUNT.fullmatch(text)
    if not found:
        unread.add("mem", text)
    return round(float(found[1]) * _MIB_OF_UNIT[found[2]]) * 1024**2 if found else 0


def _tasks(array_id: str) -> int:
    """Return the number of tasks in `12_[0-9,20-30:2%4]`. A list that squeue cut off counts as far as it goes."""
    found = _ARRAY.search(array_id)
    if not found:
        return 1
    total = 0
    for item in found[1].split(","):
        numbers = re.fullmatch(r"([0-9]+)(?:-([0-9]+)(?::([0-9]+))?)?", item)
        if numbers:
            first, last, step = (int(group) if group else None for group in numbers.groups())
            total += 1 if last is None or first is None else (last - first) // (step or 1) + 1
    return max(total, 1)
