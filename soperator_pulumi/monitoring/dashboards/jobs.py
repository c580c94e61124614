"""Dashboards of jobs: the queue with its reasons, resources by user and account, and jobs by id."""

from soperator_pulumi.monitoring.panels import (
    Dashboard,
    Panel,
    Query,
    Row,
    Unit,
    Variable,
    bars,
    lines,
    number,
    stack,
    table,
)

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

_JOBS = '{$here,job_id=~"$job"}'
_INFO = ("job_id", "username", "account", "partition", "state")


def _of_nodes(title: str, metric: str, unit: Unit) -> Panel:
    """Return a panel about the nodes of the selected jobs."""
    joined = f"{metric}{{$here}} and on (namespace, node) slurm_job_node{_JOBS}"
    return lines(title, Query(f"max by (node) ({joined})", "{{node}}"), unit=unit, width=6)


def _column(metric: str, name: str, unit: Unit) -> Query:
    info = f"max by (namespace, {', '.join(_INFO)}) (slurm_job_info{_JOBS})"
    return Query(f"sum by ({', '.join(_INFO)}) ({info} * on (namespace, job_id) group_left () {metric})", name, unit)


JOB_DETAILS = Dashboard(
    "slurm-jobs",
    "Slurm jobs",
    "Choose jobs by their ids: what they have, and what they do with it.",
    (
        Row(
            "Jobs",
            (
                table(
                    "Jobs",
                    _INFO,
                    _column(f"max by (namespace, job_id) (slurm_job_cpus{_JOBS})", "CPUs", Unit.COUNT),
                    _column(f"max by (namespace, job_id) (slurm_job_gpus{_JOBS})", "GPUs", Unit.COUNT),
                    _column(f"max by (namespace, job_id) (slurm_job_memory_bytes{_JOBS})", "memory", Unit.BYTES),
                    _column(
                        f"(time() - max by (namespace, job_id) (slurm_job_start_time_seconds{_JOBS} > 0))",
                        "running for",
                        Unit.SECONDS,
                    ),
                    _column(f"slurm_job:gpu_utilization:ratio{_JOBS}", "GPUs' utilization", Unit.RATIO),
                ),
                lines(
                    "GPUs' utilization",
                    Query(f"max by (job_id) (slurm_job:gpu_utilization:ratio{_JOBS})", "{{job_id}}"),
                    unit=Unit.RATIO,
                    width=12,
                ),
                lines(
                    "CPUs of the machines",
                    Query(f"max by (job_id) (slurm_job:machine_cpu_busy:ratio{_JOBS})", "{{job_id}}"),
                    unit=Unit.RATIO,
                    width=12,
                ),
            ),
        ),
        Row(
            "Nodes of the jobs",
            (
                _of_nodes("CPUs of the machine in use", "slurm_node:machine_cpu_busy:ratio", Unit.RATIO),
                _of_nodes("Memory of the machine in use", "slurm_node:machine_memory_used:ratio", Unit.RATIO),
                _of_nodes("GPUs' memory in use", "slurm_node:gpu_memory_used:bytes", Unit.BYTES),
                _of_nodes("GPUs' power", "slurm_node:gpu_power:watts", Unit.WATT),
                _of_nodes("InfiniBand received", "slurm_node:infiniband_received:bytes_rate5m", Unit.BYTES_PER_SECOND),
                _of_nodes("Last XID", "slurm_node:gpu_xid:code", Unit.COUNT),
            ),
        ),
    ),
    (Variable("job", "Job", "slurm_job_info{$here}", "job_id", several=True),),
)
"""Jobs by their ids."""
