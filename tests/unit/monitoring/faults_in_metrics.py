"""A fault for each alert: the healthy cluster with a few other series, and the times around the alert."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.unit.monitoring.world import HEALTHY, Series, changed, gpu, kubernetes, lasting, machine, slurm


@dataclass(frozen=True)
class Fault:
    """A world in which one alert fires."""

    world: Series
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the alert, by which a person finds the place."""
    before: str = "1m"
    """Time at which it does not fire yet."""
    after: str = "4h"
    """Time at which it fires."""
    every: str = "1m"
    """Time between evaluations of the rules, which take long where there are many."""
    others: tuple[str, ...] = ()
    """Alerts that the same fault makes fire, too."""


def _with(*series: tuple[str, str]) -> Series:
    return changed(HEALTHY, (), *series)


def _volume(metric: str, value: str) -> tuple[str, str]:
    return kubernetes(f"kubelet_volume_stats_{metric}", 'persistentvolumeclaim="jail"', value)


def _drained(source: str, operation: str = "", check: str = "", since: str = "60") -> Series:
    labels = f'node="gpu-1",source="{source}",operation="{operation}",check="{check}",reason="x"'
    return _with(slurm("slurm_node_drain_since_seconds", labels, since))


def _link(metric: str, value: str) -> Series:
    return _with(machine("gpu-1", f"node_infiniband_{metric}_total", 'device="mlx5_0",port="1"', value))


def _idle_gpus() -> Series:
    return _with(*(gpu("gpu-0", number, "DCGM_FI_DEV_GPU_UTIL", "1") for number in (0, 1)))


