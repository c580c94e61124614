"""Series of a cluster as Prometheus has them after a scrape, in promtool's notation: a healthy one, and changes of it.

Two nodes with two GPUs, `gpu-0` with job 7 of alice and `gpu-1` idle; each on a machine of its own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

NAMESPACE = "hpc"
HOURS = 6
"""Length of the series. Samples are a minute apart."""

_MINUTES = HOURS * 60
_BY_EXPORTER = 'job="hpc/exporter",instance="10.0.0.9:9341",pod="exporter-abc"'
_NODES = ("gpu-0", "gpu-1")

Series = Mapping[str, str]
"""Values in promtool's notation, by the series."""


def slurm(metric: str, labels: str = "", value: str = "1") -> tuple[str, str]:
    """Return a series of Slurm's exporter. A value of one number stays as it is for the whole time."""
    more = f",{labels}" if labels else ""
    return f'{metric}{{namespace="{NAMESPACE}",{_BY_EXPORTER}{more}}}', steady(value)


def kubernetes(metric: str, labels: str, value: str = "1") -> tuple[str, str]:
    """Return a series of kube-state-metrics or the kubelet about the cluster's namespace."""
    return f'{metric}{{namespace="{NAMESPACE}",{labels}}}', steady(value)


def machine(node: str, metric: str, labels: str = "", value: str = "1") -> tuple[str, str]:
    """Return a series of node-exporter on the machine of a node."""
    number = node[-1]
    more = f",{labels}" if labels else ""
    own = f'namespace="monitoring",pod="node-exporter-{number}",instance="10.1.0.{number}:9100"'
    return f"{metric}{{{own}{more}}}", steady(value)


def gpu(node: str, number: int, metric: str, value: str, job: str = "") -> tuple[str, str]:
    """Return a series of dcgm-exporter about a GPU of a node's pod, as a scrape without honoured labels has it."""
    mapped = f',hpc_job="{job}"' if job else ""
    of_pod = f'exported_namespace="{NAMESPACE}",exported_pod="{node}",exported_container="slurmd"'
    own = f'namespace="gpu-operator",pod="dcgm-{node[-1]}",Hostname="machine-{node[-1]}"'
    return f'{metric}{{{own},{of_pod},gpu="{number}",UUID="GPU-{node}-{number}"{mapped}}}', steady(value)


def steady(value: str) -> str:
    """Return the notation of a value for the whole time: `3` stays, `0+2` grows by 2 each minute."""
    growing = value if "+" in value else f"{value}+0"
    return f"{growing}x{_MINUTES}"


def lasting(world: Series, hours: int) -> dict[str, str]:
    """Return a world that lasts for other hours."""
    return {name: values.replace(f"x{_MINUTES}", f"x{hours * 60}") for name, values in world.items()}


def changed(world: Series, without: Iterable[str] = (), *series: tuple[str, str]) -> dict[str, str]:
    """Return a world with other series.

    Args:
        world: The world.
        without: Patterns of series that leave.
        series: Series that come, or have other values.
    """
    left = {name: values for name, values in world.items() if not any(re.search(text, name) for text in without)}
    return {**left, **dict(series)}


def _slurm() -> Iterator[tuple[str, str]]:
    yield slurm("slurm_nodes", value="2")
    jobs = {"": 3, "_running": 1, "_pending": 1, "_hold": 1, "_failed": 1}
    for state, count in {
        **jobs,
        "_suspended": 0,
        "_completing": 0,
        **dict.fromkeys(("_node_failed", "_timeout", "_outofmemory"), 0),
    }.items():
        yield slurm(f"slurm_jobs{state}", value=str(count))
    for name, value in {
        "slurm_up": "1",
        "slurm_server_thread_cnt": "3",
        "slurm_agent_queue_size": "0",
        "slurm_slurmdbd_queue_size": "0",
        "slurm_rest_certificate_end_time_seconds": "2000000",
        "slurm_schedule_cycle_last": "900",
        "slurm_bf_cycle_last": "12000",
        "slurm_sdiag_jobs_submitted": "0+1",
        "slurm_sdiag_jobs_started": "0+1",
        "slurm_sdiag_jobs_completed": "0+1",
        "slurm_sdiag_jobs_failed": "0+0",
    }.items():
        yield slurm(name, value=value)
    yield slurm("slurm_jobs_oldest_pending_submit_time_seconds", 'partition="main"', "60")
    for metric, value in {"bytes": "20000000000", "time_seconds": "0+60"}.items():
        yield slurm(f"slurm_container_image_{metric}", 'image="nvcr.io/nvidia/pytorch:26.09-py3"', value)
    for source in ("nodes", "jobs"):
        yield slurm("slurm_exporter_last_success_time_seconds", f'source="{source}"', "0+60")
    yield slurm("slurm_jobs_pending_by_reason", 'reason="JobHeldUser"')
    for kind, label in (("user", 'username="alice"'), ("account", 'account="ml"'), ("partition", 'partition="main"')):
        for state in ("running", "pending", "cpus_alloc", "gpus_alloc"):
            yield slurm(f"slurm_{kind}_jobs_{state}", label)


