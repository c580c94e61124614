"""An upgrade of Slurm with a job running, killed on its way, and all that a cluster does after it."""

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from kubernetes.client import AppsV1Api

from soperator_pulumi.errors import TransportError
from soperator_pulumi.operations.slurm_upgrade import VERSION_ANNOTATION
from tests.cluster.scrapes import scraped
from tests.cluster.slurm import QUICK, SMALL, Slurm, a_cluster, a_node_set, unique
from tests.cluster.workers import said
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools import images
from tools.engine import DeployError

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

OLD, NEW = images.SUITES

_WAITS = "until [ -e ~/{0} ]; do sleep 0.2; done; srun echo {0} ended"


@dataclass
class Upgraded:
    """A cluster after its upgrade, and what was seen during it."""

    slurm: Slurm
    preview: str
    continued: str
    """Messages of a preview after the kill."""
    job: dict[str, str]
    """The job that ran through it, as slurmctld reports it in the end."""
    client_meanwhile: str
    """Version of the login node's clients while slurmctld had the new one."""
    answered_meanwhile: str
    """Answer of slurmctld to these clients."""


def configured(version: str, **extra: str) -> dict[str, object]:
    return {"version": version, "constrain": "none", "extra": {**QUICK, **extra}}


def version_of_slurmctld(slurm: Slurm) -> str:
    """Return the version that slurmctld answers with; nothing while its pod is replaced."""
    lines = answered(slurm, "show", "config").splitlines()
    return next((line.split()[-1] for line in lines if line.startswith("SLURM_VERSION")), "")


def answered(slurm: Slurm, *words: str) -> str:
    """Return the answer of slurmctld; nothing while its pod is replaced."""
    try:
        return slurm.scontrol(*words)
    except (AssertionError, TransportError):
        return ""


@pytest.fixture(scope="module", autouse=True)
def both_versions(kubernetes: Kubernetes, built_images: None) -> None:
    """Bring the images of both versions, which each upgrade needs."""
    for version in (OLD, NEW):
        kubernetes.load_images(version)


@pytest.fixture(scope="module")
def upgraded(kubernetes: Kubernetes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgraded]:
    """Upgrade a small cluster while a job runs on one of its nodes."""
    cluster = a_cluster(
        name=unique("upgraded"),
        slurm=configured(OLD),
        node_sets=[a_node_set("cpu", replicas=2)],
        metrics={"interval": "10s", "allowed_namespaces": [], "pod_resources": SMALL},
    )
    slurm = Slurm(kubernetes, tmp_path_factory.mktemp("upgraded"), cluster)
    try:
        yield upgrade(slurm)
    finally:
        slurm.destroy()


def upgrade(slurm: Slurm) -> Upgraded:
    """Upgrade with a kill of the engine in the middle, and a job that ends when the second run has begun."""
    slurm.up()
    job = slurm.submit(_WAITS.format("upgrade"), options="-w cpu-0")
    slurm.wait_for_job(job, "RUNNING")
    slurm.cluster["slurm"] = configured(NEW)
    preview = messages_of_preview(slurm)
    kill_when(slurm, lambda: version_of_slurmctld(slurm).startswith(NEW))
    client = slurm.ssh("sinfo --version").stdout
    answer = slurm.ssh(f"squeue --noheader --format=%T --job {job}").stdout
    continued = messages_of_preview(slurm)
    slurm.ssh("touch ~/upgrade")
    slurm.up()
    return Upgraded(slurm, preview, continued, slurm.wait_for_job(job, "COMPLETED"), client, answer)


def messages_of_preview(slurm: Slurm) -> str:
    return said(slurm.deployer().preview())


def kill_when(slurm: Slurm, condition: Callable[[], bool]) -> None:
    """Kill `up`, program and providers with it, as soon as a condition holds."""
    with slurm.start_up() as run:
        try:
            wait_until(condition, what="the step before the kill", timeout_seconds=240)
        finally:
            os.killpg(run.pid, signal.SIGKILL)


def is_marked(slurm: Slurm, stateful_set: str) -> bool:
    """Return True if a StatefulSet has been brought to the new version."""
    found: Any = AppsV1Api(slurm.kubernetes.api).read_namespaced_stateful_set(stateful_set, slurm.namespace)
    return bool(found.metadata.annotations.get(VERSION_ANNOTATION) == NEW)


STEPS: dict[str, Callable[[Slurm], bool]] = {
    "slurmctld is replaced": lambda slurm: is_marked(slurm, "controller"),
    "slurmctld is new": lambda slurm: version_of_slurmctld(slurm).startswith(NEW),
    "workers are marked": lambda slurm: is_marked(slurm, "cpu"),
    "the first worker is new": lambda slurm: f"Version={NEW}" in answered(slurm, "show", "nodes"),
    "login nodes are replaced": lambda slurm: is_marked(slurm, "login"),
}
"""Moments of an upgrade, at each of which `make soak` kills the engine."""


