"""In the jail jobs behave as without it: environment, terminals, arrays, signals, exit codes and the rest."""

import re
import shlex

import pytest

from tests.cluster.slurm import Slurm
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster


def test_the_environment_of_the_submitter_comes_along(slurm: Slurm) -> None:
    assert slurm.ssh("COLOUR='dark blue' srun sh -c 'echo $COLOUR'").stdout == "dark blue\n"


def test_export_chooses_variables(slurm: Slurm) -> None:
    said = slurm.ssh("A=1 B=2 srun --export=A,C=3 /bin/sh -c 'echo $A/$B/$C'").stdout

    assert said == "1//3\n"


def test_export_none_leaves_slurms_own_variables(slurm: Slurm) -> None:
    said = slurm.ssh("A=1 srun --export=NONE /bin/sh -c 'echo $A/$SLURM_JOB_USER'").stdout

    assert said == "/alice\n"


def test_the_task_knows_its_place(slurm: Slurm) -> None:
    said = slurm.ssh("srun -N2 sh -c 'echo $SLURM_PROCID $SLURM_NTASKS $SLURMD_NODENAME $(hostname)'").stdout
    tasks = sorted(line.split() for line in said.splitlines())

    assert [(rank, number) for rank, number, _, _ in tasks] == [("0", "2"), ("1", "2")]
    assert sorted(node for _, _, node, _ in tasks) == ["cpu-0", "cpu-1"]
    assert [node for _, _, node, _ in tasks] == [host for _, _, _, host in tasks]


def test_the_working_directory_is_that_of_the_submission(slurm: Slurm) -> None:
    slurm.ssh("mkdir -p ~/somewhere/deep")

    assert slurm.ssh("cd ~/somewhere/deep && srun pwd").stdout == "/home/alice/somewhere/deep\n"


def test_chdir_chooses_the_working_directory(slurm: Slurm) -> None:
    assert slurm.ssh("srun --chdir=/data sh -c 'pwd && readlink /proc/self/cwd'").stdout == "/data\n/data\n"


def test_a_working_directory_that_is_not_there_is_reported(slurm: Slurm) -> None:
    """Slurm's own way: the job runs in /tmp, and says so."""
    done = slurm.ssh("srun --chdir=/home/alice/nowhere pwd", check=False)

    assert "/home/alice/nowhere" in done.stderr


def test_standard_input_reaches_the_task(slurm: Slurm) -> None:
    assert slurm.ssh("srun tr a-z A-Z", stdin="hello\n").stdout == "HELLO\n"


def test_a_terminal_is_a_terminal(slurm: Slurm) -> None:
    said = slurm.ssh("srun --pty bash -c 'tty; stty size >/dev/null && echo sized'", options=["-tt"]).stdout

    assert re.search(r"/dev/pts/\d+", said)
    assert "sized" in said


def test_an_interactive_shell_takes_commands(slurm: Slurm) -> None:
    said = slurm.ssh("srun --pty bash -i", stdin="echo result=$((6*7))\nexit\n", options=["-tt"]).stdout

    assert "result=42" in said


def test_salloc_gives_a_shell_in_the_jail_whose_steps_run_on_the_nodes(slurm: Slurm) -> None:
    script = "grep -h CODENAME /etc/os-release\nsrun --input=none hostname\nexit\n"
    said = slurm.ssh("salloc -N2 bash", stdin=script).stdout

    assert "VERSION_CODENAME=bookworm" in said
    assert {"cpu-0", "cpu-1"} <= set(said.split())


def test_salloc_without_a_command_gives_the_users_shell(slurm: Slurm) -> None:
    said = slurm.ssh("salloc", stdin="srun --input=none hostname\nexit\n", options=["-tt"]).stdout

    assert "cpu-" in said


def test_each_task_of_an_array_knows_its_number(slurm: Slurm) -> None:
    slurm.ssh("rm -f ~/task.*")
    array = slurm.submit("echo $SLURM_ARRAY_TASK_ID", options="--array=3,5 -o task.%a")
    slurm.ssh(f"srun --dependency=afterany:{array} --overcommit true", timeout_seconds=120)

    assert slurm.ssh("cat ~/task.3 ~/task.5").stdout == "3\n5\n"


def test_the_parts_of_a_heterogeneous_job_run_together(slurm: Slurm) -> None:
    said = slurm.ssh("srun -p main -n1 grep CODENAME /etc/os-release : -p big -n1 hostname", timeout_seconds=120).stdout

    assert sorted(said.split()) == ["VERSION_CODENAME=bookworm", "big-0"]


