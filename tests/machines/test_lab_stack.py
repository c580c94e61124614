"""README's quick start on a machine whose kernel has cgroup v2 and AppArmor, and jobs there."""

import re
from functools import cache

import pytest

from tests.machines.lab_slurm import as_user, printed

pytestmark = [pytest.mark.soak, pytest.mark.alone, pytest.mark.timeout(3600)]

COMMANDS = {
    "nodes": as_user("srun -N2 hostname"),
    "cgroup": as_user(
        "srun -N1 --mem=100 sh -c 'cat /proc/self/cgroup; find /sys/fs/cgroup -name memory.max -exec cat {} +'"
    ),
    "outgrown": as_user("srun -N1 --mem=100 python3 -c 'bytearray(300 << 20)'; echo status $?"),
    "neighbour": as_user(
        "sbatch --wait -N1 -wcpu-0 --mem=100 --wrap 'sleep 20; echo done' -o ~/neighbour & sleep 5;"
        " srun -N1 -wcpu-0 --mem=100 python3 -c 'bytearray(300 << 20)'; wait; cat ~/neighbour"
    ),
    "idle": as_user("sinfo --noheader --format=%T"),
    "deleted": f"""
        {as_user("sbatch --no-requeue -N1 -wcpu-0 -J deleted -o /dev/null --wrap 'sleep 4242'")}
        within 120 pgrep -fx 'sleep 4242'
        uid=$(uid_of cpu-0)
        groups "$uid" | grep -c 'job_[0-9]*$' | sed 's/^/groups of jobs: /'
        kubectl delete pod -n slurm cpu-0 --force --grace-period=0 2> /dev/null
        within 120 gone sleep 4242
        empty() {{ [ -z "$(groups "$uid")" ]; }}
        within 120 empty
        echo "left: $(groups "$uid" | wc -l)"
        ready() {{ kubectl wait -n slurm pod/cpu-0 --for=condition=Ready --timeout=1s; }}
        back() {{ [ "$(uid_of cpu-0)" != "$uid" ] && ready; }}
        within 400 back
        forgotten() {{ make -s ssh CMD='squeue -h -n deleted | wc -l' | grep -qx 0; }}
        within 180 forgotten && echo "the job is not shown"
        {as_user("timeout 400 srun -N1 -wcpu-0 hostname")}
    """,
    "restarted": f"""
        {as_user("sbatch -N1 -wcpu-1 -J again -o /dev/null --wrap 'sleep 4243'")}
        within 120 pgrep -fx 'sleep 4243'
        uid=$(uid_of cpu-1)
        for process in $(pgrep -x slurmd); do
            ! grep -q "pod$uid" "/proc/$process/cgroup" || space=$(readlink "/proc/$process/ns/pid")
        done
        for process in $(pgrep -x tini); do
            [ "$(readlink "/proc/$process/ns/pid")" != "$space" ] || kill -KILL "$process"
        done
        within 120 gone sleep 4243
        count='jsonpath={{.status.containerStatuses[*].restartCount}}'
        restarted() {{ kubectl get pod -n slurm cpu-1 -o "$count" | grep 1; }}
        within 120 restarted
        again() {{ make -s ssh CMD='scontrol show job $(squeue -h -n again -o %A)' | grep Restarts=1; }}
        within 300 again && echo "the job waits for its turn again"
        {as_user("scancel -n again; timeout 400 srun -N1 -wcpu-1 hostname")}
    """,
}
"""Commands by their names."""


@cache
def said() -> dict[str, str]:
    """Return what the commands print."""
    return printed(COMMANDS)


def test_a_job_of_the_default_stack_runs_on_all_nodes() -> None:
    assert sorted(said()["nodes"].split()) == ["cpu-0", "cpu-1"]


def test_a_job_has_the_memory_that_it_asked_for_in_a_cgroup_of_its_own() -> None:
    place, *limits = said()["cgroup"].split()
    assert re.fullmatch(r"0::/system\.slice/cpu-\d_slurmstepd\.scope/job_\d+/step_0/user/task_0", place)
    assert str(100 << 20) in limits


def test_a_job_that_outgrows_its_memory_is_killed_and_nodes_stay_in_service() -> None:
    assert "Out Of Memory" in said()["outgrown"]
    assert said()["outgrown"].endswith("status 1\n")
    assert said()["idle"].split() == ["idle"]


def test_another_job_of_the_node_continues() -> None:
    assert "Out Of Memory" in said()["neighbour"]
    assert said()["neighbour"].endswith("done\n")


def test_a_pod_deleted_with_a_running_job_leaves_no_process_and_no_cgroup_and_its_node_takes_jobs_again() -> None:
    lines = said()["deleted"].splitlines()
    assert "groups of jobs: 1" in lines
    assert not [line for line in lines if line.startswith("not within its time")]
    assert "left: 0" in lines
    assert "the job is not shown" in lines
    assert lines[-1] == "cpu-0"


def test_a_container_that_starts_again_leaves_no_process_of_its_job_which_is_requeued() -> None:
    lines = said()["restarted"].splitlines()
    assert not [line for line in lines if line.startswith("not within its time")]
    assert "the job waits for its turn again" in lines
    assert lines[-1] == "cpu-1"
