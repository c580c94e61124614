"""Recorded series: GPUs and machines have the names of Slurm's nodes, jobs and users, whatever the scrape."""

import re
from pathlib import Path

import pytest

from tests.unit.monitoring.promql import judged, rules_file
from tests.unit.monitoring.world import HEALTHY, NAMESPACE, Series, changed, gpu, slurm

JOB, USER, NODE = 'job_id="7"', 'username="alice"', 'node="gpu-0"'


def honoured(world: Series) -> Series:
    """Return a world in which a scrape honours the labels of dcgm-exporter: those of the pod are the exporter's own."""
    renamed = {}
    for name, values in world.items():
        if name.startswith("DCGM_"):
            own = re.sub(r'namespace="gpu-operator",pod="dcgm-\d",', "", name)
            name = own.replace("exported_", "")  # noqa: PLW2901 - the same series
        renamed[name] = values
    return renamed


def mapped(world: Series) -> Series:
    """Return a world in which a prolog has told dcgm-exporter that job 7 has GPU 0 alone; job 8 has the other."""
    without = changed(world, [r"^DCGM_.*exported_pod=\"gpu-0\""])
    used = [
        gpu("gpu-0", number, "DCGM_FI_DEV_GPU_UTIL", value, job)
        for number, value, job in ((0, "80", "7"), (1, "10", "8"))
    ]
    return changed(
        without, (), *used, slurm("slurm_job_node", f'job_id="8",{NODE}'), slurm("slurm_job_gpus", 'job_id="8"')
    )


def means(query: str, labels: str, value: float) -> tuple[str, str, str]:
    """Return the expectation that the one series with these labels has this value."""
    by = ", ".join(re.findall(r"(\w+)=", labels))
    return "20m", f"round(sum by ({by}) ({query}{{{labels}}}), 0.001) == bool {value}", f"{{{labels}}}"


@pytest.mark.parametrize("world", [HEALTHY, honoured(HEALTHY)], ids=["exported labels", "honoured labels"])
def test_gpus_have_nodes_jobs_and_users(world: Series, tmp_path: Path) -> None:
    expected = [
        means("slurm_node:gpu_utilization:ratio", f'{NODE},gpu="1"', 0.8),
        means("slurm_node:gpu_memory_used:bytes", f'{NODE},gpu="0"', 1000 * 1024**2),
        means("slurm_job:gpu_utilization:ratio", JOB, 0.8),
        means("slurm_user:gpu_utilization:ratio", USER, 0.8),
    ]
    judged(rules_file(tmp_path), tmp_path, world, expected)


def test_a_mapping_of_gpus_to_jobs_counts_before_the_nodes_of_jobs(tmp_path: Path) -> None:
    expected = [
        means("slurm_job:gpu_utilization:ratio", f'job_id="{job}"', value) for job, value in ((7, 0.8), (8, 0.1))
    ]
    judged(rules_file(tmp_path), tmp_path, mapped(HEALTHY), expected)


def test_machines_have_nodes_and_jobs(tmp_path: Path) -> None:
    expected = [
        means("slurm_node:machine:info", f'{NODE},machine="machine-0"', 1),
        means("slurm_node:machine_cpu_busy:ratio", NODE, 0.5),
        means("slurm_node:machine_load:ratio", NODE, 0.5),
        means("slurm_node:machine_memory_used:ratio", NODE, 0.25),
        means("slurm_node:infiniband_received:bytes_rate5m", NODE, 1000),
        means("slurm_job:machine_cpu_busy:ratio", JOB, 0.5),
    ]
    judged(rules_file(tmp_path), tmp_path, HEALTHY, expected)


def test_gpus_of_pods_that_are_no_nodes_of_slurm_are_left_out(tmp_path: Path) -> None:
    other = gpu("notebook-0", 0, "DCGM_FI_DEV_GPU_UTIL", "50")
    count = f'count(slurm_node:gpu_utilization:ratio{{namespace="{NAMESPACE}"}}) == bool 4'
    judged(rules_file(tmp_path), tmp_path, changed(HEALTHY, (), other), [("5m", count, "{}")])
