"""Jobs while a daemon ends, stops answering, or loses its container."""

from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.cluster.slurm import Slurm
from tests.cluster.workers import ended_well, job_on
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster

NODE = "cpu-1"
UNTIL_TOLD = "until [ -e end ]; do sleep 0.2; done"


@pytest.fixture
def jobs(slurm: Slurm) -> tuple[int, int]:
    """Two running jobs on the node, one of sbatch and one of srun, that end by themselves when they are told.

    The container is known to have started: a slurmd that has never answered takes it along.
    """
    answered = "[ -e /run/slurm/services/slurmd/answered ] && echo yes || echo no"
    wait_until(lambda: slurm.exec(NODE, "slurmd", "sh", "-c", answered).strip() == "yes", "the watch has an answer")
    slurm.ssh("rm -f end result")
    batch = job_on(slurm, NODE, UNTIL_TOLD)
    command = f"srun -J interactive -w {NODE} --mem 16 sh -c '{UNTIL_TOLD}'"
    slurm.ssh(f'nohup sh -c "{command}; echo \\$? > result" > /dev/null 2>&1 < /dev/null &')

    def running() -> list[int]:
        return [
            int(job["JobId"]) for job in slurm.jobs() if (job["JobName"], job["JobState"]) == ("interactive", "RUNNING")
        ]

    wait_until(lambda: len(running()) == 1, "srun's job runs")
    return batch, running()[0]


def containers(slurm: Slurm) -> int:
    """Return how often the node's container has been started again."""
    statuses = slurm.api.read_namespaced_pod(NODE, slurm.namespace).status.container_statuses
    return sum(status.restart_count for status in statuses if status.name == "slurmd")


def replaced(slurm: Slurm, before: str) -> Callable[[], bool]:
    """Return a condition: another slurmd than before answers."""

    def condition() -> bool:
        answer = slurm.exec(NODE, "slurmd", "sh", "-c", "scontrol show slurmd || true")
        return "Slurmd PID" in answer and slurm.daemon(NODE) != before

    return condition


def assert_jobs_ended_well(slurm: Slurm, jobs: tuple[int, int]) -> None:
    slurm.ssh("touch end")
    for job in jobs:
        slurm.wait_for_job(job, "COMPLETED")
    assert all(ended_well(slurm, job) for job in jobs)
    wait_until(lambda: slurm.ssh("cat result || true").stdout == "0\n", "srun ends")


def test_jobs_outlive_slurmd_and_its_container_stays(slurm: Slurm, jobs: tuple[int, int]) -> None:
    before, started = slurm.daemon(NODE), containers(slurm)

    slurm.exec(NODE, "slurmd", "pkill", "-KILL", "-x", "slurmd")
    wait_until(replaced(slurm, before), "slurmd is there again")

    assert_jobs_ended_well(slurm, jobs)
    assert containers(slurm) == started
    assert slurm.ssh(f"srun -w {NODE} hostname").stdout == f"{NODE}\n"


@pytest.mark.soak
def test_jobs_outlive_a_slurmd_that_answers_no_more(slurm: Slurm, jobs: tuple[int, int]) -> None:
    before, started = slurm.daemon(NODE), containers(slurm)

    slurm.exec(NODE, "slurmd", "pkill", "-STOP", "-x", "slurmd")
    wait_until(replaced(slurm, before), "another slurmd answers")

    assert_jobs_ended_well(slurm, jobs)
    assert containers(slurm) == started


def test_jobs_of_a_container_that_ended_are_requeued_or_failed_at_once(slurm: Slurm, jobs: tuple[int, int]) -> None:
    batch, interactive = jobs
    started = containers(slurm)

    with suppress(AssertionError):  # the container may take the command along
        slurm.exec(NODE, "slurmd", "pkill", "-KILL", "-x", "s6-svscan")
    wait_until(lambda: containers(slurm) == started + 1, "the container starts again")

    def states() -> tuple[str, str, str]:
        requeued = slurm.job(batch)
        return requeued["JobState"], requeued["Restarts"], slurm.job(interactive)["JobState"]

    wait_until(lambda: states() == ("PENDING", "1", "NODE_FAIL"), "Slurm knows the lost jobs", seen=states)
    # Slurm itself would wait two minutes. For ten seconds it still tries to send the kill of the lost run, which would
    # end the next one as well (slurm_send_addr_recv_msgs).
    slurm.scontrol("update", f"job={batch}", "StartTime=now+15")
    wait_until(lambda: states()[0] == "RUNNING", "the requeued job runs on the same node", seen=states)
    slurm.ssh("touch end")
    slurm.wait_for_job(batch, "COMPLETED")
    assert slurm.ssh(f"srun -w {NODE} hostname").stdout == f"{NODE}\n"
    assert "Reason=" not in slurm.scontrol("show", "node", NODE)


def answers(slurm: Slurm) -> bool:
    """Return True if a job starts on the node."""
    return slurm.ssh(f"timeout 20 srun -w {NODE} hostname", check=False).stdout == f"{NODE}\n"


@pytest.mark.soak
@pytest.mark.parametrize(
    ("pod", "container", "daemon"), [(NODE, "munged", "munged"), ("controller-0", "slurmctld", "slurmctld")]
)
def test_a_daemon_that_answers_no_more_is_replaced_while_jobs_run(
    slurm: Slurm, jobs: tuple[int, int], pod: str, container: str, daemon: str
) -> None:
    slurm.exec(pod, container, "pkill", "-STOP", "-x", daemon)

    wait_until(lambda: answers(slurm), f"another {daemon} answers", timeout_seconds=600)

    assert_jobs_ended_well(slurm, jobs)


def test_a_slurmctld_that_is_stopped_is_not_ready_until_it_answers_again(slurm: Slurm) -> None:
    def is_ready() -> bool:
        statuses = slurm.api.read_namespaced_pod("controller-0", slurm.namespace).status.container_statuses
        return all(status.ready for status in statuses if status.name == "slurmctld")

    wait_until(is_ready, "slurmctld is ready")
    slurm.exec("controller-0", "slurmctld", "pkill", "-STOP", "-x", "slurmctld")
    try:
        wait_until(lambda: not is_ready(), "the pod is not ready")
    finally:
        slurm.exec("controller-0", "slurmctld", "pkill", "-CONT", "-x", "slurmctld")
    wait_until(is_ready, "the pod is ready again")


def test_a_watch_of_slurmctld_that_is_killed_starts_again_and_slurmctld_continues(slurm: Slurm) -> None:
    def pids(*pattern: str) -> str:
        return slurm.exec("controller-0", "slurmctld", "sh", "-c", f"pgrep {' '.join(pattern)} || true")

    # A reconfigured slurmctld has the name of the file to which Debian's link leads.
    named = ("-x", "'slurmctld(-wlm)?'")
    watch, daemon = pids("-f", "'daemon_watch [s]lurmctld'"), pids(*named)
    assert daemon
    slurm.exec("controller-0", "slurmctld", "sh", "-c", f"kill -KILL {watch}")
    wait_until(lambda: pids("-f", "'daemon_watch [s]lurmctld'") not in {"", watch}, "another watch runs")
    assert pids(*named) == daemon
