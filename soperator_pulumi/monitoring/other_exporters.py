"""Metrics that rules and dashboards read from other projects' exporters, by the chart that installs the exporter."""

from collections.abc import Mapping

OTHER_EXPORTERS: Mapping[str, tuple[str, ...]] = {
    "kube-state-metrics": (
        "kube_cronjob_created",
        "kube_cronjob_status_last_schedule_time",
        "kube_cronjob_status_last_successful_time",
        "kube_pod_container_status_restarts_total",
        "kube_pod_info",
        "kube_pod_owner",
        "kube_pod_status_ready",
    ),
    "kubelet": (
        "kubelet_volume_stats_available_bytes",
        "kubelet_volume_stats_capacity_bytes",
        "kubelet_volume_stats_inodes",
        "kubelet_volume_stats_inodes_used",
    ),
    "node-exporter": (
        "node_cpu_seconds_total",
        "node_infiniband_link_downed_total",
        "node_infiniband_port_data_received_bytes_total",
        "node_infiniband_port_data_transmitted_bytes_total",
        "node_infiniband_symbol_error_total",
        "node_load5",
        "node_memory_MemAvailable_bytes",
        "node_memory_MemTotal_bytes",
        "node_nfs_rpc_retransmissions_total",
        "node_vmstat_oom_kill",
    ),
    "dcgm-exporter": (
        "DCGM_FI_DEV_FB_FREE",
        "DCGM_FI_DEV_FB_USED",
        "DCGM_FI_DEV_GPU_TEMP",
        "DCGM_FI_DEV_GPU_UTIL",
        "DCGM_FI_DEV_POWER_USAGE",
        "DCGM_FI_DEV_ROW_REMAP_FAILURE",
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        "DCGM_FI_DEV_XID_ERRORS",
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    ),
    "Prometheus": ("ALERTS",),
}
"""Metrics of kube-prometheus-stack and of the GPU Operator with their default settings."""
