"""Built-in hooks, by their names."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

from job_hooks import gpu_job_map, gpus_in_use, page_cache, users_processes
from job_hooks.job_on_node import JobOnNode

_PAUSE_SECONDS = 0.2


class HookFailure(NamedTuple):
    """Failure of a hook."""

    problem: str
    reason: str = ""
    """Reason of a drain that a quick check may end. Empty: the hook's own reason."""


Hook = Callable[[JobOnNode, float], HookFailure | None]
"""Function that gets the job and the time limit in seconds. It returns None if it succeeded."""


def gpus_unused(job: JobOnNode, seconds: float) -> HookFailure | None:
    """Wait until nothing uses the job's GPUs: before its first step, and after its last one.

    If there is no new reading, the previous result counts: the last call may have no time to finish.
    """
    deadline = time.monotonic() + seconds
    found: gpus_in_use.GpuUse | None = None
    while True:
        with suppress(gpus_in_use.NoReadingError):
            found = gpus_in_use.finding(job, max(1.0, deadline - time.monotonic()))
        if found is None or time.monotonic() + _PAUSE_SECONDS >= deadline:
            return found and HookFailure(found.words, found.reason)
        time.sleep(_PAUSE_SECONDS)


def processes_ended(job: JobOnNode, seconds: float) -> HookFailure | None:
    """Wait until the job's user has no processes outside of steps, unless the user has another job on the node.

    The jail's plugin kills them (`spank-plugin/user_cleanup.c`). This finds those that the kernel does not end.
    """
    deadline = time.monotonic() + seconds
    while left := users_processes.left(job):
        if time.monotonic() + _PAUSE_SECONDS >= deadline:
            if users_processes.has_other_jobs(job):
                return None
            return HookFailure(f"processes of uid {job.uid} that have not ended: {len(left)}")
        time.sleep(_PAUSE_SECONDS)
    return None


def drop_page_cache(_job: JobOnNode, seconds: float) -> HookFailure | None:
    """Drop the machine's page cache."""
    problem = page_cache.drop(seconds)
    return HookFailure(problem) if problem else None


def map_gpus(job: JobOnNode, _seconds: float) -> HookFailure | None:
    """Write the job into the files of its GPUs for dcgm-exporter."""
    return _of_map(gpu_job_map.write(job))


def unmap_gpus(job: JobOnNode, _seconds: float) -> HookFailure | None:
    """Remove the job from the files of its GPUs for dcgm-exporter."""
    return _of_map(gpu_job_map.remove(job))


def _of_map(problem: str) -> HookFailure | None:
    return HookFailure(problem) if problem else None


HOOKS: Mapping[str, Hook] = {
    "gpus_unused_before": gpus_unused,
    "map_gpus": map_gpus,
    "unmap_gpus": unmap_gpus,
    "gpus_unused_after": gpus_unused,
    "processes_ended": processes_ended,
    "drop_page_cache": drop_page_cache,
}
