"""Resources that a user can use up on a node, and the rest of that use when the user's last job there has ended."""

from collections.abc import Callable

import pytest

from tests.cluster.conftest import FEW_PROCESSES
from tests.cluster.greed import FILL_TMP, HOLD_MUNGE, LEAVE, LEFT, forks
from tests.cluster.slurm import Slurm
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster


def left(slurm: Slurm, node: str) -> str:
    """Return what a node has of the greedy user."""
    return slurm.exec(node, "slurmd", "sh", "-c", LEFT)


def test_nothing_of_a_user_stays_on_a_node_after_the_last_job(slurm: Slurm) -> None:
    said = slurm.ssh(f"srun -w cpu-0 python3 -c '{LEAVE}'", user="greedy").stdout

    assert said == "left\n"
    wait_until(lambda: left(slurm, "cpu-0") == "", what="nothing of the user is left")


def test_what_a_user_has_left_stays_while_another_job_of_the_user_is_on_the_node(slurm: Slurm) -> None:
    """A job between two of its steps: nothing of it runs."""
    step = "srun -w cpu-0 sh -c"
    said = slurm.ssh(
        f'salloc -Q -w cpu-0 sh -c \'{step} "echo kept > /dev/shm/kept"; salloc -Q -w cpu-0 {step} true; sleep 1; '
        f'{step} "cat /dev/shm/kept"\'',
        user="greedy",
    ).stdout

    assert said == "kept\n"
    wait_until(lambda: left(slurm, "cpu-0") == "", what="nothing of the user is left")


SAVE = """\
#!/bin/sh
trap 'touch told' TERM
echo work > /dev/shm/work
touch begun
until [ -e other-ended ]; do sleep 0.2; done
sleep 2
cat /dev/shm/work > saved
"""


def test_a_job_that_is_cancelled_saves_its_work_though_another_job_of_the_user_ends(slurm: Slurm) -> None:
    """The other one ends within KillWait, and its cleanup has the time to take everything away."""
    slurm.ssh("rm -f begun told other-ended saved; cat > save.sh", user="greedy", stdin=SAVE)
    batch = "sbatch --parsable -w cpu-0 -o /dev/null"
    other = slurm.ssh(f"{batch} --wrap 'until [ -e told ]; do sleep 0.2; done'", user="greedy").stdout.strip()
    job = slurm.ssh(f"{batch} save.sh", user="greedy").stdout.strip()
    wait_until(lambda: slurm.ssh("cat begun", user="greedy", check=False).returncode == 0, what="the job has begun")

    slurm.ssh(f"scancel {job}", user="greedy")
    slurm.wait_for_job(int(other), "COMPLETED")
    slurm.ssh("touch other-ended", user="greedy")

    slurm.wait_for_job(int(job), "CANCELLED")
    assert slurm.ssh("cat saved", user="greedy").stdout == "work\n"
    wait_until(lambda: left(slurm, "cpu-0") == "", what="nothing of the user is left")


def test_what_a_job_has_been_sent_stays_though_it_has_had_no_step_yet(slurm: Slurm) -> None:
    other_job = "salloc -Q -w cpu-0 srun true"
    program = f"sbcast -f sent /tmp/sent; {other_job}; sleep 1; srun cat /tmp/sent"
    said = slurm.ssh(f"echo kept > sent; salloc -Q -w cpu-0 sh -c '{program}'", user="greedy").stdout

    assert said == "kept\n"
    wait_until(lambda: left(slurm, "cpu-0") == "", what="nothing of the user is left")


def test_a_user_who_forks_without_end_stops_at_the_limit_and_others_continue(slurm: Slurm) -> None:
    """The limit is one of the user, whatever number of jobs."""
    daemon = slurm.daemon("big-0")
    others = "srun -p big --overcommit --mem=1 hostname"
    with slurm.ssh_session(f"srun -p big --mem=100 python3 -c '{forks(hold_seconds=30)}'", user="greedy") as bomb:
        assert bomb.stdout
        count, error = next(line for line in bomb.stdout if "EAGAIN" in line).split()  # srun may wait before
        said = slurm.ssh(others).stdout
        slurm.exec("controller-0", "slurmctld", "scancel", "--user=greedy")

    assert (int(count) < FEW_PROCESSES, error) == (True, "EAGAIN")
    assert said == "big-0\n"
    assert slurm.daemon("big-0") == daemon


def test_a_user_who_holds_munge_keeps_no_job_of_others_from_the_node(slurm: Slurm) -> None:
    others = "timeout 30 srun -w cpu-1 --overcommit --mem=1 hostname"
    with slurm.ssh_session(f"srun -w cpu-1 --mem=100 python3 -c '{HOLD_MUNGE}'", user="greedy") as holder:
        assert holder.stdout
        assert "held\n" in holder.stdout  # srun may wait before
        said = slurm.ssh(others, check=False).stdout
        slurm.exec("controller-0", "slurmctld", "scancel", "--user=greedy")

    assert said == "cpu-1\n"


def test_the_kernel_ends_a_task_of_a_job_without_memory_before_its_slurmstepd(slurm: Slurm) -> None:
    with slurm.ssh_session("srun -w cpu-0 sh -c 'cat /proc/self/oom_score_adj; sleep 60'") as session:
        assert session.stdout
        task = int(session.stdout.readline())
        of_slurmstepd = "cat /proc/$(pgrep -n -x slurmstepd)/oom_score_adj"
        slurmstepd = int(slurm.exec("cpu-0", "slurmd", "sh", "-c", of_slurmstepd))

    assert task >= min(slurmstepd + 200, 1000)


def test_temporary_files_have_a_number_on_a_node(slurm: Slurm) -> None:
    """A file takes memory in the kernel besides its content, of which an empty one has none."""
    said = slurm.ssh("srun -w cpu-1 df --output=size,itotal --block-size=16K /tmp /dev/shm").stdout.splitlines()[1:]

    assert all(size == files for size, files in map(str.split, said)), said


def test_processes_have_a_limit_in_jobs_and_in_sessions(slurm: Slurm) -> None:
    assert slurm.ssh('ulimit -Hu; srun sh -c "ulimit -a" | grep process').stdout.split() == ["2048", "process", "4096"]


def test_who_fills_tmp_is_told_so_and_the_node_continues(slurm: Slurm) -> None:
    daemon = slurm.daemon("cpu-1")
    filled = slurm.ssh(f"srun -w cpu-1 sh -c '{FILL_TMP}; srun --overlap true'", user="greedy", check=False)

    assert "No space left on device" in filled.stderr
    assert slurm.ssh("srun -w cpu-1 sh -c 'echo x > /tmp/mine; cat /tmp/mine'").stdout == "x\n"
    assert slurm.daemon("cpu-1") == daemon


def test_a_job_cannot_make_its_script_grow_on_the_disk_of_slurmd(slurm: Slurm) -> None:
    slurm.ssh("sbatch --wait -o script-grows --wrap 'echo more >> $0' || true")

    assert "Read-only file system" in slurm.ssh("cat script-grows").stdout


def test_shared_memory_has_a_size(slurm: Slurm, admin: Callable[[str], str]) -> None:
    del admin
    filled = slurm.ssh("srun -w cpu-1 sh -c 'head -c 1G /dev/zero > /dev/shm/fill'", user="greedy", check=False)

    assert "No space left on device" in filled.stderr
    wait_until(lambda: left(slurm, "cpu-1") == "", what="nothing of the user is left")
