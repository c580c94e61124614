"""Dashboard of jobs by id: their resources, and their use of them."""

from soperator_pulumi.monitoring.panels import Dashboard, Panel, Query, Row, Unit, Variable, lines, table

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
