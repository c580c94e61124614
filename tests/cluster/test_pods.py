"""Pods come and go; Slurm's nodes and jobs stay."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cluster.slurm import Slurm
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster


def delete_and_await_return(slurm: Slurm, pod: str) -> None:
    """Delete a pod as a person would, and wait until another is ready under its name."""
    before = slurm.api.read_namespaced_pod(pod, slurm.namespace).metadata.uid
    slurm.api.delete_namespaced_pod(pod, slurm.namespace)

    def is_back() -> bool:
        pods = slurm.api.list_namespaced_pod(slurm.namespace, field_selector=f"metadata.name={pod}").items
        return any(
            found.metadata.uid != before
            and any(c.type == "Ready" and c.status == "True" for c in found.status.conditions or [])
            for found in pods
        )

    wait_until(is_back, what=f"pod {pod} is back and ready", timeout_seconds=120)


def kill_sandboxes(slurm: Slurm) -> set[str]:
    """Kill that process of each pod which holds its namespaces, and return the sandboxes."""
    embedded = slurm.kubernetes.target.embedded
    assert embedded, "sandboxes are killed on the machine of the embedded Kubernetes"
    ours = f'labels."io.kubernetes.pod.namespace"=="{slurm.namespace}",labels."io.cri-containerd.kind"==sandbox'
    running = {line.split()[0] for line in embedded.ctr("tasks", "list").splitlines() if "RUNNING" in line}
    sandboxes = running & set(embedded.ctr("containers", "list", "--quiet", ours).split())
    for sandbox in sandboxes:
        embedded.ctr("tasks", "kill", "--signal", "SIGKILL", sandbox)
    return sandboxes


@contextmanager
def drained(slurm: Slurm, node: str, reason: str) -> Iterator[None]:
    slurm.scontrol("update", f"nodename={node}", "state=drain", f"reason={reason}")
    try:
        yield
    finally:
        slurm.scontrol("update", f"nodename={node}", "state=resume")


def test_a_deleted_worker_comes_back_as_the_same_node_and_takes_jobs(slurm: Slurm) -> None:
    delete_and_await_return(slurm, "cpu-1")

    assert slurm.ssh("srun -w cpu-1 hostname", timeout_seconds=90).stdout.strip() == "cpu-1"


def test_an_admins_drain_outlives_the_pod(slurm: Slurm) -> None:
    with drained(slurm, "cpu-1", "bad memory"):
        delete_and_await_return(slurm, "cpu-1")
        wait_until(lambda: "NOT_RESPONDING" not in slurm.node_state("cpu-1"), what="cpu-1 responds")

        assert "DRAIN" in slurm.node_state("cpu-1")
        assert "bad memory" in slurm.scontrol("show", "node", "cpu-1")


def test_a_job_outlives_the_controllers_pod(slurm: Slurm) -> None:
    job = slurm.submit("sleep 12; echo done", options="-o survived.%j")
    slurm.wait_for_job(job, "RUNNING")
    delete_and_await_return(slurm, "controller-0")

    assert slurm.wait_for_job(job, "COMPLETED")["ExitCode"] == "0:0"
    assert slurm.ssh(f"cat ~/survived.{job}").stdout == "done\n"
    assert slurm.job(job)["Restarts"] == "0"


def test_the_login_node_keeps_its_host_key(slurm: Slurm) -> None:
    delete_and_await_return(slurm, "login-0")

    assert slurm.ssh("hostname").stdout.strip() == "login-0"


def started_containers(slurm: Slurm) -> dict[str, set[str]]:
    """Return the daemons' containers of each pod that is ready, by the pod's UID."""
    pods = slurm.api.list_namespaced_pod(slurm.namespace, field_selector="status.phase=Running").items
    return {
        pod.metadata.uid: {container.container_id for container in pod.status.container_statuses}
        for pod in pods
        if all(container.ready for container in pod.status.container_statuses)
    }


def test_pods_whose_sandboxes_were_killed_come_back_in_place(slurm: Slurm) -> None:
    """Containers that prepare a pod run a second time, and find files of their own."""
    job = slurm.submit("hostname", options="--hold -N2 -o held.%j")
    before = started_containers(slurm)
    assert kill_sandboxes(slurm)

    def are_back() -> bool:
        now = started_containers(slurm)
        return all(pod in now and not now[pod] & before[pod] for pod in before)

    wait_until(are_back, what="each pod that was ready is ready with other containers")
    slurm.scontrol("release", str(job))
    slurm.wait_for_job(job, "COMPLETED")


@pytest.mark.soak
def test_an_idle_worker_starts_few_processes(slurm: Slurm) -> None:
    """Processes and threads: those of ten programs, and of the call that asks. Jobs feel them."""
    starting = "pgrep -f '[p]ut_into_service' || true"
    wait_until(lambda: not slurm.exec("cpu-0", "slurmd", "sh", "-c", starting), what="nothing is left of the start")

    def started() -> int:
        """Return the number of processes that the containers have had: their last ids (/proc/loadavg in proc(5))."""
        return sum(int(slurm.exec("cpu-0", name, "cat", "/proc/loadavg").split()[-1]) for name in ("slurmd", "munged"))

    before = started()
    time.sleep(60)  # what is measured is a minute

    assert started() - before <= 40
