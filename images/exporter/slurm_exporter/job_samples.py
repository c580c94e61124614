"""Metrics of jobs, of their users, accounts and partitions."""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from slurm_exporter.job_rows import JobRow
from slurm_exporter.metric_table import JOB_STATES
from slurm_exporter.samples import Samples, Sums

_NAMES = {
    "CANCELLED": "cancelled",
    "COMPLETED": "completed",
    "COMPLETING": "completing",
    "FAILED": "failed",
    "NODE_FAIL": "node_failed",
    "OUT_OF_MEMORY": "outofmemory",
    "PENDING": "pending",
    "PREEMPTED": "preempted",
    "RUNNING": "running",
    "SUSPENDED": "suspended",
    "TIMEOUT": "timeout",
}
MOST_JOBS = 5_000
"""Jobs with series of their own: up to eight per job, and one per node of the job."""

MOST_ACCOUNTS = 1_000
"""Accounts with series of their own: without slurmdbd, users make them up."""

_OTHERS = "(others)"
"""Account that stands for all other jobs. slurmdbd accepts no name with a parenthesis."""

_OF_ACCOUNTS = "slurm_account_jobs"
_LEFT_OUT = "slurm_exporter_jobs_left_out"
_OLDEST = "slurm_jobs_oldest_pending_submit_time_seconds"


def of_jobs(rows: Iterable[JobRow]) -> Samples:
    """Return the metrics of the jobs. Counts cover all jobs; at most `MOST_JOBS` have series of their own."""
    sums = Sums()
    oldest: dict[str, int] = {}
    for name in ("", *(f"_{state}" for state in JOB_STATES), "_cpus_alloc", "_gpus_alloc"):
        sums.add(f"slurm_jobs{name}", value=0)
    shown = heapq.nsmallest(MOST_JOBS, _ranked(_counted(rows, sums, oldest)))
    for *_, row in shown:
        _add_job(sums, row)
    sums.add(_LEFT_OUT, value=-len(shown))
    samples = sums.samples() | {_OLDEST: [((partition,), submitted) for partition, submitted in oldest.items()]}
    return {name: _folded(values) if name.startswith(_OF_ACCOUNTS) else values for name, values in samples.items()}


def _counted(rows: Iterable[JobRow], sums: Sums, oldest: dict[str, int]) -> Iterator[JobRow]:
    """Count all jobs, and yield those that have not ended."""
    for row in rows:
        sums.add("slurm_jobs", value=row.tasks)
        _count(sums, row)
        if row.state == "PENDING":
            sums.add("slurm_jobs_pending_by_reason", (row.reason,), row.tasks)
            if not row.is_held and row.submit_time is not None:
                oldest[row.partition] = min(row.submit_time, oldest.get(row.partition, row.submit_time))
        if row.is_active:
            sums.add(_LEFT_OUT)
            yield row


def _ranked(rows: Iterable[JobRow]) -> Iterator[tuple[bool, int, int, JobRow]]:
    """Yield jobs by rank: running ones, then the first waiting one of every user, then the second ones, and so on."""
    jobs_of: Counter[str] = Counter()
    for number, row in enumerate(rows):
        jobs_of[row.user] += 1
        yield row.state == "PENDING", jobs_of[row.user], number, row


def _folded(values: Sequence[tuple[tuple[str, ...], float]]) -> list[tuple[tuple[str, ...], float]]:
    """Return the values of the largest accounts, and the sum of all others."""
    largest = sorted(values, key=lambda value: -value[1])
    others = sum(value for _, value in largest[MOST_ACCOUNTS:])
    return [*largest[:MOST_ACCOUNTS], *([((_OTHERS,), others)] if len(largest) > MOST_ACCOUNTS else [])]


def _count(sums: Sums, row: JobRow) -> None:
    whose: list[tuple[str, tuple[str, ...]]] = [("slurm_jobs", ())]
    if row.is_active:
        whose += [("slurm_user_jobs", (row.user,)), ("slurm_partition_jobs", (row.partition,))]
        whose += [(_OF_ACCOUNTS, (row.account,))] if row.account else []
    state = _NAMES.get(row.state)
    for prefix, labels in whose:
        if state in {"running", "pending"} or (state and not labels):
            sums.add(f"{prefix}_{state}", labels, row.tasks)
        if row.is_held:
            sums.add(f"{prefix}_hold", labels, row.tasks)
        if row.state == "RUNNING":
            sums.add(f"{prefix}_cpus_alloc", labels, row.cpus)
            sums.add(f"{prefix}_gpus_alloc", labels, row.gpus)


def _add_job(sums: Sums, row: JobRow) -> None:
    job = (row.job_id,)
    labels = (row.job_id, row.name, row.user, row.account, row.partition, row.state.lower(), row.reason)
    sums.add("slurm_job_info", labels)
    if row.submit_time is not None:
        sums.add("slurm_job_submit_time_seconds", job, row.submit_time)
    if row.state == "PENDING":
        return
    for node in row.nodes:
        sums.add("slurm_job_node", (row.job_id, node))
    sums.add("slurm_job_cpus", job, row.cpus)
    sums.add("slurm_job_gpus", job, row.gpus)
    sums.add("slurm_job_memory_bytes", job, row.memory_bytes)
    if row.start_time is not None:
        sums.add("slurm_job_start_time_seconds", job, row.start_time)
    if row.end_time is not None:
        sums.add("slurm_job_end_time_seconds", job, row.end_time)