@pytest.mark.parametrize("step", STEPS)
def test_an_upgrade_killed_at_any_step_is_completed(new_slurm: Callable[..., Slurm], step: str) -> None:
    slurm = new_slurm(slurm=configured(OLD), node_sets=[a_node_set("cpu", replicas=2)])
    slurm.up()
    job = slurm.submit("sleep 20", options="-w cpu-0")
    slurm.wait_for_job(job, "RUNNING")
    slurm.cluster["slurm"] = configured(NEW)
    kill_when(slurm, lambda: STEPS[step](slurm))

    slurm.up()

    assert slurm.wait_for_job(job, "COMPLETED")["Restarts"] == "0"
    assert slurm.scontrol("show", "nodes").count(f"Version={NEW}") == 2
    assert slurm.ssh("sinfo --version").stdout.startswith(f"slurm-wlm {NEW}")
    assert slurm.deployer().up().changed == ()


def test_a_preview_lists_the_steps_of_an_upgrade_in_their_order(upgraded: Upgraded) -> None:
    steps = ["the upgrade of Slurm 24.11 to 26.05 begins", "slurmctld;", "slurmd of cpu", "clients in the jail"]

    assert sorted(steps, key=upgraded.preview.index) == steps


def test_an_interrupted_upgrade_continues_with_the_steps_that_are_left(upgraded: Upgraded) -> None:
    assert "the upgrade of Slurm 24.11 to 26.05 continues" in upgraded.continued
    assert "clients in the jail" in upgraded.continued
    assert "slurmctld;" not in upgraded.continued


def test_a_job_runs_through_an_upgrade(upgraded: Upgraded) -> None:
    assert (upgraded.job["JobState"], upgraded.job["Restarts"]) == ("COMPLETED", "0")


def test_clients_of_the_old_version_serve_users_until_the_workers_are_new(upgraded: Upgraded) -> None:
    assert upgraded.client_meanwhile.startswith(f"slurm-wlm {OLD}")
    assert upgraded.answered_meanwhile == "RUNNING\n"


def test_all_parts_have_the_new_version_in_the_end(upgraded: Upgraded) -> None:
    nodes = upgraded.slurm.scontrol("show", "nodes", "--oneliner").splitlines()

    assert upgraded.slurm.ssh("sinfo --version").stdout.startswith(f"slurm-wlm {NEW}")
    assert len(nodes) == 2
    assert all(f"Version={NEW}" in node for node in nodes)


def test_a_second_up_changes_nothing(upgraded: Upgraded) -> None:
    assert upgraded.slurm.up().changed == ()


def test_a_way_back_is_refused_and_changes_nothing(upgraded: Upgraded) -> None:
    slurm = upgraded.slurm
    now = slurm.cluster["slurm"]
    slurm.cluster["slurm"] = configured(OLD)
    try:
        with pytest.raises(DeployError, match=r"slurmctld 26\.05 has written the cluster's state"):
            slurm.up()
    finally:
        slurm.cluster["slurm"] = now

    assert slurm.deployer().preview().changed == ()


def test_jobs_run_on_all_nodes_with_their_exit_codes(upgraded: Upgraded) -> None:
    slurm = upgraded.slurm

    assert sorted(slurm.ssh("srun -N2 hostname").stdout.split()) == ["cpu-0", "cpu-1"]
    assert slurm.ssh("srun sh -c 'exit 42'", check=False).returncode == 42
    assert slurm.wait_for_job(slurm.submit("exit 7"), "FAILED")["ExitCode"] == "7:0"


def test_a_job_is_in_the_jail_without_privileges(upgraded: Upgraded) -> None:
    slurm = upgraded.slurm
    slurm.ssh("echo from the login > ~/seen")
    status = slurm.ssh("srun cat /proc/self/status").stdout
    fields = dict(line.split(":", 1) for line in status.splitlines())

    assert slurm.ssh("srun ls /").stdout == slurm.ssh("ls /").stdout
    assert slurm.ssh("srun ls /usr/sbin/slurmd", check=False).stdout == ""
    assert slurm.ssh("srun cat seen").stdout == "from the login\n"
    assert (fields["NoNewPrivs"].strip(), int(fields["CapEff"], 16)) == ("1", 0)


def test_a_setting_of_26_05_takes_effect_and_a_wrong_one_changes_nothing(upgraded: Upgraded) -> None:
    slurm = upgraded.slurm
    slurm.cluster["slurm"] = configured(NEW, MetricsType="metrics/openmetrics", KillWait="45")
    slurm.up()
    now = slurm.scontrol("show", "config")
    slurm.cluster["slurm"] = configured(NEW, MetricsType="metrics/nonsense", KillWait="45")
    try:
        with pytest.raises(DeployError, match=r"Nothing was changed:(.|\n)*metrics/nonsense"):
            slurm.up()
    finally:
        slurm.cluster["slurm"] = configured(NEW, MetricsType="metrics/openmetrics", KillWait="45")

    assert "KillWait                = 45 sec" in now
    assert "MetricsType             = metrics/openmetrics" in slurm.scontrol("show", "config")


