"""Series that join metrics of machines and GPUs with Slurm's nodes, jobs and users.

| from | joined by |
|---|---|
| Slurm node | label `node`, which is also the name of the worker's pod |
| machine of a node | `kube_pod_info` of kube-state-metrics: `pod` is the Slurm node, `node` the machine |
| GPU | labels of its pod: `exported_namespace` and `exported_pod`, or `namespace` and `pod` if labels are honoured |
| job of a GPU | dcgm-exporter's `hpc_job` if a prolog writes it, otherwise every job with GPUs on the node |
| machine | `namespace` and `pod` of node-exporter's own pod, which `kube_pod_info` maps to the machine |
"""

from soperator_pulumi.monitoring.prometheus_rules import Recording

_MACHINE = "slurm_node:machine:info{$here}"
_OF_JOB = "on (namespace, job_id)"
_OF_NODE = "on (namespace, node)"


def _of_gpus(record: str, metric: str, about: str, *, factor: str = "") -> Recording:
    """Return the recording of a metric of dcgm-exporter, by Slurm node, GPU and job."""
    workload = f'{metric}{{exported_$here,exported_pod!=""}}'
    namespace = f'label_replace({workload}, "namespace", "$1", "exported_namespace", "(.+)")'
    exported = f'label_replace({namespace}, "node", "$1", "exported_pod", "(.+)")'
    honoured = f'label_replace({metric}{{$here,exported_pod="",pod!=""}}, "node", "$1", "pod", "(.+)")'
    on_nodes = f"({exported} or {honoured}) and {_OF_NODE} slurm_node_cpus{{$here}}"
    return Recording(record, f"max by (namespace, node, gpu, hpc_job) ({on_nodes}){factor}", about)


def _of_machines(record: str, expr: str, about: str) -> Recording:
    """Return the recording of an expression over node-exporter's series, by Slurm node."""
    pods = "max by (namespace, pod, node) (kube_pod_info)"
    machines = (
        f'label_replace(({expr}) * on (namespace, pod) group_left (node) {pods}, "machine", "$1", "node", "(.+)")'
    )
    joined = f"{_MACHINE} * on (machine) group_left () max by (machine) ({machines})"
    return Recording(record, f"max by (namespace, node) ({joined})", about)


def _sum(metric: str, window: str, function: str) -> str:
    return f"sum by (namespace, pod) ({function}({metric}[{window}]))"


_NODES = (
    Recording(
        "slurm_node:machine:info",
        'max by (namespace, node, machine) (label_replace(label_replace(kube_pod_info{$here}, "machine", "$1", "node", '
        f'"(.+)"), "node", "$1", "pod", "(.+)") and {_OF_NODE} slurm_node_cpus{{$here}})',
        "1 for every Slurm node, with the label `machine`: the Kubernetes node that its pod runs on.",
    ),
    _of_machines(
        "slurm_node:machine_cpu_busy:ratio",
        '1 - avg by (namespace, pod) (rate(node_cpu_seconds_total{mode="idle"}[5m]))',
        "Busy share of the machine's CPUs, counting everything that runs on the machine.",
    ),
    _of_machines(
        "slurm_node:machine_memory_used:ratio",
        "1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes",
        "Used share of the machine's memory.",
    ),
    _of_machines(
        "slurm_node:machine_load:ratio",
        'node_load5 / on (namespace, pod) count by (namespace, pod) (node_cpu_seconds_total{mode="idle"})',
        "Five-minute load per CPU of the machine.",
    ),
    _of_machines(
        "slurm_node:machine_oom_kills:increase15m",
        "increase(node_vmstat_oom_kill[15m])",
        "Processes on the machine that the kernel's OOM killer ended in 15 minutes.",
    ),
    _of_machines(
        "slurm_node:infiniband_received:bytes_rate5m",
        _sum("node_infiniband_port_data_received_bytes_total", "5m", "rate"),
        "Bytes per second that all InfiniBand and RoCE ports of the machine receive.",
    ),
    _of_machines(
        "slurm_node:infiniband_sent:bytes_rate5m",
        _sum("node_infiniband_port_data_transmitted_bytes_total", "5m", "rate"),
        "Bytes per second that all InfiniBand and RoCE ports of the machine send.",
    ),
    _of_machines(
        "slurm_node:infiniband_link_downed:increase1h",
        _sum("node_infiniband_link_downed_total", "1h", "increase"),
        "Number of times in an hour that links of the machine's ports went down.",
    ),
    _of_machines(
        "slurm_node:infiniband_symbol_errors:increase1h",
        _sum("node_infiniband_symbol_error_total", "1h", "increase"),
        "Symbol errors of the machine's ports in an hour.",
    ),
    _of_machines(
        "slurm_node:nfs_retransmissions:rate5m",
        "rate(node_nfs_rpc_retransmissions_total[5m])",
        "NFS requests per second that the machine repeats because the server is slow.",
    ),
)