def _slurm_nodes() -> Iterator[tuple[str, str]]:
    for node in _NODES:
        busy = node == "gpu-0"
        of_node = f'node="{node}"'
        for metric, value in {
            "cpus": "8",
            "cpus_alloc": "4" if busy else "0",
            "gpus": "2",
            "gpus_alloc": "2" if busy else "0",
            "memory_bytes": "64000000000",
            "memory_alloc_bytes": "32000000000" if busy else "0",
            "unavailable": "0",
        }.items():
            yield slurm(f"slurm_node_{metric}", of_node, value)
        for metric, value in {"passed": "1", "time_seconds": "0+60", "value": "12.5"}.items():
            yield slurm(f"slurm_long_check_{metric}", f'{of_node},check="memory_bandwidth"', value)
        for result in ("present", "brought", "failed"):
            yield slurm("slurm_container_starts_total", f'{of_node},result="{result}"', "0+1")
        for metric, value in {"brought_bytes_total": "0+6000000000", "copies_bytes": "20000000000"}.items():
            yield slurm(f"slurm_container_{metric}", of_node, value)
        yield slurm("slurm_node_info", f'{of_node},node_set="gpu"')
        yield slurm("slurm_node_state", f'{of_node},state="{"allocated" if busy else "idle"}"')


def _slurm_jobs() -> Iterator[tuple[str, str]]:
    of_job = 'job_id="7"'
    info = 'job_name="train",username="alice",account="ml",partition="main",state="running",reason="None"'
    yield slurm("slurm_job_info", f"{of_job},{info}")
    yield slurm("slurm_job_node", f'{of_job},node="gpu-0"')
    for metric, value in {"cpus": "4", "gpus": "2", "memory_bytes": "32000000000", "start_time_seconds": "1"}.items():
        yield slurm(f"slurm_job_{metric}", of_job, value)


def _kubernetes() -> Iterator[tuple[str, str]]:
    for node in _NODES:
        number = node[-1]
        yield kubernetes("kube_pod_info", f'pod="{node}",node="machine-{number}",host_ip="10.1.0.{number}"')
        pod = f'namespace="monitoring",pod="node-exporter-{number}",node="machine-{number}"'
        yield f"kube_pod_info{{{pod}}}", steady("1")
    for pod in ("controller-0", *_NODES):
        yield kubernetes("kube_pod_owner", f'pod="{pod}",owner_kind="StatefulSet",owner_name="{pod[:-2]}"')
        yield kubernetes("kube_pod_status_ready", f'pod="{pod}",condition="true"')
        yield kubernetes("kube_pod_status_ready", f'pod="{pod}",condition="false"', "0")
        yield kubernetes("kube_pod_container_status_restarts_total", f'pod="{pod}",container="main"', "0")
    for name, value in {"available_bytes": "60", "capacity_bytes": "100", "inodes_used": "10", "inodes": "100"}.items():
        yield kubernetes(f"kubelet_volume_stats_{name}", 'persistentvolumeclaim="jail"', value)
    for name in ("schedule", "successful"):
        yield kubernetes(f"kube_cronjob_status_last_{name}_time", 'cronjob="accounting-dump"', "1000")


def _machines() -> Iterator[tuple[str, str]]:
    for node in _NODES:
        for cpu in ("0", "1"):
            yield machine(node, "node_cpu_seconds_total", f'cpu="{cpu}",mode="idle"', "0+30")
        yield machine(node, "node_memory_MemAvailable_bytes", value="750")
        yield machine(node, "node_memory_MemTotal_bytes", value="1000")
        yield machine(node, "node_load5", value="1")
        yield machine(node, "node_vmstat_oom_kill", value="4")
        yield machine(node, "node_nfs_rpc_retransmissions_total", value="0+6")
        for metric in ("port_data_received_bytes", "port_data_transmitted_bytes", "link_downed", "symbol_error"):
            value = "0+60000" if "bytes" in metric else "1"
            yield machine(node, f"node_infiniband_{metric}_total", 'device="mlx5_0",port="1"', value)


def _gpus() -> Iterator[tuple[str, str]]:
    for node in _NODES:
        for number in (0, 1):
            for metric, value in {
                "DEV_GPU_UTIL": "80" if node == "gpu-0" else "0",
                "PROF_PIPE_TENSOR_ACTIVE": "0.4",
                "DEV_FB_USED": "1000",
                "DEV_FB_FREE": "3000",
                "DEV_GPU_TEMP": "60",
                "DEV_POWER_USAGE": "300",
                "DEV_XID_ERRORS": "0",
                "DEV_ROW_REMAP_FAILURE": "0",
                "DEV_UNCORRECTABLE_REMAPPED_ROWS": "0",
            }.items():
                yield gpu(node, number, f"DCGM_FI_{metric}", value)


HEALTHY: Series = dict([*_slurm(), *_slurm_nodes(), *_slurm_jobs(), *_kubernetes(), *_machines(), *_gpus()])
"""A cluster without a fault: no alert fires."""

_DRAINS = (
    ("admin", 'operation="",check="",reason="sent for repair"'),
    ("deployment", 'operation="scale-down",check="",reason="soperator-pulumi hpc: scale-down 1a2b3c"'),
    ("health", 'operation="",check="gpu_count",reason="health gpu_count: 7, allowed 8"'),
)

BUSY: Series = changed(
    HEALTHY,
    (),
    *(
        slurm("slurm_node_drain_since_seconds", f'node="gpu-{number}",source="{source}",{labels}', "60")
        for number, (source, labels) in enumerate(_DRAINS)
    ),
    slurm("slurm_node_unavailable", 'node="gpu-1"'),
    slurm("slurm_health_check_failed", 'node="gpu-1",check="gpu_count"'),
    slurm("slurm_health_finding", 'node="gpu-0",check="gpu_slowdown"'),
    kubernetes("kube_pod_status_ready", 'pod="gpu-1",condition="false"'),
    kubernetes("kube_pod_container_status_restarts_total", 'pod="gpu-1",container="main"', "0+0.1"),
)
"""A cluster with one of each: drains, a check that fails, a container that restarts. Every panel shows something."""
