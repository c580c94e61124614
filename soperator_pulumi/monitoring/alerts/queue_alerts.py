"""Alerts about the queue: jobs that do not start, jobs that fail, idle GPUs."""

from datetime import timedelta

from soperator_pulumi.monitoring.prometheus_rules import Alert, AlertSeverity

_IDLE = 'slurm_node_state{$here,state="idle"} and on (namespace, node) slurm_node_unavailable{$here} == 0'

QUEUE_ALERTS = (
    Alert(
        "SlurmQueueStands",
        "max by (namespace) (slurm_jobs_pending{$here} - slurm_jobs_hold{$here}) > 0 and on (namespace) "
        f"count by (namespace) ({_IDLE}) > 0 and on (namespace) "
        "max by (namespace) (increase(slurm_sdiag_jobs_started{$here}[1h])) == 0",
        timedelta(hours=1),
        AlertSeverity.WARNING,
        "Jobs wait although nodes are idle, and none has started for an hour",
        "{{ $value }} jobs wait without being held, often for a limit, a license or a node that never becomes "
        "available.",
    ),
    Alert(
        "SlurmSchedulerSlow",
        "max by (namespace) (slurm_schedule_cycle_last{$here}) > 10000000",
        timedelta(minutes=15),
        AlertSeverity.WARNING,
        "The main scheduler takes more than 10 s",
        "A cycle takes {{ $value }} microseconds, during which slurmctld answers few requests.",
    ),
    Alert(
        "SlurmBackfillSlow",
        "max by (namespace) (slurm_bf_cycle_last{$here}) > 120000000",
        timedelta(minutes=30),
        AlertSeverity.INFO,
        "The backfill scheduler takes more than 2 minutes",
        "A cycle takes {{ $value }} microseconds: small jobs wait longer than necessary.",
    ),
    Alert(
        "SlurmJobsFailTogether",
        "max by (namespace) (increase(slurm_sdiag_jobs_failed{$here}[30m])) > 20 and max by (namespace) "
        "(increase(slurm_sdiag_jobs_failed{$here}[30m])) > 0.5 * max by (namespace) "
        "(increase(slurm_sdiag_jobs_started{$here}[30m]))",
        timedelta(minutes=5),
        AlertSeverity.WARNING,
        "More than half of the jobs fail",
        '{{ $value | printf "%.0f" }} jobs have failed in 30 minutes: more than 20, and more than half of those that '
        "started.",
    ),
    Alert(
        "SlurmJobsLostNodes",
        "max by (namespace) (slurm_jobs_node_failed{$here}) > 0",
        timedelta(0),
        AlertSeverity.WARNING,
        "{{ $value }} jobs ended because a node failed",
        "slurmctld has the jobs in the state NODE_FAIL.",
    ),
    Alert(
        "SlurmJobWastesGpus",
        "slurm_job:gpu_utilization:ratio{$here} < 0.05 and on (namespace, job_id) max by (namespace, job_id) "
        "(time() - slurm_job_start_time_seconds{$here}) > 3600",
        timedelta(hours=2),
        AlertSeverity.INFO,
        "The GPUs of job {{ $labels.job_id }} are idle",
        "Utilization has been below 5 % for 2 hours.",
    ),
)
"""Alerts about the queue."""