def test_the_exporter_serves_series_of_nodes_and_jobs(upgraded: Upgraded) -> None:
    slurm = upgraded.slurm
    job = slurm.submit("sleep 300", options="-w cpu-0 -o /dev/null")
    try:
        wait_until(lambda: f'slurm_job_node{{job_id="{job}",node="cpu-0"}}' in scraped(slurm), what="the running job")
        values = scraped(slurm)
    finally:
        slurm.ssh(f"scancel {job}")

    assert slurm.exec("metrics-0", "exporter", "sinfo", "--version").startswith(f"slurm-wlm {NEW}")
    assert (values["slurm_up"], values["slurm_nodes"], values["slurm_jobs_running"]) == (1, 2, 1)
    assert values['slurm_node_memory_bytes{node="cpu-0"}'] == 1024**3


def test_a_node_that_leaves_is_free_of_its_job_before(upgraded: Upgraded) -> None:
    slurm = upgraded.slurm
    job = slurm.submit(_WAITS.format("leave"), options="-w cpu-1")
    slurm.wait_for_job(job, "RUNNING")
    slurm.cluster["node_sets"][0]["replicas"] = 1
    try:
        with slurm.start_up() as run:
            try:
                wait_until(lambda: "DRAIN" in slurm.node_state("cpu-1"), what="cpu-1 is drained", timeout_seconds=60)
                slurm.ssh("touch ~/leave")
                _, errors = run.communicate(timeout=180)
            finally:
                run.kill()
        nodes = slurm.scontrol("show", "nodes", "--oneliner").splitlines()
    finally:
        slurm.cluster["node_sets"][0]["replicas"] = 2
        slurm.up()

    assert run.returncode == 0, errors
    assert [node.split()[0] for node in nodes] == ["NodeName=cpu-0"]
    assert slurm.job(job)["JobState"] == "COMPLETED"


DUMP = "/var/lib/mysql/before-slurm-26.05.sql"


def has_in_database_pod(slurm: Slurm, file: str) -> bool:
    folder, _, name = file.rpartition("/")
    return name in slurm.exec("database-0", "mariadb", "ls", folder).split()


def version_of_slurmdbd(slurm: Slurm) -> str:
    """Return the version of a slurmdbd that answers; nothing while its pod is replaced."""
    try:
        slurm.exec("accounting-0", "slurmdbd", "sacctmgr", "--noheader", "show", "cluster")
        return slurm.exec("accounting-0", "slurmdbd", "slurmdbd", "-V").split()[-1]
    except (AssertionError, TransportError):
        return ""


STEPS_OF_RECORDS: dict[str, Callable[[Slurm], bool]] = {
    "the dump begins": lambda slurm: has_in_database_pod(slurm, f"{DUMP}.part") or has_in_database_pod(slurm, DUMP),
    "the dump is whole": lambda slurm: has_in_database_pod(slurm, DUMP),
    "slurmdbd is replaced": lambda slurm: is_marked(slurm, "accounting"),
    "slurmdbd is new": lambda slurm: version_of_slurmdbd(slurm).startswith(NEW),
    "slurmctld is new": lambda slurm: version_of_slurmctld(slurm).startswith(NEW),
}
"""Moments of an upgrade with a database, at each of which `make soak` kills the engine."""


@pytest.mark.parametrize("step", STEPS_OF_RECORDS)
def test_an_upgrade_keeps_the_records_of_jobs_and_dumps_them_before(new_slurm: Callable[..., Slurm], step: str) -> None:
    small = {"pod_resources": SMALL}
    own = {"own": {**small, "storage": {"size_gib": 1}}}
    slurm = new_slurm(slurm=configured(OLD), accounting={"database": own, "slurmdbd": small})
    slurm.up()
    before = slurm.submit("exit 7")
    slurm.wait_for_job(before, "FAILED")
    running = slurm.submit(_WAITS.format("records"), options="-w cpu-0")
    slurm.wait_for_job(running, "RUNNING")
    slurm.cluster["slurm"] = configured(NEW)
    assert f"  a dump of the database to {DUMP}" in messages_of_preview(slurm)

    kill_when(slurm, lambda: STEPS_OF_RECORDS[step](slurm))
    slurm.ssh("touch ~/records")
    slurm.up()
    slurm.wait_for_job(running, "COMPLETED")

    def records() -> list[str]:
        return slurm.ssh("sacct --noheader --parsable2 --allocations --format=jobid,state,exitcode").stdout.split()

    expected = [f"{before}|FAILED|7:0", f"{running}|COMPLETED|0:0"]
    wait_until(lambda: sorted(records()) == sorted(expected), what="sacct has both jobs", timeout_seconds=60)
    dump = slurm.exec("database-0", "mariadb", "tail", "-n", "1", DUMP)
    assert dump.startswith("-- Dump completed")
    assert slurm.exec("accounting-0", "slurmdbd", "slurmdbd", "-V").startswith(f"slurm-wlm {NEW}")
