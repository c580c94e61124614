"""Alerts about GPUs, links and memory, from dcgm-exporter and node-exporter, with or without health checks."""

from datetime import timedelta

from soperator_pulumi.monitoring.alerts.xid_codes import DRAINING_XIDS
from soperator_pulumi.monitoring.prometheus_rules import Alert, AlertSeverity

_XID = "max by (namespace, node, gpu) (slurm_node:gpu_xid:code{$here}"

HARDWARE_ALERTS = (
    Alert(
        "SlurmGpuXid",
        " or ".join(f"{_XID} == {code})" for code in DRAINING_XIDS),
        timedelta(minutes=1),
        AlertSeverity.WARNING,
        "GPU {{ $labels.gpu }} of {{ $labels.node }} has the error XID {{ $value }}",
        "NVIDIA's driver asks for a reset or more. The metric keeps the error until the driver is loaded again.",
    ),
    Alert(
        "SlurmGpuMemoryBroken",
        "max by (namespace, node, gpu) (slurm_node:gpu_row_remap_failure:count{$here}) > 0",
        timedelta(minutes=1),
        AlertSeverity.CRITICAL,
        "The memory of GPU {{ $labels.gpu }} of {{ $labels.node }} cannot be repaired",
        "A row of the memory could not be replaced: NVIDIA asks to exchange the GPU.",
    ),
    Alert(
        "SlurmGpuLost",
        "max by (namespace, node) (slurm_node_gpus{$here}) > on (namespace, node) count by (namespace, node) (count by "
        "(namespace, node, gpu) (slurm_node:gpu_temperature:celsius{$here}))",
        timedelta(minutes=15),
        AlertSeverity.WARNING,
        "DCGM sees fewer GPUs of {{ $labels.node }} than Slurm",
        "Slurm counts {{ $value }} GPUs on the node, DCGM fewer.",
    ),
    Alert(
        "SlurmGpuHot",
        "max by (namespace, node, gpu) (slurm_node:gpu_temperature:celsius{$here}) > 90",
        timedelta(minutes=15),
        AlertSeverity.WARNING,
        "GPU {{ $labels.gpu }} of {{ $labels.node }} has {{ $value }} °C",
        "Above 90 °C for 15 minutes. Most models lower their clocks between 85 and 95 °C, and jobs slow down.",
    ),
    Alert(
        "SlurmLinkFlaps",
        "slurm_node:infiniband_link_downed:increase1h{$here} > 0.5",
        timedelta(minutes=1),
        AlertSeverity.WARNING,
        "A link of {{ $labels.node }} went down",
        "An InfiniBand or RoCE port lost its link in the last hour. Jobs over several nodes hang or fail.",
    ),
    Alert(
        "SlurmLinkErrors",
        "slurm_node:infiniband_symbol_errors:increase1h{$here} > 120",
        timedelta(minutes=5),
        AlertSeverity.WARNING,
        "A link of {{ $labels.node }} has symbol errors",
        '{{ $value | printf "%.0f" }} symbol errors in an hour, more than 120: cable or optics are bad.',
    ),
    Alert(
        "SlurmOutOfMemory",
        "slurm_node:machine_oom_kills:increase15m{$here} > 0.5",
        timedelta(0),
        AlertSeverity.INFO,
        "The kernel killed processes for memory on the machine of {{ $labels.node }}",
        '{{ $value | printf "%.0f" }} processes in 15 minutes, of a job or of something else on the machine.',
    ),
)
"""Alerts about hardware."""
