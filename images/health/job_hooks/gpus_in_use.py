"""Use of a job's GPUs by other processes, judged by the limits of the node's quick checks.

A failure has the reason of the quick check, so that the check ends the drain when it passes again.
"""

import time
from typing import NamedTuple

from job_hooks.job_on_node import JobOnNode
from node_health import check_settings
from node_health.all_checks import CHECKS
from node_health.kernel_files import read
from node_health.readers import Readers
from slurm_wire.drain_reasons import health_reason

_SETTINGS = "/etc/soperator/health"
_USE = ("gpu_processes", "gpu_memory_used")


class GpuUse(NamedTuple):
    """Use of a GPU beyond the limit of a check."""

    words: str
    reason: str


class NoReadingError(Exception):
    """nvidia-smi exists but did not describe the GPUs, or not in time."""


def finding(job: JobOnNode, seconds: float, settings: str = _SETTINGS, root: str = "") -> GpuUse | None:
    """Return the first use of the job's GPUs beyond a limit; None if there is none, or if it cannot be known.

    Raises:
        NoReadingError: nvidia-smi fails, or takes longer: a matter of the quick check `gpu_query`.
    """
    try:
        node = check_settings.parse(read(f"{settings}/{job.node_set}.json"))
    except ValueError:
        return None
    wanted = [name for name in _USE if name in node.checks]
    if not job.gpus or not wanted:
        return None
    readings = Readers(node, {}, seconds, time.time(), root=root).take({"smi"})
    if readings.has_smi and readings.gpus is None:
        raise NoReadingError
    readings.gpus = tuple(gpu for gpu in readings.gpus or () if gpu.minor in job.gpus)
    for name in wanted:
        check = node.checks[name]
        result = CHECKS[name].judge(check.limit or 0, readings)
        if result and not result.passed:
            words = f"{name}: {result.value}, allowed {check.allowed}"
            return GpuUse(words, health_reason(name, result.value, check.allowed, replace=check.replaces))
    return None
