"""Cores that a node set reserves: slurmd and its watch run there, and no job does."""

import re
from collections.abc import Callable

import pytest

from tests.cluster.slurm import QUICK, SMALL, Slurm, a_node_set
from tests.cluster.workers import job_on
from tests.waiting import wait_until
from tools.kube.cgroups import hierarchies

pytestmark = pytest.mark.cluster

UNIFIED = hierarchies().unified
"""True with cgroup v2, on which this was not run: Slurm has another plugin there."""

RESOURCES = {**SMALL, "requests": {"cpu": "100m", "memory": "64Mi"}}
ALLOWED = re.compile(r"Cpus_allowed_list:\s*(\S+)")


def cpus_of_jobs(slurm: Slurm, tasks: int) -> set[str]:
    """Return the CPUs of the machine on which the tasks of a step may run."""
    return set(
        ALLOWED.findall(slurm.ssh(f"srun -n{tasks} --cpu-bind=none grep Cpus_allowed_list /proc/self/status").stdout)
    )


def cpus_of(slurm: Slurm, pattern: str) -> set[str]:
    """Return the CPUs of the machine on which the worker's processes with these words in their command may run."""
    script = f'for p in $(pgrep -f "{pattern}"); do [ $p = $$ ] || grep Cpus_allowed_list /proc/$p/status; done; true'
    return set(ALLOWED.findall(slurm.exec("cpu-0", "slurmd", "sh", "-c", script)))


def node(slurm: Slurm) -> str:
    return slurm.scontrol("show", "node", "cpu-0", "--oneliner")


def test_no_job_gets_the_reserved_core_on_which_slurmd_runs_until_it_is_given_back(
    new_slurm: Callable[..., Slurm],
) -> None:
    reserving = a_node_set("cpu", cpus=2, reserved_cores=1, pod_resources=RESOURCES)
    slurm = new_slurm(slurm={"constrain": "cgroup", "extra": dict(QUICK)}, node_sets=[reserving])
    slurm.up()

    (own,), (of_jobs,) = cpus_of(slurm, "^slurmd -D"), cpus_of_jobs(slurm, 1)
    assert {own, of_jobs} == {"0", "1"}
    wait_until(lambda: cpus_of(slurm, "slurmd_watch") == {own}, "the watch runs on the reserved core")
    assert " CPUEfctv=1 CPUTot=2 " in node(slurm)
    job = job_on(slurm, "cpu-0")
    if not UNIFIED:
        wait_until(lambda: cpus_of(slurm, "^slurmstepd: .*batch") == {own}, "slurmstepd runs on the reserved core")
    slurm.ssh(f"scancel {job}")
    assert slurm.ssh("srun -n2 --immediate=5 true", check=False).returncode != 0

    slurm.cluster["node_sets"] = [a_node_set("cpu", cpus=2, pod_resources=RESOURCES)]
    slurm.up()

    assert "CoreSpecCount" not in node(slurm)
    assert cpus_of_jobs(slurm, 2) == {"0-1"}
    assert cpus_of(slurm, "^slurmd -D") == {"0-1"}
