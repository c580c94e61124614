"""Cores that a node set reserves: slurmd and its watch run there, and no job does."""

import os
import re
from collections.abc import Callable

import pytest

from tests.cluster.slurm import QUICK, SMALL, Slurm, a_node_set
from tests.cluster.workers import job_on
from tests.waiting import wait_until
from tools.kube.cgroups import hierarchies

CPUS = os.cpu_count() or 1
"""CPUs of the machine, all of which the node has."""

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(CPUS < 2, reason="a node with a reserved core takes two CPUs"),
]

UNIFIED = hierarchies().unified
"""True with cgroup v2, on which this was not run: Slurm has another plugin there."""

RESOURCES = {**SMALL, "requests": {"cpu": "100m", "memory": "64Mi"}}
ALLOWED = re.compile(r"Cpus_allowed_list:\s*(\S+)")


def cpus_of_jobs(slurm: Slurm, tasks: int) -> set[int]:
    """Return the CPUs of the machine on which the tasks of a step may run."""
    return allowed(slurm.ssh(f"srun -n{tasks} --cpu-bind=none grep Cpus_allowed_list /proc/self/status").stdout)


def cpus_of(slurm: Slurm, pattern: str) -> set[int]:
    """Return the CPUs of the machine on which the worker's processes with these words in their command may run."""
    script = f'for p in $(pgrep -f "{pattern}"); do [ $p = $$ ] || grep Cpus_allowed_list /proc/$p/status; done; true'
    return allowed(slurm.exec("cpu-0", "slurmd", "sh", "-c", script))


def allowed(printed: str) -> set[int]:
    """Return the CPUs in lines of /proc/PID/status, such as 0-2 and 5 in `Cpus_allowed_list: 0-2,5`."""
    ranges = [part.split("-") for found in ALLOWED.findall(printed) for part in found.split(",")]
    return {cpu for part in ranges for cpu in range(int(part[0]), int(part[-1]) + 1)}


def node(slurm: Slurm) -> str:
    return slurm.scontrol("show", "node", "cpu-0", "--oneliner")


def test_no_job_gets_the_reserved_core_on_which_slurmd_runs_until_it_is_given_back(
    new_slurm: Callable[..., Slurm],
) -> None:
    reserving = a_node_set("cpu", cpus=CPUS, reserved_cores=1, pod_resources=RESOURCES)
    slurm = new_slurm(slurm={"constrain": "cgroup", "extra": dict(QUICK)}, node_sets=[reserving])
    slurm.up()

    own, of_jobs = cpus_of(slurm, "^slurmd -D"), cpus_of_jobs(slurm, CPUS - 1)
    assert len(own) == 1
    assert of_jobs == set(range(CPUS)) - own
    wait_until(lambda: cpus_of(slurm, "slurmd_watch") == own, "the watch runs on the reserved core")
    assert f" CPUEfctv={CPUS - 1} CPUTot={CPUS} " in node(slurm)
    job = job_on(slurm, "cpu-0")
    if not UNIFIED:
        wait_until(lambda: cpus_of(slurm, "^slurmstepd: .*batch") == own, "slurmstepd runs on the reserved core")
    slurm.ssh(f"scancel {job}")
    refused = slurm.ssh(f"srun -n{CPUS} --immediate=60 true", check=False)
    assert "Requested node configuration is not available" in refused.stderr

    slurm.cluster["node_sets"] = [a_node_set("cpu", cpus=CPUS, pod_resources=RESOURCES)]
    slurm.up()

    assert "CoreSpecCount" not in node(slurm)
    assert cpus_of_jobs(slurm, CPUS) == set(range(CPUS))
    assert cpus_of(slurm, "^slurmd -D") == set(range(CPUS))
