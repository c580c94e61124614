"""Users come with the specification, without a restart of anything.

The cluster of three workers is left as it was.
"""

import subprocess

import pytest

from tests.cluster.slurm import SMALL, Slurm
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster


def test_a_new_user_logs_in_and_runs_while_a_job_of_another_continues(workers: Slurm) -> None:
    slurm = workers
    pods_before = {pod.metadata.uid for pod in slurm.api.list_namespaced_pod(slurm.namespace).items}
    job = slurm.submit("sleep 600")
    slurm.wait_for_job(job, "RUNNING")

    slurm.cluster["users"].append({"name": "carol", "uid": 2003, "shell": "/bin/sh", "groups": ["physics"]})
    slurm.cluster["groups"] = [{"name": "physics", "gid": 3000}]
    slurm.up()

    assert slurm.ssh("srun -N1 --overcommit id -u", user="carol").stdout.strip() == "2003"
    assert slurm.ssh("id -Gn", user="carol").stdout.split() == ["carol", "physics"]
    assert slurm.job(job)["JobState"] == "RUNNING"
    pods = {pod.metadata.uid for pod in slurm.api.list_namespaced_pod(slurm.namespace).items}
    assert pods <= pods_before, "none is new; one of another test may have stopped"
    wait_until(
        lambda: "carol" in slurm.exec("cpu-1", "slurmd", "sh", "-c", "getent passwd carol || true"),
        what="the workers know carol by name",
    )


def test_a_login_pool_admits_the_members_of_its_groups_alone(workers: Slurm) -> None:
    slurm = workers
    pods_before = {pod.metadata.uid for pod in slurm.api.list_namespaced_pod(slurm.namespace).items}
    slurm.cluster["users"].append({"name": "carol", "uid": 2003, "shell": "/bin/sh", "groups": ["physics"]})
    slurm.cluster["groups"] = [{"name": "physics", "gid": 3000}]
    pool = {"groups": ["physics"], "pod_resources": SMALL}
    slurm.cluster["login"] = {**slurm.cluster.get("login", {}), "pools": {"large": pool}}
    slurm.up()

    way = slurm.by_way_of("login-large-0")
    shown = slurm.ssh("hostname; srun -N1 --overcommit id -un", user="carol", options=way).stdout.split()
    assert shown == ["login-large-0", "carol"]
    assert slurm.ssh("true", options=way, check=False).returncode == 255, "alice is in no group of the pool"
    assert slurm.ssh("hostname").stdout.strip() == "login-0"
    assert pods_before < {pod.metadata.uid for pod in slurm.api.list_namespaced_pod(slurm.namespace).items}


@pytest.mark.soak
def test_sessions_of_a_pool_that_leaves_the_stack_use_slurm_until_they_end(workers: Slurm) -> None:
    slurm = workers
    login = slurm.cluster.get("login", {})
    pool = {"pod_resources": SMALL, "termination_grace": "5m"}
    slurm.cluster["login"] = {**login, "pools": {"large": pool}}
    slurm.up()

    def is_going() -> bool:
        pod = slurm.api.read_namespaced_pod("login-large-0", slurm.namespace)
        return pod.metadata.deletion_timestamp is not None

    asked = "while read _; do timeout 20 srun --overcommit hostname </dev/null 2>&1 || echo failed; done"
    with slurm.ssh_session(asked, options=slurm.by_way_of("login-large-0")) as session:
        slurm.cluster["login"] = login
        with slurm.start_up() as up:
            wait_until(is_going, "the pool's pod is deleted")
            answer = ask(session)
            assert session.stdin is not None
            session.stdin.close()
            assert up.wait(timeout=240) == 0
    assert answer.startswith("cpu-")


def ask(session: subprocess.Popen[str]) -> str:
    """Return the line with which a session answers an empty one."""
    assert session.stdin is not None
    assert session.stdout is not None
    session.stdin.write("\n")
    session.stdin.flush()
    return session.stdout.readline()


def test_a_removed_user_does_not_get_in_any_more(workers: Slurm) -> None:
    slurm = workers
    slurm.cluster["users"].append({"name": "mallory", "uid": 2004, "shell": "/bin/sh"})
    slurm.up()
    assert slurm.ssh("id -un", user="mallory").stdout.strip() == "mallory"

    slurm.cluster["users"].pop()
    slurm.up()

    assert slurm.ssh("id -un", user="mallory", check=False).returncode == 255
