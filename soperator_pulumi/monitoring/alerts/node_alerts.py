"""Alerts about nodes: those that accept no jobs, drains that do not end, and faults of GPUs, links, and memory."""

from datetime import timedelta

from soperator_pulumi.monitoring.alerts.xid_codes import DRAINING_XIDS
from soperator_pulumi.monitoring.prometheus_rules import Alert, AlertSeverity

_DAY = 86400

_MEASURED = "slurm_node_info{$here} and on (namespace, node) slurm_long_check_time_seconds{$here}"
"""Nodes with a result of a long check. Long checks cover the node sets of these nodes."""

NODE_ALERTS = (
    Alert(
        "SlurmNodeDown",
        'max by (namespace, node) (slurm_node_state{$here,state="down"}) == 1',
        timedelta(minutes=10),
        AlertSeverity.WARNING,
        "The node {{ $labels.node }} is down",
        "slurmd on the node has not answered for 10 minutes. Jobs on the node are lost or requeued.",
    ),
    Alert(
        "SlurmManyNodesOut",
        "avg by (namespace) (slurm_node_unavailable{$here}) > 0.1 and "
        "sum by (namespace) (slurm_node_unavailable{$here}) > 2",
        timedelta(minutes=10),
        AlertSeverity.CRITICAL,
        "{{ $value | humanizePercentage }} of the nodes take no jobs",
        "More than a tenth of the nodes, and at least 3, are down or drained: look for a common cause.",
    ),
    Alert(
        "SlurmNodeDrainedByHealth",
        'max by (namespace, node, check) (slurm_node_drain_since_seconds{$here,source="health"}) > 0',
        timedelta(minutes=30),
        AlertSeverity.WARNING,
        "The node {{ $labels.node }} is drained by the check {{ $labels.check }}",
        "The check has failed for half an hour. The node returns to service only when the check passes again.",
    ),
    Alert(
        "SlurmNodeDrainedByHook",
        'max by (namespace, node, operation) (slurm_node_drain_since_seconds{$here,source="hook"}) > 0',
        timedelta(minutes=10),
        AlertSeverity.WARNING,
        "The node {{ $labels.node }} is drained by the hook {{ $labels.operation }}",
        "The hook failed before or after a job. No check ends such a drain: an administrator must undrain the node.",
    ),
    Alert(
        "SlurmHealthFinding",
        'max by (namespace, node, check) (slurm_health_finding{$here,check!="round"}) == 1',
        timedelta(hours=1),
        AlertSeverity.WARNING,
        "The check {{ $labels.check }} fails on {{ $labels.node }}",
        "The check has failed for an hour. It drains nothing (action: log), so jobs still start on the node.",
    ),
    Alert(
        "SlurmHealthChecksStopped",
        'max by (namespace, node) (slurm_health_finding{$here,check="round"}) == 1',
        timedelta(minutes=10),
        AlertSeverity.WARNING,
        "The node {{ $labels.node }} no longer checks itself",
        "A round of the checks has not ended for 5 minutes, or has no settings: faults no longer drain the node.",
    ),
    Alert(
        "SlurmLongCheckMissing",
        f"((time() - max by (namespace, node, check) (slurm_long_check_time_seconds{{$here}})) > {7 * _DAY} or "
        "max by (namespace, node, check) (slurm_long_check_passed{$here}) == 0) "
        "unless on (namespace, node) slurm_node_unavailable{$here} == 1",
        timedelta(hours=1),
        AlertSeverity.INFO,
        "The node {{ $labels.node }} has not passed {{ $labels.check }} recently",
        "The node is in service, but its last long check failed, or is more than 7 days old.",
    ),
    Alert(
        "SlurmNodeNeverChecked",
        "max by (namespace, node, node_set) (slurm_node_info{$here}) "
        "unless on (namespace, node) slurm_long_check_time_seconds{$here} "
        f"and on (namespace, node_set) ({_MEASURED})",
        timedelta(days=1),
        AlertSeverity.INFO,
        "No long check has measured the node {{ $labels.node }}",
        "Long checks have results for other nodes of its node set, but none for this node for a day.",
    ),
    Alert(
        "SlurmNodeDrainedLong",
        f'time() - max by (namespace, node) (slurm_node_drain_since_seconds{{$here,source="admin"}}) > {3 * _DAY}',
        timedelta(hours=1),
        AlertSeverity.INFO,
        "The node {{ $labels.node }} has been drained for {{ $value | humanizeDuration }}",
        "An administrator drained the node more than 3 days ago.",
    ),
    Alert(
        "SlurmDrainWaits",
        'time() - max by (namespace, node, operation) (slurm_node_drain_since_seconds{$here,source="deployment"}) > '
        f"{_DAY}",
        timedelta(minutes=10),
        AlertSeverity.WARNING,
        "The drain of {{ $labels.node }} for {{ $labels.operation }} has lasted {{ $value | humanizeDuration }}",
        "A deployment drained the node more than a day ago. Jobs still run there, or the deployment was not continued.",
    ),
)
"""Alerts about nodes."""

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
