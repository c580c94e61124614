"""Maintenance of a machine whose worker has jobs, by the commands of docs/operations.md."""

import re
from collections.abc import Iterator

import pytest

from tests.cluster.several_machines import SeveralMachines, several_machines
from tests.waiting import wait_until
from tools import paths

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

WORKER = "cpu-1"
PAGE = (paths.ROOT / "docs" / "operations.md").read_text()
DRAIN = "kubectl drain {} --ignore-daemonsets --delete-emptydir-data"


def commands() -> list[str]:
    """Return the blocks of the page's section, in their order."""
    section = PAGE.partition("\n## Maintenance of a machine\n")[2].partition("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", section, re.DOTALL)


@pytest.fixture(scope="module")
def trial() -> Iterator[SeveralMachines]:
    with several_machines(WORKER, on="n2") as made:
        yield made


@pytest.fixture
def machine(trial: SeveralMachines) -> Iterator[str]:
    """The machine of an idle worker; afterwards all machines take pods, and all nodes take jobs."""
    wait_until(lambda: trial.state(WORKER) == "idle", "the worker takes jobs")
    yield trial.pod(WORKER)["node"]
    trial.user("scancel --me")
    trial.box.kubectl("uncordon", "n1", "n2", "n3")


def submitted(trial: SeveralMachines, command: str = "sleep 600") -> str:
    """Return a job that runs on the worker."""
    job = trial.user(f"sbatch --parsable -w {WORKER} --mem=50 --wrap '{command}'")
    wait_until(lambda: trial.job(job)[0] == "RUNNING", "the job runs")
    return job


def test_jobs_still_start_on_a_cordoned_machine(trial: SeveralMachines, machine: str) -> None:
    trial.box.kubectl("cordon", machine)
    submitted(trial)


def test_a_drain_of_a_machine_stops_at_its_worker_whose_jobs_continue(trial: SeveralMachines, machine: str) -> None:
    job, before = submitted(trial), trial.pod(WORKER)
    said = trial.shell(f"{DRAIN.format(machine)} --timeout=20s 2>&1 || echo ended with $?")
    assert "Cannot evict pod as it would violate the pod's disruption budget" in said
    assert said.rstrip().endswith("ended with 1")
    assert trial.pod(WORKER) == before
    assert trial.job(job) == ("RUNNING", "0")
    assert trial.state(WORKER) in {"mix", "alloc"}, "it is not drained"
    submitted(trial)


def test_the_commands_of_the_page_empty_a_machine_after_its_jobs_and_bring_the_node_back(
    trial: SeveralMachines, machine: str
) -> None:
    job, before = submitted(trial, "until test -e end; do sleep 1; done"), trial.pod(WORKER)
    free, move, undrain, uncordon = (block.replace("worker-7", machine) for block in commands())
    named = f"MACHINE={machine}; NODES={WORKER}\n"

    with trial.start(f"{free}\necho $NODES") as freeing:
        try:
            wait_until(lambda: trial.state(WORKER) == "drng", "the node is drained with its job")
            assert trial.job(job) == ("RUNNING", "0")
        finally:
            trial.user("touch end")
        said, _ = freeing.communicate()
    assert freeing.returncode == 0, said
    assert said.rstrip().endswith(WORKER)
    assert f"drained: {WORKER}" in said
    wait_until(lambda: trial.user(f"sacct -nXj {job} -o state%20") == "COMPLETED", "the job's record arrives")

    trial.shell(named + move)
    listed = trial.box.kubectl("get", "pods", "--all-namespaces", f"--field-selector=spec.nodeName={machine}")
    assert WORKER not in listed
    wait_until(lambda: trial.pod(WORKER)["ready"] == "True", "the worker is ready on another machine")
    assert trial.pod(WORKER)["node"] != before["node"]
    assert trial.state(WORKER).startswith("drain"), "the drain outlives the pod"

    trial.shell(named + undrain)
    submitted(trial, "sleep 5")
    trial.shell(named + uncordon)
    trial.place(WORKER, machine)


def test_a_machine_that_is_restarted_at_once_requeues_its_jobs_and_keeps_a_drain_of_an_admin(
    trial: SeveralMachines, machine: str
) -> None:
    if machine == "n1":
        trial.place(WORKER, machine := "n2")
        wait_until(lambda: trial.state(WORKER) == "idle", "the worker takes jobs")
    job, before = submitted(trial), trial.pod(WORKER)
    trial.shell(f"soperator nodes drain -n slurm {WORKER} --reason 'bad fan'")

    trial.box.kubernetes("machine-kill", "--number", machine.removeprefix("n"))
    trial.box.kubernetes("machine-start", "--number", machine.removeprefix("n"))

    wait_until(lambda: trial.job(job) == ("PENDING", "1"), "the job is requeued", timeout_seconds=90)
    wait_until(lambda: trial.state(WORKER) == "drain", "the node is back, and drained", timeout_seconds=120)
    assert trial.pod(WORKER)["uid"] == before["uid"], "no hand, no new pod"
    assert trial.user(f"sinfo -hn {WORKER} -o %E") == "bad fan"
    trial.shell(f"soperator nodes undrain -n slurm {WORKER}")
    submitted(trial, "sleep 5")
