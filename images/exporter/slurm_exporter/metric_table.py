"""All metrics: their names, labels and meanings.

Names follow Slurm 26.05's own endpoint if the meaning is the same. Memory is in bytes here (there in MiB, whatever
the name says), and no count is cut off at 65,535.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """A gauge, or a counter if the name ends with `_total`."""

    help: str
    labels: tuple[str, ...] = ()


_STATES = {
    "alloc": "all of whose CPUs are allocated",
    "completing": "on which jobs end",
    "down": "that are down",
    "drain": "that take no further job, drained and draining",
    "drained": "that take no further job, and have none",
    "draining": "that take no further job, and still run some",
    "fail": "that are failing",
    "idle": "without a job, drained ones included",
    "maint": "in a maintenance reservation",
    "mixed": "some of whose CPUs are allocated",
    "noresp": "that do not answer slurmctld",
    "planned": "that the backfill scheduler keeps for a job",
    "resv": "in a reservation",
}

NODE_STATES = tuple(_STATES)

_JOBS = {
    "cancelled": "that were cancelled",
    "completed": "that completed",
    "completing": "that are ending",
    "failed": "that failed",
    "hold": "that are held",
    "node_failed": "whose node failed",
    "outofmemory": "that ran out of memory",
    "pending": "that wait, held ones included",
    "preempted": "that were preempted",
    "running": "that run",
    "suspended": "that are suspended",
    "timeout": "that reached their time limit",
}

JOB_STATES = tuple(_JOBS)
_ENDED = {"cancelled", "completed", "failed", "node_failed", "outofmemory", "preempted", "timeout"}


def _jobs(prefix: str, whose: str, labels: tuple[str, ...], states: tuple[str, ...]) -> dict[str, Metric]:
    kept = " (since slurmctld keeps ended jobs: MinJobAge)"
    counts = {
        f"{prefix}_{state}": Metric(f"Jobs{whose} {_JOBS[state]}{kept if state in _ENDED else ''}.", labels)
        for state in states
    }
    return counts | {
        f"{prefix}_cpus_alloc": Metric(f"CPUs of running jobs{whose}.", labels),
        f"{prefix}_gpus_alloc": Metric(f"GPUs of running jobs{whose}; 0 without accounting.", labels),
    }


_OF_WHOM = ("running", "pending", "hold")

METRICS: dict[str, Metric] = {
    "slurm_up": Metric("1 if slurmctld answered the last round, 0 if it did not."),
    "slurm_exporter_last_success_time_seconds": Metric("Time of the last answer, since 1970.", ("source",)),
    "slurm_exporter_call_seconds": Metric("Duration of the last call of Slurm.", ("source",)),
    "slurm_exporter_errors_total": Metric("Calls of Slurm that failed or took too long.", ("source",)),
    "slurm_exporter_unread_values": Metric(
        "Values of the last answer whose form is unknown: no metric has them, and the log has an example.",
        ("source", "field"),
    ),
    "slurm_exporter_jobs_left_out": Metric(
        "Jobs without series of their own, as there are more than 5000: some of those that wait."
    ),
    "slurm_exporter_events_total": Metric(
        "Events of Kubernetes for drains by health checks: created, failed, or dropped as too many waited.",
        ("outcome",),
    ),
    "slurm_exporter_node_conditions": Metric("Machines that have the condition SlurmNodeHealthy of the cluster."),
    "slurm_exporter_node_condition_errors_total": Metric("Rounds in which Kubernetes refused a condition."),
    "slurm_nodes": Metric("Nodes."),
    **{f"slurm_nodes_{state}": Metric(f"Nodes {meaning}.") for state, meaning in _STATES.items()},
    "slurm_node_info": Metric("1 for each node, with its node set.", ("node", "node_set")),
    "slurm_node_state": Metric("1 for each node, with its base state.", ("node", "state")),
    "slurm_node_unavailable": Metric("1 if the node takes no job: drained, down, failing or silent.", ("node",)),
    "slurm_node_drain_since_seconds": Metric(
        "Time since 1970 at which a drained or draining node got its reason. `source` is health, hook, deployment or "
        "admin; `operation` is a deployment's (scale-down, rolling-update, pod-stop, and so on) or the name of a hook "
        "of jobs, `check` a health check.",
        ("node", "source", "operation", "check", "reason"),
    ),
    "slurm_node_cpus": Metric("CPUs of the node that jobs can have: without those of reserved cores.", ("node",)),
    "slurm_node_cpus_alloc": Metric("CPUs of the node that are allocated to jobs.", ("node",)),
    "slurm_node_gpus": Metric("Whole GPUs of the node.", ("node",)),
    "slurm_node_gpus_alloc": Metric("Whole GPUs of the node that are allocated to jobs.", ("node",)),
    "slurm_node_memory_bytes": Metric("Memory of the node that jobs may use.", ("node",)),
    "slurm_node_memory_alloc_bytes": Metric("Memory of the node that is allocated to jobs.", ("node",)),
    "slurm_node_memory_free_bytes": Metric("Free memory, as the node's kernel counts it.", ("node",)),
    "slurm_health_check_failed": Metric("1 if a failed health check drains the node.", ("node", "check")),
    "slurm_health_replace_machine": Metric(
        "1 if the health check that drains the node asks for another machine (`action: drain_and_replace`).",
        ("node", "check"),
    ),
    "slurm_health_finding": Metric(
        "1 if a health check fails that drains nothing (`action: log`); check `round`: its rounds have stopped.",
        ("node", "check"),
    ),
    "slurm_long_check_passed": Metric(
        "1 if the node passed its last run of the long check, 0 if it failed.", ("node", "check")
    ),
    "slurm_long_check_time_seconds": Metric(
        "Time since 1970 of the node's last result of the long check.", ("node", "check")
    ),
    "slurm_long_check_value": Metric(
        "Value of that result: GB/s, and Gb/s of tcp_bandwidth and rdma_bandwidth.", ("node", "check")
    ),
    "slurm_container_image_bytes": Metric("Bytes of an image of `containers.images`, unpacked.", ("image",)),
    "slurm_container_image_time_seconds": Metric("Time since 1970 at which that image was filled.", ("image",)),
    "slurm_container_store_images": Metric("Images in the shared store, former ones of a tag included."),
    "slurm_container_store_bytes": Metric("Bytes of all images in the shared store."),
    "slurm_container_starts_total": Metric(
        "Starts of steps in containers: `result` is present if the image was there, brought if this start brought it "
        "(others waited), or failed.",
        ("node", "result"),
    ),
    "slurm_container_brought_bytes_total": Metric("Bytes of images that starts brought, unpacked.", ("node",)),
    "slurm_container_brought_seconds_total": Metric("Seconds of these starts.", ("node",)),
    "slurm_container_copies": Metric("Copies of images on the node's disk (`containers.local`).", ("node",)),
    "slurm_container_copies_bytes": Metric("Bytes of these copies.", ("node",)),
    "slurm_rest_certificate_end_time_seconds": Metric(
        "Time since 1970 at which the certificate ends that the REST API serves (`rest.tls`)."
    ),
    "slurm_partition_nodes": Metric("Nodes of the partition.", ("partition",)),
    "slurm_partition_cpus": Metric("CPUs of the partition's nodes that jobs can have.", ("partition",)),
    "slurm_partition_gpus": Metric("Whole GPUs of the partition's nodes.", ("partition",)),
    "slurm_partition_nodes_cpus_alloc": Metric(
        "CPUs of the partition's nodes that are allocated to jobs.", ("partition",)
    ),
    "slurm_partition_nodes_gpus_alloc": Metric(
        "Whole GPUs of the partition's nodes that are allocated to jobs.", ("partition",)
    ),
    "slurm_jobs": Metric("Jobs that slurmctld knows, counting every task of an array."),
    **_jobs("slurm_jobs", "", (), JOB_STATES),
    **_jobs("slurm_user_jobs", " of the user", ("username",), _OF_WHOM),
    **_jobs("slurm_account_jobs", " of the account", ("account",), _OF_WHOM),
    **_jobs("slurm_partition_jobs", " of the partition", ("partition",), _OF_WHOM),
    "slurm_jobs_pending_by_reason": Metric("Jobs that wait, by Slurm's reason.", ("reason",)),
    "slurm_jobs_oldest_pending_submit_time_seconds": Metric(
        "Submission time, since 1970, of the job that has waited longest without being held.", ("partition",)
    ),
    "slurm_job_info": Metric(
        "1 for each job that has not ended.",
        ("job_id", "job_name", "username", "account", "partition", "state", "reason"),
    ),
    "slurm_job_node": Metric("1 for each node of each running job.", ("job_id", "node")),
    "slurm_job_cpus": Metric("CPUs of a running job.", ("job_id",)),
    "slurm_job_gpus": Metric("GPUs of a running job; 0 without accounting.", ("job_id",)),
    "slurm_job_memory_bytes": Metric("Memory of a running job.", ("job_id",)),
    "slurm_job_submit_time_seconds": Metric("Time since 1970 at which a job was submitted.", ("job_id",)),
    "slurm_job_start_time_seconds": Metric("Time since 1970 at which a running job started.", ("job_id",)),
    "slurm_job_end_time_seconds": Metric("Time since 1970 at which a running job reaches its limit.", ("job_id",)),
    "slurm_server_thread_cnt": Metric("Threads of slurmctld that serve requests, 256 at most."),
    "slurm_agent_queue_size": Metric("Messages of slurmctld to nodes that wait."),
    "slurm_slurmdbd_queue_size": Metric("Messages of slurmctld to slurmdbd that wait: records that are late."),
    "slurm_schedule_cycle_last": Metric("Microseconds of the main scheduler's last cycle."),
    "slurm_schedule_cycle_max": Metric("Microseconds of the main scheduler's longest cycle."),
    "slurm_schedule_queue_len": Metric("Jobs that the main scheduler looked at."),
    "slurm_bf_cycle_last": Metric("Microseconds of the backfill scheduler's last cycle."),
    "slurm_bf_cycle_max": Metric("Microseconds of the backfill scheduler's longest cycle."),
    "slurm_bf_last_depth": Metric("Jobs that the backfill scheduler's last cycle looked at."),
    "slurm_backfilled_jobs": Metric("Jobs that the backfill scheduler started since slurmctld's start."),
    "slurm_sdiag_jobs_submitted": Metric("Jobs submitted since midnight UTC, or since the last reset."),
    "slurm_sdiag_jobs_started": Metric("Jobs started since midnight UTC, or since the last reset."),
    "slurm_sdiag_jobs_completed": Metric("Jobs completed since midnight UTC, or since the last reset."),
    "slurm_sdiag_jobs_canceled": Metric("Jobs cancelled since midnight UTC, or since the last reset."),
    "slurm_sdiag_jobs_failed": Metric("Jobs failed since midnight UTC, or since the last reset."),
}
