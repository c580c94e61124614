"""A job that outgrows its worker's pod on a kernel with cgroup v2, if Slurm limits no job's memory."""

from functools import cache

import pytest

from tests.machines.lab_slurm import as_user, printed

pytestmark = [pytest.mark.soak, pytest.mark.alone, pytest.mark.timeout(3600)]

COMMANDS = {
    "outgrown": f"""
        {as_user("sbatch --no-requeue -N1 -wcpu-0 --mem=100 -J lost -o /dev/null --wrap 'sleep 4244'")}
        within 120 pgrep -fx 'sleep 4244'
        uid_of cpu-0 > /run/uid
        {as_user("timeout 300 srun -N1 -wcpu-0 --mem=100 python3 -c 'bytearray(4 << 30)'; echo status $?")}
        within 60 gone sleep 4244
        not_running() {{ make -s ssh CMD='squeue -h -t R -n lost | wc -l' | grep -qx 0; }}
        within 60 not_running && echo "the lost job is not shown running"
    """,
    "back": f"""
        ready() {{ kubectl wait -n slurm pod/cpu-0 --for=condition=Ready --timeout=1s; }}
        same() {{ [ "$(uid_of cpu-0)" = "$(cat /run/uid)" ] && ready; }}
        within 300 same && echo "the same pod is ready"
        {as_user("timeout 400 srun -N1 -wcpu-0 hostname")}
    """,
    "neighbours": as_user("timeout 120 srun -N1 -wcpu-1 hostname"),
}
"""Commands by their names. A worker's pod has 2 GiB."""


@cache
def said() -> dict[str, str]:
    """Return what the commands print in a cluster whose jobs have no limits but those of their pods."""
    return printed(COMMANDS, before="sed -i 's/constrain: cgroup/constrain: none/' stacks/Pulumi.local.yaml")


def test_no_job_of_the_worker_is_shown_running_a_minute_after_the_kernel_has_ended_it() -> None:
    lines = said()["outgrown"].splitlines()
    assert not [line for line in lines if line.startswith("not within its time")], lines
    assert "the lost job is not shown running" in lines
    assert "status 0" not in lines


def test_the_pod_comes_back_in_place_and_its_node_takes_jobs_without_a_hand() -> None:
    lines = said()["back"].splitlines()
    assert not [line for line in lines if line.startswith("not within its time")], lines
    assert "the same pod is ready" in lines
    assert lines[-1] == "cpu-0"


def test_the_other_worker_takes_jobs_meanwhile() -> None:
    assert said()["neighbours"].split() == ["cpu-1"]
