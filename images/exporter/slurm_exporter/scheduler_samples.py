"""Metrics of slurmctld itself, as `sdiag --json` prints them."""

import json
import math
from collections.abc import Mapping

from slurm_exporter.samples import Samples, Unread

COMMAND = ("sdiag", "--json")

_FIELDS = {
    "slurm_server_thread_cnt": "server_thread_count",
    "slurm_agent_queue_size": "agent_queue_size",
    "slurm_slurmdbd_queue_size": "dbd_agent_queue_size",
    "slurm_schedule_cycle_last": "schedule_cycle_last",
    "slurm_schedule_cycle_max": "schedule_cycle_max",
    "slurm_schedule_queue_len": "schedule_queue_length",
    "slurm_bf_cycle_last": "bf_cycle_last",
    "slurm_bf_cycle_max": "bf_cycle_max",
    "slurm_bf_last_depth": "bf_last_depth",
    "slurm_backfilled_jobs": "bf_backfilled_jobs",
    "slurm_sdiag_jobs_submitted": "jobs_submitted",
    "slurm_sdiag_jobs_started": "jobs_started",
    "slurm_sdiag_jobs_completed": "jobs_completed",
    "slurm_sdiag_jobs_canceled": "jobs_canceled",
    "slurm_sdiag_jobs_failed": "jobs_failed",
}


def parse(text: str, unread: Unread) -> Samples:
    """Return the metrics in the program's output. A field of an unknown form is skipped.

    Raises:
        ValueError: no field has a known form.
    """
    statistics = json.loads(text)["statistics"]
    samples: Samples = {}
    for name, field in _FIELDS.items():
        value = statistics.get(field, "missing")
        try:
            number = _number(value)
        except (ValueError, TypeError, KeyError, OverflowError):
            unread.add(field, value)
        else:
            samples |= {} if number is None else {name: [((), number)]}
    if len(unread.counts) == len(_FIELDS):
        raise ValueError(f"none of {len(_FIELDS)} statistics has a known form")
    return samples


def _number(value: object) -> float | None:
    """Return a number in any form of Slurm's JSON: `3`, `"3"`, `{"set": true, "infinite": false, "number": 3}`.

    None if it is not set.
    """
    if isinstance(value, Mapping):
        if value["infinite"]:
            return math.inf
        return float(value["number"]) if value["set"] else None
    return float(value)  # type: ignore[arg-type] # any other value raises
