"""Parallel work: processes handle batches of neighbouring entries. A lost process is an error."""

import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

from jail_tools.errors import TryAgainError
from jail_tools.tree.entry import Entry

BATCH_ENTRIES = 256
BATCH_BYTES = 16 * 1024 * 1024
"""A batch ends after either: enough that a batch costs nothing, few enough that no process waits long for the last."""
TICK_SECONDS = 0.2

Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


class Worker(Protocol[Result_co]):
    """Work of every process. The object is made before the processes and reaches them by fork."""

    def begin(self) -> None:
        """Open what only this process needs."""

    def work(self, batch: range) -> Result_co:
        """Do the entries at these positions."""


def batches(entries: Sequence[Entry]) -> list[range]:
    """Divide entries into batches of neighbours, the one with the most bytes first, so that it does not end last."""
    found: list[tuple[int, range]] = []
    begin = size = 0
    for position, entry in enumerate(entries):
        size += entry.size
        if size >= BATCH_BYTES or position - begin + 1 >= BATCH_ENTRIES:
            found.append((size, range(begin, position + 1)))
            begin, size = position + 1, 0
    if begin < len(entries):
        found.append((size, range(begin, len(entries))))
    large = sorted((item for item in found if item[0] >= 2 * BATCH_BYTES), key=lambda item: -item[0])
    return [batch for _, batch in large] + [batch for size, batch in found if size < 2 * BATCH_BYTES]


def run(
    worker: Worker[Result], todo: Sequence[range], processes: int, tick: Callable[[], None]
) -> Iterator[tuple[range, Result]]:
    """Yield the result of every batch as soon as it is done. Closing the iterator stops the work.

    Args:
        worker: worker for the batches.
        todo: the batches.
        processes: number of processes at most.
        tick: function to call in this process several times a second.

    Raises:
        TryAgainError: a process was killed, by the kernel for want of memory in most cases.
    """
    pool = ProcessPoolExecutor(
        max(1, min(processes, len(todo))),
        mp_context=multiprocessing.get_context("fork"),
        initializer=_begin,
        initargs=(worker, os.getpid()),
    )
    left = iter(todo)
    under_way: dict[Future[Result], range] = {}
    try:
        for batch in islice(left, 3 * processes):
            under_way[pool.submit(_work, batch)] = batch
        while under_way:
            done, _ = wait(under_way, timeout=TICK_SECONDS, return_when=FIRST_COMPLETED)
            tick()
            for future in done:
                for batch in islice(left, 1):
                    under_way[pool.submit(_work, batch)] = batch
                yield under_way.pop(future), future.result()
    except BrokenProcessPool:
        raise TryAgainError(
            "a copying process was killed, perhaps for lack of memory. Give the Job more memory, or fewer --processes."
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


_worker: Worker[Any]
_PR_SET_PDEATHSIG = 1
"""Constant of linux/prctl.h."""


def _begin(worker: Worker[Any], parent: int) -> None:
    """Initialize a new process. It ends with its parent, as it holds the lock and writes."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it was killed before
    global _worker  # noqa: PLW0603 - one per process: what the executor hands to a process it hands to a function
    _worker = worker
    worker.begin()


def _work(batch: range) -> Any:  # noqa: ANN401 - the result of the worker's own type
    return _worker.work(batch)


def default_processes(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Return the number of CPUs that this process may use: its affinity, or its cgroup's quota when that is less."""
    allowed = len(os.sched_getaffinity(0))
    try:
        limit, period = quota.read_text().split()
    except FileNotFoundError:
        return allowed
    return allowed if limit == "max" else max(1, min(allowed, round(int(limit) / int(period))))
