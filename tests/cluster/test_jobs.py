"""Work of researchers: log in, run, submit, look."""

import pytest

from tests.cluster.slurm import Slurm
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster


def test_srun_runs_on_two_nodes(slurm: Slurm) -> None:
    names = slurm.ssh("srun -N2 hostname").stdout.split()

    assert sorted(names) == ["cpu-0", "cpu-1"]


def test_a_batch_job_writes_its_output_into_the_home(slurm: Slurm) -> None:
    job = slurm.submit("echo from $(hostname)", options="-o result.%j")
    slurm.wait_for_job(job, "COMPLETED")

    assert slurm.ssh(f"cat ~/result.{job}").stdout.startswith("from cpu-")


def test_the_exit_code_of_a_batch_job_is_kept(slurm: Slurm) -> None:
    job = slurm.submit("exit 7")

    assert slurm.wait_for_job(job, "FAILED")["ExitCode"] == "7:0"


def test_the_exit_code_of_srun_is_the_tasks(slurm: Slurm) -> None:
    assert slurm.ssh("srun bash -c 'exit 42'", check=False).returncode == 42


def test_each_partition_runs_on_its_own_node_set(slurm: Slurm) -> None:
    main = slurm.ssh("srun -p main hostname").stdout
    big = slurm.ssh("srun -p big hostname").stdout

    assert (main.split("-")[0], big.strip()) == ("cpu", "big-0")


def test_a_partitions_options_reach_slurm(slurm: Slurm) -> None:
    assert "MaxTime=01:00:00" in slurm.scontrol("show", "partition", "big")


def test_an_array_of_a_hundred_tasks_ends(slurm: Slurm) -> None:
    """Each task leaves its number in the shared home, so none can be missing or run twice."""
    slurm.ssh("rm -rf ~/array && mkdir ~/array")
    array = slurm.submit("echo >> ~/array/$SLURM_ARRAY_TASK_ID", options="--array=1-100 -o /dev/null")
    slurm.ssh(f"srun --dependency=afterany:{array} --overcommit true", timeout_seconds=300)

    lines = slurm.ssh("cd ~/array && wc -l $(seq 100) | tail -n 1").stdout

    assert lines.split()[0] == "100"


def test_a_job_is_the_user_who_submitted_it(slurm: Slurm) -> None:
    assert slurm.ssh("srun id -un", user="bob").stdout.strip() == "bob"


def test_a_home_is_its_owners_alone(slurm: Slurm) -> None:
    slurm.ssh("echo secret > ~/secret")

    assert slurm.ssh("cat /home/alice/secret", user="bob", check=False).returncode != 0


def test_a_file_written_on_one_node_is_read_on_another(slurm: Slurm) -> None:
    slurm.ssh("srun -w cpu-0 bash -c 'echo shared > ~/seen'")

    assert slurm.ssh("srun -w cpu-1 cat seen").stdout == "shared\n"


def test_jobs_have_no_new_privileges_and_no_capabilities(slurm: Slurm) -> None:
    status = slurm.ssh("srun cat /proc/self/status").stdout
    fields = dict(line.split(":", 1) for line in status.splitlines())

    assert (fields["NoNewPrivs"].strip(), int(fields["CapEff"], 16)) == ("1", 0)


def test_a_cancelled_job_ends_with_its_processes(slurm: Slurm) -> None:
    job = slurm.submit("sleep 12345", options="-w cpu-0")
    slurm.wait_for_job(job, "RUNNING")
    slurm.ssh(f"scancel {job}")
    slurm.wait_for_job(job, "CANCELLED")

    assert "sleep 12345" not in slurm.exec("cpu-0", "slurmd", "ps", "-eo", "args")


def test_steps_leave_no_zombies(slurm: Slurm) -> None:
    for _ in range(3):
        slurm.ssh("srun -w cpu-0 true")

    def all_are_reaped() -> bool:  # srun ends before slurmstepd does
        return "defunct" not in slurm.exec("cpu-0", "slurmd", "ps", "-eo", "stat,args")

    wait_until(all_are_reaped, "all are reaped")


def test_an_interactive_allocation_works(slurm: Slurm) -> None:
    assert slurm.ssh("salloc -N2 srun hostname").stdout.split() != []


def test_files_are_copied_over_ssh(slurm: Slurm) -> None:
    assert slurm.ssh("echo hello | tee ~/copied && ls -l ~/copied").stdout.startswith("hello")