def test_sbcast_brings_a_file_to_every_node(slurm: Slurm) -> None:
    slurm.ssh("echo payload > ~/payload")
    script = "sbcast --force ~/payload /tmp/payload.$SLURM_JOB_ID && srun cat /tmp/payload.$SLURM_JOB_ID"

    assert slurm.ssh(f"salloc -N2 bash -c {shlex.quote(script)}").stdout == "payload\npayload\n"


def test_a_program_that_srun_broadcasts_runs_in_the_jail(slurm: Slurm) -> None:
    said = slurm.ssh("srun -N2 --bcast=/tmp/broadcast.$$ /usr/bin/hostname").stdout

    assert sorted(said.split()) == ["cpu-0", "cpu-1"]


def test_many_tasks_of_a_node_share_its_jail(slurm: Slurm) -> None:
    said = slurm.ssh("srun -N2 -n8 --overcommit sh -c 'echo $SLURM_PROCID'").stdout

    assert sorted(map(int, said.split())) == list(range(8))


@pytest.mark.parametrize("code", [0, 1, 42, 255])
def test_an_exit_code_is_the_tasks(slurm: Slurm, code: int) -> None:
    assert slurm.ssh(f"srun sh -c 'exit {code}'", check=False).returncode == code


def test_the_signal_that_ended_a_task_is_reported(slurm: Slurm) -> None:
    done = slurm.ssh("srun sh -c 'kill -9 $$'", check=False)

    assert done.returncode == 137
    assert "Killed" in done.stderr


def test_the_exit_code_of_a_step_is_kept_in_its_batch_job(slurm: Slurm) -> None:
    job = slurm.submit('srun sh -c "exit 9"')

    assert slurm.wait_for_job(job, "FAILED")["ExitCode"] == "9:0"


def test_a_signal_reaches_the_batch_script(slurm: Slurm) -> None:
    job = slurm.submit('trap "echo caught; exit 0" USR1; echo ready; while :; do sleep 0.1; done', options="-o sig.%j")
    wait_until(lambda: "ready" in slurm.ssh(f"cat sig.{job}", check=False).stdout, what="the script is ready")
    slurm.ssh(f"scancel --batch --signal=USR1 {job}")
    slurm.wait_for_job(job, "COMPLETED")

    assert slurm.ssh(f"cat sig.{job}").stdout == "ready\ncaught\n"


def test_a_cancelled_step_may_clean_up(slurm: Slurm) -> None:
    inner = 'trap "echo cleaned; exit 0" TERM; echo ready; while :; do sleep 0.1; done'
    slurm.ssh("cat > ~/cleans && chmod +x ~/cleans", stdin=f"#!/bin/bash\n{inner}\n")
    job = slurm.submit("srun /home/alice/cleans", options="-o term.%j")
    wait_until(lambda: "ready" in slurm.ssh(f"cat term.{job}", check=False).stdout, what="the step is ready")
    slurm.ssh(f"scancel {job}")
    slurm.wait_for_job(job, "CANCELLED")

    wait_until(lambda: "cleaned" in slurm.ssh(f"cat term.{job}").stdout, what="the step has cleaned up")


def test_slurms_variables_of_gpus_reach_the_task(slurm: Slurm) -> None:
    """Whatever Slurm or the user sets, the plugin leaves alone."""
    said = slurm.ssh("CUDA_VISIBLE_DEVICES=0,3 NVIDIA_VISIBLE_DEVICES=all srun env").stdout.splitlines()

    assert {"CUDA_VISIBLE_DEVICES=0,3", "NVIDIA_VISIBLE_DEVICES=all"} <= set(said)


def test_a_job_sees_its_own_script_and_no_other(slurm: Slurm) -> None:
    job = slurm.submit("ls /var/spool/slurmd; cat $0", options="-o spool.%j")
    slurm.wait_for_job(job, "COMPLETED")
    said = slurm.ssh(f"cat spool.{job}").stdout

    assert f"job{job:05}" in said
    assert re.findall(r"^job\d+$", said, re.MULTILINE) == [f"job{job:05}"]
    assert "ls /var/spool/slurmd; cat $0" in said


def test_a_batch_job_submits_another(slurm: Slurm) -> None:
    job = slurm.submit("sbatch --parsable -o inner.%j --wrap hostname", options="-o outer.%j")
    slurm.wait_for_job(job, "COMPLETED")
    inner = int(slurm.ssh(f"cat outer.{job}").stdout)
    slurm.wait_for_job(inner, "COMPLETED")

    assert slurm.ssh(f"cat inner.{inner}").stdout.startswith("cpu-")