_GPUS = (
    _of_gpus(
        "slurm_node:gpu_utilization:ratio",
        "DCGM_FI_DEV_GPU_UTIL",
        "Share of time in which a GPU runs anything.",
        factor=" / 100",
    ),
    _of_gpus(
        "slurm_node:gpu_tensor_active:ratio",
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        "Share of time in which tensor cores are active.",
    ),
    _of_gpus("slurm_node:gpu_memory_used:bytes", "DCGM_FI_DEV_FB_USED", "Used memory of a GPU.", factor=" * 1048576"),
    _of_gpus("slurm_node:gpu_memory_free:bytes", "DCGM_FI_DEV_FB_FREE", "Free memory of a GPU.", factor=" * 1048576"),
    _of_gpus("slurm_node:gpu_temperature:celsius", "DCGM_FI_DEV_GPU_TEMP", "Temperature of a GPU."),
    _of_gpus("slurm_node:gpu_power:watts", "DCGM_FI_DEV_POWER_USAGE", "Power of a GPU."),
    _of_gpus(
        "slurm_node:gpu_xid:code",
        "DCGM_FI_DEV_XID_ERRORS",
        "Last XID of a GPU, which stays until the driver is loaded again.",
    ),
    _of_gpus(
        "slurm_node:gpu_row_remap_failure:count", "DCGM_FI_DEV_ROW_REMAP_FAILURE", "1 if memory cannot be repaired."
    ),
    _of_gpus(
        "slurm_node:gpu_uncorrectable_rows:count",
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        "Rows of a GPU's memory that were replaced because of uncorrectable errors.",
    ),
)

_GPU_OF_NODE = "avg by (namespace, node) (slurm_node:gpu_utilization:ratio{$here})"

_JOBS = (
    Recording(
        "slurm_job:gpu_utilization:ratio",
        'avg by (namespace, job_id) (label_replace(slurm_node:gpu_utilization:ratio{$here,hpc_job!=""}, "job_id", '
        f'"$1", "hpc_job", "(.+)")) or avg by (namespace, job_id) (slurm_job_node{{$here}} * {_OF_NODE} group_left () '
        f"{_GPU_OF_NODE} and {_OF_JOB} slurm_job_gpus{{$here}} > 0)",
        "Utilization of the GPUs of a job.",
    ),
    Recording(
        "slurm_job:machine_cpu_busy:ratio",
        f"avg by (namespace, job_id) (slurm_job_node{{$here}} * {_OF_NODE} group_left () "
        "slurm_node:machine_cpu_busy:ratio{$here})",
        "Busy share of the CPUs of a job's machines.",
    ),
    Recording(
        "slurm_user:gpu_utilization:ratio",
        f"avg by (namespace, username) (slurm_job:gpu_utilization:ratio{{$here}} * {_OF_JOB} group_left (username) "
        "max by (namespace, job_id, username) (slurm_job_info{$here}))",
        "Utilization of the GPUs of all jobs of a user.",
    ),
)

RECORDINGS = (*_NODES, *_GPUS, *_JOBS)
"""All recorded series. Later ones read earlier ones, which Prometheus evaluates first."""