FAULTS: Mapping[str, Fault] = {
    "SlurmMetricsMissing": Fault(changed(HEALTHY, ["^slurm_"]), {"namespace": "hpc"}, before="9m", after="11m"),
    "SlurmControllerDown": Fault(_with(slurm("slurm_up", value="0")), before="2m", after="4m"),
    "SlurmMetricsStale": Fault(
        _with(slurm("slurm_exporter_last_success_time_seconds", 'source="jobs"', "60")),
        {"source": "jobs"},
        before="15m",
        after="18m",
    ),
    "SlurmPodNotReady": Fault(
        _with(
            kubernetes("kube_pod_status_ready", 'pod="controller-0",condition="true"', "0"),
            kubernetes("kube_pod_status_ready", 'pod="controller-0",condition="false"', "1"),
            kubernetes("kube_pod_status_ready", 'pod="gpu-1",condition="false"', "1"),
        ),
        {"pod": "controller-0"},
        before="9m",
        after="11m",
    ),
    "SlurmPodRestarts": Fault(
        _with(kubernetes("kube_pod_container_status_restarts_total", 'pod="gpu-1",container="main"', "0+0.1")),
        {"pod": "gpu-1", "container": "main"},
        before="10m",
        after="2h",
    ),
    "SlurmControllerBusy": Fault(_with(slurm("slurm_server_thread_cnt", value="250")), before="4m", after="6m"),
    "SlurmAgentQueueGrows": Fault(_with(slurm("slurm_agent_queue_size", value="5000")), before="9m", after="11m"),
    "SlurmAccountingBehind": Fault(_with(slurm("slurm_slurmdbd_queue_size", value="5000")), before="9m", after="11m"),
    "SlurmVolumeFills": Fault(
        _with(_volume("available_bytes", "7")), {"persistentvolumeclaim": "jail"}, before="14m", after="16m"
    ),
    "SlurmVolumeFull": Fault(
        _with(_volume("available_bytes", "1")), {"persistentvolumeclaim": "jail"}, before="4m", after="6m", others=()
    ),
    "SlurmVolumeInodes": Fault(
        _with(_volume("inodes_used", "95")), {"persistentvolumeclaim": "jail"}, before="14m", after="16m"
    ),
    "SlurmRestCertificateEnds": Fault(
        _with(slurm("slurm_rest_certificate_end_time_seconds", value="1200000")), before="59m", after="61m"
    ),
    "SlurmCronJobFails": Fault(
        _with(kubernetes("kube_cronjob_status_last_schedule_time", 'cronjob="accounting-dump"', "200000")),
        {"cronjob": "accounting-dump"},
        before="59m",
        after="61m",
    ),
    "SlurmNodeDown": Fault(
        _with(slurm("slurm_node_state", 'node="gpu-1",state="down"')), {"node": "gpu-1"}, before="9m", after="11m"
    ),
    "SlurmManyNodesOut": Fault(
        _with(*(slurm("slurm_node_unavailable", f'node="gpu-{number}"') for number in range(2, 5))),
        before="9m",
        after="11m",
    ),
    "SlurmNodeDrainedByHealth": Fault(
        _drained("health", check="gpu_count"), {"node": "gpu-1", "check": "gpu_count"}, before="29m", after="31m"
    ),
    "SlurmNodeDrainedByHook": Fault(
        _drained("hook", operation="gpus"), {"node": "gpu-1", "operation": "gpus"}, before="9m", after="11m"
    ),
    "SlurmHealthFinding": Fault(
        _with(slurm("slurm_health_finding", 'node="gpu-1",check="clock"')),
        {"node": "gpu-1", "check": "clock"},
        before="59m",
        after="61m",
    ),
    "SlurmHealthChecksStopped": Fault(
        _with(slurm("slurm_health_finding", 'node="gpu-1",check="round"')), {"node": "gpu-1"}, before="9m", after="11m"
    ),
    "SlurmLongCheckMissing": Fault(
        _with(
            slurm("slurm_long_check_time_seconds", 'node="gpu-1",check="memory_bandwidth"', "-700000"),
            slurm("slurm_long_check_passed", 'node="gpu-0",check="memory_bandwidth"', "0"),
            slurm("slurm_node_unavailable", 'node="gpu-0"'),
        ),
        {"node": "gpu-1", "check": "memory_bandwidth"},
        before="59m",
        after="61m",
    ),
    "SlurmNodeNeverChecked": Fault(
        lasting(
            changed(
                HEALTHY,
                ["^(?!slurm_(up|node_info|long_check_))"],  # a day of all series takes minutes
                slurm("slurm_node_info", 'node="gpu-2",node_set="gpu"'),
                slurm("slurm_node_info", 'node="cpu-0",node_set="cpu"'),  # no long check is for its node set
            ),
            hours=25,
        ),
        {"node": "gpu-2"},
        before="23h50m",
        after="24h20m",
        every="10m",
    ),
    "SlurmNodeDrainedLong": Fault(_drained("admin", since="-400000"), {"node": "gpu-1"}, before="59m", after="61m"),
    "SlurmDrainWaits": Fault(
        _drained("deployment", operation="scale-down", since="-90000"),
        {"node": "gpu-1", "operation": "scale-down"},
        before="9m",
        after="11m",
    ),
    "SlurmQueueStands": Fault(
        _with(slurm("slurm_jobs_pending", value="5"), slurm("slurm_sdiag_jobs_started", value="7")),
        before="59m",
        after="62m",
    ),
    "SlurmSchedulerSlow": Fault(_with(slurm("slurm_schedule_cycle_last", value="11000000")), before="14m", after="16m"),
    "SlurmBackfillSlow": Fault(_with(slurm("slurm_bf_cycle_last", value="130000000")), before="29m", after="31m"),
    "SlurmJobsFailTogether": Fault(_with(slurm("slurm_sdiag_jobs_failed", value="0+1")), before="15m", after="50m"),
    "SlurmJobsLostNodes": Fault(_with(slurm("slurm_jobs_node_failed", value="0 0 1+0")), before="1m", after="3m"),
    "SlurmJobWastesGpus": Fault(_idle_gpus(), {"job_id": "7"}, before="170m", after="185m"),
    "SlurmGpuXid": Fault(
        _with(gpu("gpu-1", 0, "DCGM_FI_DEV_XID_ERRORS", "79")), {"node": "gpu-1", "gpu": "0"}, before="0m", after="2m"
    ),
    "SlurmGpuMemoryBroken": Fault(
        _with(gpu("gpu-1", 0, "DCGM_FI_DEV_ROW_REMAP_FAILURE", "1")),
        {"node": "gpu-1", "gpu": "0"},
        before="0m",
        after="2m",
    ),
    "SlurmGpuLost": Fault(
        changed(HEALTHY, ['DCGM_.*exported_pod="gpu-1".*gpu="1"']), {"node": "gpu-1"}, before="14m", after="16m"
    ),
    "SlurmGpuHot": Fault(
        _with(gpu("gpu-1", 1, "DCGM_FI_DEV_GPU_TEMP", "93")), {"node": "gpu-1", "gpu": "1"}, before="14m", after="16m"
    ),
    "SlurmLinkFlaps": Fault(_link("link_downed", "0 0 1+0"), {"node": "gpu-1"}, before="2m", after="5m"),
    "SlurmLinkErrors": Fault(_link("symbol_error", "0+5"), {"node": "gpu-1"}, before="5m", after="90m"),
    "SlurmOutOfMemory": Fault(
        _with(machine("gpu-1", "node_vmstat_oom_kill", value="4 4 5+0")), {"node": "gpu-1"}, before="1m", after="4m"
    ),
}
