"""Metrics of slurmctld itself, as `sdiag --json` prints them."""

import json

from slurm_exporter.samples import Samples

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


def parse(text: str) -> Samples:
    """Return the metrics in the program's output."""
    statistics = json.loads(text)["statistics"]
    return {name: [((), float(statistics[field]))] for name, field in _FIELDS.items() if field in statistics}
