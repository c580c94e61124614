"""Dashboard of the whole cluster: nodes, queue, GPUs, Slurm's daemons."""

from soperator_pulumi.monitoring.panels import Dashboard, Query, Row, Unit, bars, lines, number, stack, table

_JOBS = ("running", "pending", "suspended", "completing")
_OUT = "max by (node) (slurm_node_unavailable{$here}) == 1"
_IN_SERVICE = f"count by (state) (max by (node, state) (slurm_node_state{{$here}}) unless on (node) {_OUT})"

_USED = "sum(slurm_node_{0}_alloc{{$here}}) / sum(slurm_node_{0}{{$here}})"

CLUSTER_OVERVIEW = Dashboard(
    "slurm-cluster",
    "Slurm cluster",
    "The cluster at a glance. Start here.",
    (
        Row(
            "Now",
            (
                number("slurmctld answers", "max(slurm_up{$here})"),
                number("Nodes", "max(slurm_nodes{$here})"),
                number("Nodes that take no jobs", "sum(slurm_node_unavailable{$here})", warn=1),
                number("Jobs running", "max(slurm_jobs_running{$here})"),
                number("Jobs waiting", "max(slurm_jobs_pending{$here})"),
                number("Alerts", 'count(ALERTS{$here,alertstate="firing"}) or vector(0)', warn=1),
                number("CPUs in use", _USED.format("cpus"), unit=Unit.RATIO),
                number("GPUs in use", _USED.format("gpus"), unit=Unit.RATIO),
                number("GPUs' utilization", "avg(slurm_node:gpu_utilization:ratio{$here})", unit=Unit.RATIO),
                number("GPUs' power", "sum(slurm_node:gpu_power:watts{$here})", unit=Unit.WATT),
            ),
        ),
        Row(
            "Nodes and jobs",
            (
                stack(
                    "Nodes by state",
                    Query(_IN_SERVICE, "{{state}}"),
                    Query(f"count({_OUT}) or vector(0)", "take no jobs"),
                    about="Drained, down, failing or silent nodes take no jobs, even if jobs still run on them.",
                ),
                stack("Jobs", *(Query(f"max(slurm_jobs_{state}{{$here}})", state) for state in _JOBS)),
                lines(
                    "Share in use",
                    Query(_USED.format("cpus"), "CPUs"),
                    Query(_USED.format("gpus"), "GPUs"),
                    Query("sum(slurm_node_memory_alloc_bytes{$here}) / sum(slurm_node_memory_bytes{$here})", "memory"),
                    unit=Unit.RATIO,
                    about="Allocated to jobs, whether they use it or not.",
                ),
            ),
        ),
        Row(
            "slurmctld",
            (
                lines(
                    "Length of a cycle",
                    Query("max(slurm_schedule_cycle_last{$here})", "main"),
                    Query("max(slurm_bf_cycle_last{$here})", "backfill"),
                    unit=Unit.MICROSECONDS,
                ),
                lines(
                    "Queues",
                    Query("max(slurm_server_thread_cnt{$here})", "requests in progress"),
                    Query("max(slurm_agent_queue_size{$here})", "messages to nodes"),
                    Query("max(slurm_slurmdbd_queue_size{$here})", "records to slurmdbd"),
                    about="slurmctld works on 256 requests at a time.",
                ),
                lines(
                    "Jobs in five minutes",
                    Query("max(increase(slurm_sdiag_jobs_submitted{$here}[5m]))", "submitted"),
                    Query("max(increase(slurm_sdiag_jobs_started{$here}[5m]))", "started"),
                    Query("max(increase(slurm_sdiag_jobs_completed{$here}[5m]))", "completed"),
                    Query("max(increase(slurm_sdiag_jobs_failed{$here}[5m]))", "failed"),
                ),
            ),
        ),
        Row(
            "Pods and volumes",
            (
                bars(
                    "Volumes",
                    "max by (persistentvolumeclaim) (1 - kubelet_volume_stats_available_bytes{$here} / "
                    "kubelet_volume_stats_capacity_bytes{$here})",
                    "{{persistentvolumeclaim}}",
                    unit=Unit.RATIO,
                    about="Used share.",
                ),
                bars(
                    "Restarts in a day",
                    "sum by (pod, container) (increase(kube_pod_container_status_restarts_total{$here}[1d])) > 0.5",
                    "{{pod}} {{container}}",
                ),
                bars(
                    "Pods that are not ready",
                    'max by (pod) (kube_pod_status_ready{$here,condition="false"}) == 1',
                    "{{pod}}",
                ),
                table(
                    "Shared images",
                    ("image",),
                    Query("max by (image) (slurm_container_image_bytes{$here})", "size", Unit.BYTES),
                    Query(
                        "time() - max by (image) (slurm_container_image_time_seconds{$here})", "filled", Unit.SECONDS
                    ),
                    about="Unpacked size, and time since the image was filled.",
                ),
            ),
        ),
        Row(
            "Containers",
            (
                stack(
                    "Starts in containers in an hour",
                    Query("sum by (result) (increase(slurm_container_starts_total{$here}[1h]))", "{{result}}"),
                    about="present: the image was there; brought: this start pulled and unpacked it.",
                ),
                lines(
                    "Images brought",
                    Query("sum(rate(slurm_container_brought_bytes_total{$here}[1h]))", "bytes a second"),
                    unit=Unit.BYTES,
                    about="Bytes a second, of unpacked images, on all nodes.",
                ),
                bars(
                    "Copies on nodes' disks",
                    "max by (node) (slurm_container_copies_bytes{$here})",
                    "{{node}}",
                    unit=Unit.BYTES,
                ),
            ),
        ),
    ),
)
"""The whole cluster."""
