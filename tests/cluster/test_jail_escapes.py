"""Attempts to get out: (a) by a user in a job and at the login, (b) by root in the admin shell. None succeeds.

Jobs are not constrained here; `test_constrain.py` makes the same attempts in jobs that are."""

from collections.abc import Callable, Iterator

import pytest

from tests.cluster import attempts
from tests.cluster.escaping import BY_USERS, PROGRAM, addresses, assert_blocked, bring, outcomes, words
from tests.cluster.slurm import Slurm

pytestmark = pytest.mark.cluster

OF_ROOT_IN_ITS_OWN = {
    # The tree and the container are the admin shell's own: there is nothing to be kept from it.
    "add_a_user_to_the_jail", "become_another_user", "become_root", "change_a_program_of_the_jail",
    "change_the_driver_of_gpus", "change_the_names_of_hosts", "change_where_libraries_are_found",
    "give_a_file_away", "join_another_group", "read_memory_by_system_call",
    "read_the_environment_of_another_process", "read_the_memory_of_another_process",
    "read_the_passwords_of_the_jail", "see_the_files_of_another_process", "see_the_folder_of_another_process",
    "see_the_root_of_another_process", "see_the_root_of_the_first_process", "see_who_else_is_there",
    "signal_another_process", "trace_another_process",
}  # fmt: skip
BY_ROOT = sorted(attempts.ATTEMPTS.keys() - OF_ROOT_IN_ITS_OWN)


@pytest.fixture(scope="module")
def program(slurm: Slurm) -> str:
    """The attempts in alice's home, as a command."""
    bring(slurm)
    return f"{addresses(slurm, 'cpu-0')} {PROGRAM}"


@pytest.fixture(scope="module")
def neighbour(slurm: Slurm) -> Iterator[int]:
    """A job of another user next to the attempts, with something to steal."""
    job = slurm.submit("SECRET=of-bob sleep 3600", user="bob", options="-w cpu-0 --overcommit --mem=1 -o /dev/null")
    slurm.wait_for_job(job, "RUNNING")
    yield job
    slurm.ssh(f"scancel {job}", user="bob")
    slurm.wait_for_job(job, "CANCELLED")


@pytest.fixture(scope="module")
def by_job(slurm: Slurm, program: str, neighbour: int) -> dict[str, str]:
    command = f"env {program} {' '.join(BY_USERS)}"
    return outcomes(slurm.ssh(f"srun -w cpu-0 --overlap --overcommit --mem=1 {command}").stdout)


@pytest.fixture(scope="module")
def by_session(slurm: Slurm, program: str) -> dict[str, str]:
    return outcomes(slurm.ssh(f"{program} {' '.join(BY_USERS)}").stdout)


@pytest.fixture(scope="module")
def by_root(admin: Callable[[str], str], program: str) -> dict[str, str]:
    return outcomes(admin(f"cd /home/alice && {program} {' '.join(BY_ROOT)}"))


@pytest.mark.parametrize("name", BY_USERS, ids=words)
def test_a_job_cannot(by_job: dict[str, str], name: str) -> None:
    assert_blocked(by_job[name])


@pytest.mark.parametrize("name", BY_USERS, ids=words)
def test_a_session_cannot(by_session: dict[str, str], name: str) -> None:
    assert_blocked(by_session[name])


@pytest.mark.parametrize("name", BY_ROOT, ids=words)
def test_root_in_the_admin_shell_cannot(by_root: dict[str, str], name: str) -> None:
    assert_blocked(by_root[name])


def test_an_attempt_that_works_is_seen(slurm: Slurm, program: str) -> None:
    """Users may talk to munged: otherwise a broken program would make all the others pass."""
    assert "ESCAPED: " in slurm.ssh(f"srun env {program} reach_the_munge_socket").stdout


def test_the_attempts_on_processes_have_something_to_attack(by_job: dict[str, str]) -> None:
    assert by_job["read_the_environment_of_another_process"].startswith("blocked: E")


def test_a_setuid_program_that_root_has_planted_gives_nothing(slurm: Slurm, admin: Callable[[str], str]) -> None:
    admin("cp /usr/bin/id /usr/local/bin/planted && chmod 4755 /usr/local/bin/planted")
    try:
        for prefix in ("", "srun "):
            assert slurm.ssh(f"{prefix}/usr/local/bin/planted -u").stdout == "2001\n"
    finally:
        admin("rm /usr/local/bin/planted")


def test_a_user_cannot_administer_slurm(slurm: Slurm) -> None:
    for command in ("update nodename=cpu-0 state=drain reason=x", "reconfigure", "shutdown"):
        assert slurm.ssh(f"srun scontrol {command}", check=False).returncode != 0
    assert slurm.node_state("cpu-0").startswith(("IDLE", "MIXED", "ALLOCATED"))


def test_a_user_cannot_cancel_the_job_of_another(slurm: Slurm, neighbour: int) -> None:
    refused = slurm.ssh(f"scancel {neighbour}", check=False)

    assert "Access/permission denied" in refused.stderr
    assert slurm.job(neighbour)["JobState"] == "RUNNING"


def test_root_of_the_machines_runs_no_jobs(slurm: Slurm) -> None:
    """DisableRootJobs: root in a worker's own container is no way into the queue."""
    said = slurm.exec("cpu-0", "slurmd", "sh", "-c", "srun -w cpu-0 id 2>&1 || true")

    assert "Invalid user id" in said


def test_root_in_the_admin_shell_is_nobody_to_slurm(admin: Callable[[str], str]) -> None:
    said = admin("/opt/slurm/bin/srun id 2>&1; /opt/slurm/bin/scontrol ping 2>&1; true")

    assert "uid=" not in said
    assert "UP" not in said


def test_the_admin_shell_has_the_capabilities_of_installing_and_no_more(admin: Callable[[str], str]) -> None:
    status = dict(line.split(":", 1) for line in admin("cat /proc/self/status").splitlines())
    allowed = {
        "chown": 0,
        "dac_override": 1,
        "fowner": 3,
        "fsetid": 4,
        "kill": 5,
        "setgid": 6,
        "setuid": 7,
        "setfcap": 31,
    }

    assert int(status["CapBnd"], 16) == sum(1 << number for number in allowed.values())


def test_jobs_and_sessions_have_no_capability_even_to_gain(slurm: Slurm) -> None:
    for prefix in ("", "srun "):
        status = dict(line.split(":", 1) for line in slurm.ssh(f"{prefix}cat /proc/self/status").stdout.splitlines())
        kinds = ("CapInh", "CapPrm", "CapEff", "CapAmb", *(["CapBnd"] if prefix else []))
        assert {kind: int(status[kind], 16) for kind in kinds} == dict.fromkeys(kinds, 0)
        assert (status["NoNewPrivs"].strip(), status["Seccomp"].strip()) == ("1", "2")
