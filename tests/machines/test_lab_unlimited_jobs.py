"""A job that outgrows its worker's pod on a kernel with cgroup v2, if Slurm limits no job's memory."""

from functools import cache

import pytest

from tests.machines.lab_slurm import as_user, printed

pytestmark = [pytest.mark.soak, pytest.mark.alone, pytest.mark.timeout(3600)]

COMMANDS = {
    "outgrown": f"""
        {as_user("sbatch -N1 -wcpu-0 --mem=100 -J other -o /dev/null --wrap 'sleep 4244'")}
        within 120 pgrep -fx 'sleep 4244'
        {as_user("timeout 300 srun -N1 -wcpu-0 --mem=100 python3 -c 'bytearray(4 << 30)'; echo status $?")}
        echo "restarts: $(kubectl get pod -n slurm cpu-0 -o 'jsonpath={{.status.containerStatuses[*].restartCount}}')"
    """,
    "other": f"""
        {as_user("squeue -h -n other -o %T; scontrol show job $(squeue -h -n other -o %A) | grep Restarts")}
        pgrep -fx 'sleep 4244' | wc -l
    """,
    "next": as_user("timeout 400 srun -N1 -wcpu-0 hostname"),
}
"""Commands by their names. A worker's pod has 2 GiB."""


@cache
def said() -> dict[str, str]:
    """Return what the commands print in a cluster whose jobs have no limits but those of their pods."""
    return printed(COMMANDS, before="sed -i 's/constrain: cgroup/constrain: none/' stacks/Pulumi.local.yaml")


def test_the_kernel_ends_the_task_that_outgrows_the_pod_and_not_the_pods_containers() -> None:
    lines = said()["outgrown"].splitlines()
    assert not [line for line in lines if line.startswith("not within its time")], lines
    assert "status 137" in lines
    assert lines[-1] == "restarts: 0"


def test_another_job_of_the_pod_continues() -> None:
    state, *_, processes = said()["other"].strip().splitlines()
    assert state.startswith("RUNNING")
    assert "Restarts=0" in said()["other"]
    assert processes == "1"


def test_the_node_takes_further_jobs() -> None:
    assert said()["next"].splitlines()[-1] == "cpu-0"
