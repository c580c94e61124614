"""Dashboard of the queue: waiting jobs with their reasons, and resources by user and account."""

from soperator_pulumi.monitoring.panels import Dashboard, Query, Row, Unit, bars, lines, number, stack

_BAD_ENDS = {
    "failed": "failed",
    "timeout": "time limit",
    "outofmemory": "out of memory",
    "node_failed": "node failed",
}

QUEUE_AND_USERS = Dashboard(
    "slurm-queue",
    "Slurm queue and users",
    "Waiting jobs and their reasons, by partition, user and account.",
    (
        Row(
            "Queue",
            (
                number("Waiting", "max(slurm_jobs_pending{$here})"),
                number("Held", "max(slurm_jobs_hold{$here})"),
                number(
                    "Longest wait",
                    "time() - min(slurm_jobs_oldest_pending_submit_time_seconds{$here} > 0)",
                    unit=Unit.SECONDS,
                ),
                stack(
                    "Waiting, by reason",
                    Query("max by (reason) (slurm_jobs_pending_by_reason{$here})", "{{reason}}"),
                    width=12,
                ),
                stack(
                    "Running, by partition",
                    Query("max by (partition) (slurm_partition_jobs_running{$here})", "{{partition}}"),
                ),
                stack(
                    "Waiting, by partition",
                    Query("max by (partition) (slurm_partition_jobs_pending{$here})", "{{partition}}"),
                ),
                stack(
                    "Jobs that ended badly",
                    *(Query(f"max(slurm_jobs_{state}{{$here}})", words) for state, words in _BAD_ENDS.items()),
                    about="Only while slurmctld keeps ended jobs (MinJobAge).",
                ),
            ),
        ),
        Row(
            "Users and accounts",
            (
                stack(
                    "CPUs, by user", Query("max by (username) (slurm_user_jobs_cpus_alloc{$here}) > 0", "{{username}}")
                ),
                stack(
                    "GPUs, by user", Query("max by (username) (slurm_user_jobs_gpus_alloc{$here}) > 0", "{{username}}")
                ),
                stack(
                    "Waiting, by user", Query("max by (username) (slurm_user_jobs_pending{$here}) > 0", "{{username}}")
                ),
                bars("CPUs now, by account", "max by (account) (slurm_account_jobs_cpus_alloc{$here})", "{{account}}"),
                bars("GPUs now, by account", "max by (account) (slurm_account_jobs_gpus_alloc{$here})", "{{account}}"),
                lines(
                    "GPU utilization by user",
                    Query("max by (username) (slurm_user:gpu_utilization:ratio{$here})", "{{username}}"),
                    unit=Unit.RATIO,
                ),
            ),
        ),
    ),
)
"""The queue, and the resources of users and accounts."""
