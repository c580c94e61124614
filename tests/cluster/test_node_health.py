"""Quick checks on real nodes: a fault drains, its end undrains, and drains of others stay. nvidia-smi is made; slurmd,
its rounds and slurmctld are real."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import AuthorizationV1Api, V1ResourceAttributes, V1SubjectAccessReview, V1SubjectAccessReviewSpec

from health_testing import rounds_under_load
from health_testing.smi_outputs import query
from soperator_pulumi.monitoring.dashboards import DASHBOARDS
from soperator_pulumi.render.layout import SPOOL_DIR
from tests.cluster.device_plugin import DevicePlugin, DriverMount, served
from tests.cluster.long_check_runs import events, run_of
from tests.cluster.scrapes import exposition, scraped
from tests.cluster.slurm import SMALL, Slurm, a_cluster, a_node_set, deployed, unique
from tests.cluster.workers import nodes
from tests.conftest import Kubernetes
from tests.unit.monitoring.promql import metrics
from tests.unit.monitoring.running_prometheus import running_prometheus
from tests.unit.monitoring.world import NAMESPACE
from tests.waiting import wait_until
from tools.dashboard.__main__ import query_text

pytestmark = pytest.mark.cluster

GPU = "nvidia.com/gpu-with-health"
COUNT = 2
UNREACHABLE = 100_000
"""Bandwidth of memory in GB/s that no node has."""

ROUND = "/usr/lib/soperator/health/health-check"

SMI = """#!/bin/sh
answers=/usr/share/made-answers
[ ! -e $answers/hangs ] || sleep 600
[ "$1" != -q ] || cat $answers/query
"""


PROCESS = "<process_info><pid>4711</pid><type>C</type></process_info>"

ANSWERS = "/usr/share/made-answers"

HOOKS = {
    "prolog": {
        "licence": {
            "script": f"[ ! -e {ANSWERS}/no-licence ] || {{ echo \"no 'licence'\"; exit 1; }}",
            "action": "requeue",
        }
    },
    "epilog": {
        "noted": {"script": f"[ ! -e {ANSWERS}/noted ] || {{ echo only noted; exit 3; }}", "action": "log"},
        "scratch": {"script": f"[ ! -e {ANSWERS}/scratch-hangs ] || sleep 654", "timeout": "5s"},
    },
    "ours": {"gpus_unused_before": {"timeout": "5s"}},
}
"""Hooks that fail when a test makes a file."""


@dataclass(frozen=True)
class MadeGpus:
    """Answers of a node's nvidia-smi."""

    folder: Path

    def answer(self, count: int, *, used: bool = False) -> None:
        """Have nvidia-smi describe so many GPUs, the first of them in use by a process."""
        beside = self.folder / "query.new"
        changes = {"<processes></processes>": f"<processes>{PROCESS}</processes>"} if used else {}
        beside.write_text(query("h100-550", count=count, changes=changes))
        beside.rename(self.folder / "query")

    def hang(self, *, hangs: bool) -> None:
        """Have nvidia-smi answer nothing, or answer again."""
        if hangs:
            (self.folder / "hangs").touch()
        else:
            (self.folder / "hangs").unlink()


@pytest.fixture(scope="module")
def gpus(kubernetes: Kubernetes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MadeGpus]:
    """GPUs of a node, with an nvidia-smi that prints what a test says."""
    made = MadeGpus(tmp_path_factory.mktemp("answers"))
    made.folder.chmod(0o755)
    made.answer(COUNT)
    program = tmp_path_factory.mktemp("program") / "nvidia-smi"
    program.write_text(SMI)
    program.chmod(0o755)
    mounts = [DriverMount(program, "/usr/bin/nvidia-smi"), DriverMount(made.folder, "/usr/share/made-answers")]
    plugin = DevicePlugin(GPU, tmp_path_factory.mktemp("devices"), count=COUNT, mounts=mounts)
    with served(plugin, kubernetes):
        yield made


@pytest.fixture(scope="module")
def slurm(
    kubernetes: Kubernetes, built_images: None, gpus: MadeGpus, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Slurm]:
    """One node with GPUs, which checks itself every ten seconds."""
    at_once = {"failures": 1, "passes": 1, "every": "10s"}
    cluster = a_cluster(
        name=unique("health"),
        node_sets=[a_node_set("gpu", gpus={"count": COUNT, "type": "h100", "resource": GPU})],
        hooks={**HOOKS, "job_mapping": str(tmp_path_factory.mktemp("mapping"))},
        metrics={
            "interval": "10s",
            "allowed_namespaces": [],
            "events": True,
            "node_conditions": True,
            "pod_resources": SMALL,
        },
        health={
            "interval": "10s",
            "timeout": "10s",
            "program": {"script": "test -e /run/slurm/health.json || true\n", "timeout": "5s"},
            "checks": {
                "gpu_count": at_once,
                "gpu_query": at_once,
                # Undrains at once what a hook has drained, and drains nothing itself.
                "gpu_processes": {**at_once, "failures": 60},
                # of the machine that tests run on, which is no matter of theirs
                "memory_available": {"enabled": False},
                # fails always, and drains nothing
                "volume_space": {"action": "log", "limit": 0, "failures": 1, "every": "10s"},
                "clock": {"enabled": False},
            },
            # Never by itself. One node is no ring.
            "long_checks": {
                "memory_bandwidth": {
                    "schedule": "0 0 1 1 *",
                    "every": "1s",
                    "start_within": "30s",
                    "limit": UNREACHABLE,
                    "arguments": {"mib": 16, "seconds": 0.1},
                },
            },
        },
    )
    with deployed(Slurm(kubernetes, tmp_path_factory.mktemp("health"), cluster)) as made:
        yield made


@pytest.fixture(autouse=True)
def no_job_is_ending(slurm: Slurm) -> None:
    """The epilog of another test's job meets none of what a test changes."""
    wait_until(
        lambda: "COMPLETING" not in slurm.node_state("gpu-0"), what="the epilogs of other tests' jobs have ended"
    )


def checked(slurm: Slurm) -> None:
    """Wait until the node has counted its GPUs once more, in a round of slurmd or of ours."""
    began = time.time()

    def since_then() -> bool:
        memory = slurm.exec("gpu-0", "slurmd", "sh", "-c", f"{ROUND} > /dev/null; cat /run/slurm/health-memory.json")
        return bool(json.loads(memory)["ran"]["gpu_query"] > began)

    wait_until(since_then, what="gpu-0 has checked itself", timeout_seconds=60)


def reason(slurm: Slurm) -> str:
    node = nodes(slurm)["gpu-0"]
    return node.reason if node.drained else ""


def drained_as(slurm: Slurm, wanted: str, seconds: float = 60) -> None:
    wait_until(lambda: reason(slurm) == wanted, what=f"gpu-0 is drained as {wanted!r}", timeout_seconds=seconds)


def test_a_lost_gpu_drains_the_node_before_the_next_job_and_its_return_undrains_it(
    slurm: Slurm, gpus: MadeGpus, kubernetes: Kubernetes
) -> None:
    assert reason(slurm) == ""
    slurm.ssh("srun --gpus=1 true")
    gpus.answer(COUNT - 1)

    drained_as(slurm, "health gpu_count: 1, allowed 2")
    job = slurm.submit("true", options="--gpus=1 -o /dev/null")
    assert slurm.job(job)["JobState"] == "PENDING"
    assert nodes(slurm)["gpu-0"].set_by == "root"
    line = '{"health": "gpu-0", "event": "drained", "reason": "health gpu_count: 1, allowed 2"}'
    command = ("logs", "gpu-0", "--namespace", slurm.namespace, "--container", "slurmd")
    wait_until(lambda: line in kubernetes.run(*command), what="the log has the drain")  # at the end of the round
    explained = slurm.exec("gpu-0", "slurmd", ROUND, "explain")
    assert "gpu-0 is drained: health gpu_count: 1, allowed 2" in explained

    gpus.answer(COUNT)
    slurm.wait_for_job(job, "COMPLETED", timeout_seconds=60)
    assert reason(slurm) == ""


@dataclass(frozen=True)
class Shown:
    """Metrics during a drain by a check, and events after its end."""

    metrics: dict[str, float]
    condition: tuple[str, str, str]
    events: list[tuple[str, str, str]]


FAILED_CHECK = 'slurm_health_check_failed{check="gpu_count",node="gpu-0"}'


@pytest.fixture(scope="module")
def shown(slurm: Slurm, gpus: MadeGpus) -> Shown:
    """One drain by a check, from its begin to its end, as the exporter shows it."""
    wait_until(lambda: scraped(slurm).get("slurm_nodes_drain") == 0, what="no drain is left from before")
    # Events follow in a thread of their own: those of an earlier drain are complete when each begin has its end.
    wait_until(lambda: not begun(slurm), what="the events of earlier drains")
    before = len(health_events(slurm))
    gpus.answer(COUNT - 1)
    try:
        wait_until(lambda: scraped(slurm).get(FAILED_CHECK) == 1, what="the metric of the failed check")
        metrics = scraped(slurm)
        wait_until(lambda: len(conditions(slurm)) == 1, what="the condition of the machine")
        (condition,) = conditions(slurm)
    finally:
        gpus.answer(COUNT)
    wait_until(lambda: scraped(slurm).get("slurm_nodes_drain") == 0, what="the exporter shows the end")
    wait_until(lambda: len(health_events(slurm)) >= before + 2, what="the event of the end")
    return Shown(metrics, condition, health_events(slurm)[before:])


def conditions(slurm: Slurm) -> list[tuple[str, str, str]]:
    """Return the condition of the cluster on the machine of the node."""
    machine = slurm.api.read_namespaced_pod("gpu-0", slurm.namespace).spec.node_name
    found = slurm.api.read_node(machine).status.conditions
    return [
        (item.status, item.reason, item.message) for item in found if item.type == f"SlurmNodeHealthy/{slurm.namespace}"
    ]


def test_the_exporter_shows_the_drain_and_its_check(slurm: Slurm, shown: Shown) -> None:
    assert shown.metrics["slurm_up"] == 1
    assert shown.metrics["slurm_nodes_drain"] == shown.metrics['slurm_node_unavailable{node="gpu-0"}'] == 1
    assert shown.metrics['slurm_node_gpus{node="gpu-0"}'] == COUNT
    wait_until(lambda: FAILED_CHECK not in scraped(slurm), what="the exporter shows the end of the check")
    assert shown.metrics['slurm_health_finding{check="volume_space",node="gpu-0"}'] == 1
    assert 'slurm_health_finding{check="jail",node="gpu-0"}' not in shown.metrics


def test_the_pod_of_a_node_has_an_event_of_its_drain_and_one_of_the_end(slurm: Slurm, shown: Shown) -> None:
    reason = "health gpu_count: 1, allowed 2"
    assert shown.events == [
        ("Warning", "SlurmHealthDrain", reason),
        (
            "Normal",
            "SlurmHealthUndrain",
            f"The health check gpu_count no longer drains the node. Its reason was: {reason}",
        ),
    ]
    assert scraped(slurm)['slurm_exporter_events_total{outcome="failed"}'] == 0


def test_the_machine_of_a_drained_node_has_a_condition_until_the_drain_ends(slurm: Slurm, shown: Shown) -> None:
    assert shown.condition == ("False", "GpuCount", "gpu-0: health gpu_count: 1, allowed 2")
    wait_until(lambda: conditions(slurm) == [], what="the machine has no condition")
    assert scraped(slurm)["slurm_exporter_node_condition_errors_total"] == 0


def test_the_exporter_has_the_rights_that_it_uses_and_no_others(slurm: Slurm, kubernetes: Kubernetes) -> None:
    account = f"system:serviceaccount:{slurm.namespace}:metrics-exporter"

    def may(verb: str, resource: str, namespace: str = "") -> bool:
        name, _, status = resource.partition("/")
        asked = V1ResourceAttributes(verb=verb, resource=name, subresource=status or None, namespace=namespace)
        review = V1SubjectAccessReview(spec=V1SubjectAccessReviewSpec(user=account, resource_attributes=asked))
        answer = AuthorizationV1Api(kubernetes.api).create_subject_access_review(review)
        assert answer.status
        return answer.status.allowed

    assert may("create", "events", slurm.namespace)
    assert not may("create", "events", "kube-system")
    assert may("get", "pods", slurm.namespace)
    assert may("list", "nodes")
    assert may("patch", "nodes/status")
    others = [
        ("get", "secrets"),
        *((verb, name) for verb in ("list", "create", "patch") for name in ("pods", "secrets")),
    ]
    assert not [right for right in [*others, ("list", "events")] if may(*right, slurm.namespace)]
    assert not [right for right in [("patch", "nodes"), ("delete", "nodes"), ("get", "pods")] if may(*right)]


def begun(slurm: Slurm) -> int:
    """Return the number of drains by checks whose end has no event yet."""
    return sum(1 if kind == "Warning" else -1 for kind, _, _ in health_events(slurm))


def health_events(slurm: Slurm) -> list[tuple[str, str, str]]:
    """Return the events of drains by checks on the pod of the node, in their order."""
    found = slurm.api.list_namespaced_event(slurm.namespace, field_selector="involvedObject.name=gpu-0").items
    reported = [event for event in found if event.source.component == "slurm-exporter"]
    reported.sort(key=lambda event: event.first_timestamp)
    return [(event.type, event.reason, event.message) for event in reported]


def test_the_exporter_shows_jobs_with_their_owner_and_node_and_asks_as_a_user_like_any_other(slurm: Slurm) -> None:
    wait_until(lambda: "DRAIN" not in slurm.node_state("gpu-0"), what="the node takes jobs")
    job = slurm.submit("sleep 300", options="-J 'a b 9' -o /dev/null")
    try:
        wait_until(lambda: f'slurm_job_node{{job_id="{job}",node="gpu-0"}}' in scraped(slurm), what="the running job")
        labels = (
            f'account="",job_id="{job}",job_name="a b 9",partition="main",reason="",state="running",username="alice"'
        )
        values = scraped(slurm)
        assert values[f"slurm_job_info{{{labels}}}"] == values["slurm_jobs_running"] == 1
        assert sum(name.startswith("slurm_job_info{") for name in values) == 1
    finally:
        slurm.ssh(f"scancel {job}")
    assert slurm.exec("metrics-0", "exporter", "id", "-un").strip() == "slurmexport"


WITHOUT_DRAINS = {
    *("Drained nodes", "Drained nodes, by who drained them", "Drains of deployments"),
    *("Failing checks that drain", "Nodes that a check drains", "Failing checks"),
    *("GPUs, by user", "CPUs now, by account", "GPUs now, by account"),
}
"""Panels that show nothing while no node is drained, in a cluster without accounting."""


def test_prometheus_has_data_for_every_panel_about_slurm(slurm: Slurm, tmp_path: Path) -> None:
    wait_until(lambda: "DRAIN" not in slurm.node_state("gpu-0"), what="the node takes jobs")
    jobs = [
        slurm.submit("sleep 300", options=f"{option} -o /dev/null")
        for option in ("--exclusive", "--exclusive", "--hold")
    ]
    try:
        known = {"slurm_jobs_running": 1, "slurm_jobs_pending": 2, "slurm_jobs_hold": 1}
        known['slurm_health_finding{check="volume_space",node="gpu-0"}'] = 1
        wait_until(lambda: known.items() <= scraped(slurm).items(), what="the exporter knows the jobs and the checks")
        with running_prometheus(
            lambda: exposition(slurm), tmp_path, "delta(slurm_jobs_running[20s]) == 0"
        ) as prometheus:
            empty = {
                panel.title
                for dashboard in DASHBOARDS
                for panel in dashboard.panels
                for asked in panel.queries
                if all(name.startswith("slurm_") and ":" not in name for name in metrics(asked.expr))
                and not prometheus.now(query_text(asked.expr, dashboard, NAMESPACE), time.time())
            }
    finally:
        slurm.ssh(f"scancel {' '.join(map(str, jobs))}")
    # The cluster has no long checks, and no containers.
    of_containers = {"Shared images", "Starts in containers in an hour", "Images brought", "Copies on nodes' disks"}
    assert empty - {"Last long checks", *of_containers} == WITHOUT_DRAINS


def test_a_drain_of_an_admin_stays_whatever_the_checks_find(slurm: Slurm, gpus: MadeGpus) -> None:
    slurm.scontrol("update", "nodename=gpu-0", "state=drain", "reason=fan of PSU 2")
    for count in (COUNT - 1, COUNT):
        gpus.answer(count)
        checked(slurm)
        assert reason(slurm) == "fan of PSU 2"

    slurm.scontrol("update", "nodename=gpu-0", "state=resume")
    slurm.ssh("srun --gpus=1 true")


def test_a_tool_that_hangs_drains_the_node(slurm: Slurm, gpus: MadeGpus) -> None:
    gpus.hang(hangs=True)
    drained_as(slurm, "health gpu_query: no answer in 40 s, allowed an answer", seconds=180)

    gpus.hang(hangs=False)
    drained_as(slurm, "", seconds=120)


SERIES, ROUNDS = 10, 100
"""Rounds of a worker under load: in series, so that a part of `make soak` may have some of them."""
LOADED = "/run/slurm/loaded"
"""Folder of rounds next to slurmd's own, with times of a real cluster in place of those of these tests."""

START = """mkdir -p {folder}
sed -E 's/"seconds": [0-9.]+/"seconds": 10/; s/"program_seconds": [0-9.]+/"program_seconds": 5/' \
  /etc/soperator/health/gpu.json > {folder}/gpu.json
printf %s "$1" > {folder}/rounds.py
printf %s "$2" > {folder}/round.py
export LOAD_FILE={spool}/load
setsid nice python3 {folder}/rounds.py {rounds} {folder} 128 python3 -IS {folder}/round.py \
  > {folder}/found 2>&1 < /dev/null &
"""
ONE_ROUND = f"""import sys; sys.path.insert(0, "/usr/lib/soperator/health")
from node_health.command import check; sys.exit(check("gpu-0", "{LOADED}", "{LOADED}"))
"""


@pytest.mark.soak
@pytest.mark.parametrize("series", range(SERIES))
def test_rounds_of_a_healthy_worker_under_load_drain_nothing(slurm: Slurm, series: int) -> None:
    wait_until(lambda: reason(slurm) == "", what="the node takes jobs")
    start = START.format(folder=LOADED, rounds=ROUNDS, spool=SPOOL_DIR)
    slurm.exec("gpu-0", "slurmd", "sh", "-c", start, "sh", Path(rounds_under_load.__file__).read_text(), ONE_ROUND)

    def found() -> str:
        return slurm.exec("gpu-0", "slurmd", "cat", f"{LOADED}/found")

    wait_until(lambda: bool(found()), what=f"{ROUNDS} rounds under load", timeout_seconds=500)
    counted = json.loads(found())
    sys.stdout.write(f"series {series}: {counted}\n")
    assert (counted["rounds"], counted["held"], reason(slurm)) == (ROUNDS, None, ""), counted
    assert counted["checks"] > 10


def test_a_changed_check_counts_without_a_restart(slurm: Slurm, gpus: MadeGpus) -> None:
    def settings() -> str:
        return slurm.exec("gpu-0", "slurmd", "cat", "/etc/soperator/health/gpu.json")

    pod = slurm.api.read_namespaced_pod("gpu-0", slurm.namespace).metadata.uid
    checks = slurm.cluster["health"]["checks"]
    before = checks["gpu_count"]
    checks["gpu_count"] = {"enabled": False}
    try:
        slurm.up()
        wait_until(lambda: "gpu_count" not in settings(), what="the node has its new settings")
        gpus.answer(COUNT - 1)
        checked(slurm)
        assert reason(slurm) == ""
        assert slurm.api.read_namespaced_pod("gpu-0", slurm.namespace).metadata.uid == pod
    finally:
        gpus.answer(COUNT)
        checks["gpu_count"] = before
        slurm.up()
    wait_until(lambda: "gpu_count" in settings(), what="the node has its former settings")


def test_a_long_check_drains_the_node_and_another_run_brings_it_back(slurm: Slurm) -> None:
    long_check = slurm.cluster["health"]["long_checks"]["memory_bandwidth"]

    failed = run_of(slurm, "memory_bandwidth", "fails")
    assert [event["event"] for event in events(failed)] == ["measured", "drained"], failed.log
    assert reason(slurm).startswith("health memory_bandwidth: ")
    assert reason(slurm).endswith(f" GB/s, allowed {UNREACHABLE} GB/s")

    long_check["limit"] = 0
    try:
        slurm.up()
        passed = run_of(slurm, "memory_bandwidth", "passes")
    finally:
        long_check["limit"] = UNREACHABLE
    assert "undrained" in [event["event"] for event in events(passed)], passed.log
    assert reason(slurm) == ""
    job = slurm.submit("true", options="-o /dev/null")
    slurm.wait_for_job(job, "COMPLETED")
    labels = '{check="memory_bandwidth",node="gpu-0"}'
    wait_until(lambda: scraped(slurm).get(f"slurm_long_check_passed{labels}") == 1, what="the metric of the long check")
    assert scraped(slurm)[f"slurm_long_check_value{labels}"] > 0


@contextmanager
def made(gpus: MadeGpus, name: str) -> Iterator[None]:
    """Have a hook of the cluster fail."""
    (gpus.folder / name).touch()
    try:
        yield
    finally:
        (gpus.folder / name).unlink()


def undrained(slurm: Slurm) -> None:
    """Undrain the node, as an admin does after a hook's drain."""
    slurm.scontrol("update", "nodename=gpu-0", "state=undrain", "reason=none")


def test_a_job_whose_prolog_fails_waits_for_another_node_and_is_not_held(slurm: Slurm, gpus: MadeGpus) -> None:
    with made(gpus, "no-licence"):
        job = slurm.submit("true", options="-o /dev/null")
        drained_as(slurm, "hook licence: no ?licence?")
        requeued(slurm, job)
    checked(slurm)

    waiting = slurm.job(job)
    assert (waiting["JobState"], waiting["Priority"] != "0") == ("PENDING", True), waiting
    assert reason(slurm) == "hook licence: no ?licence?", "no check ends the drain of a hook"
    undrained(slurm)
    starts_soon(slurm, job)
    slurm.wait_for_job(job, "COMPLETED")


def requeued(slurm: Slurm, job: int) -> None:
    wait_until(lambda: slurm.job(job)["Restarts"] == "1", what="the job waits once more")


def starts_soon(slurm: Slurm, job: int) -> None:
    """Shorten the two minutes that a requeued job waits in any case.

    slurmd counts in seconds: it takes a launch in the second of the requeue for the launch that it has given up, and
    slurmctld ends the job as one that cannot be started.
    """
    slurm.scontrol("update", f"jobid={job}", "starttime=now+2")


def test_gpus_in_use_stop_the_job_and_the_quick_check_ends_the_drain(slurm: Slurm, gpus: MadeGpus) -> None:
    gpus.answer(COUNT, used=True)
    try:
        job = slurm.submit("true", options="--gpus=2 -o /dev/null")
        drained_as(slurm, "health gpu_processes: 1 on GPU 0, allowed 0")
        requeued(slurm, job)
    finally:
        gpus.answer(COUNT)

    drained_as(slurm, "")
    starts_soon(slurm, job)
    slurm.wait_for_job(job, "COMPLETED")


def test_a_hook_that_hangs_is_killed_and_drains_the_node_and_the_job_ends(slurm: Slurm, gpus: MadeGpus) -> None:
    with made(gpus, "scratch-hangs"):
        job = slurm.submit("true", options="-o /dev/null")
        drained_as(slurm, "hook scratch: no end in 5 s")

    slurm.wait_for_job(job, "COMPLETED")
    running = slurm.exec("gpu-0", "slurmd", "sh", "-c", "cat /proc/[0-9]*/cmdline 2> /dev/null | tr '\\0' ' '")
    assert "slurmd" in running
    assert "sleep 654" not in running
    undrained(slurm)


def test_a_failure_that_is_to_be_noted_is_in_the_log_of_the_pod(slurm: Slurm, gpus: MadeGpus) -> None:
    with made(gpus, "noted"):
        job = slurm.submit("true", options="-o /dev/null")
        slurm.wait_for_job(job, "COMPLETED")
        wait_until(lambda: bool(noted(slurm, job)), what="the log has the failure", timeout_seconds=60)

    assert noted(slurm, job) == [{"hook": "noted", "job": str(job), "problem": "only noted", "drained": False}]
    assert reason(slurm) == ""


def noted(slurm: Slurm, job: int) -> list[dict[str, Any]]:
    """Return the events of a job's hooks in the log of the pod, without times."""
    log = slurm.kubernetes.run("logs", "gpu-0", "--namespace", slurm.namespace, "--container", "slurmd")
    found = [json.loads(line) for line in log.splitlines() if line.startswith("{") and f'"job": "{job}"' in line]
    return [{name: value for name, value in item.items() if name not in {"time", "seconds"}} for item in found]


def test_a_job_has_its_gpus_in_the_files_of_dcgm_exporter_while_it_runs(slurm: Slurm) -> None:
    folder = Path(slurm.cluster["hooks"]["job_mapping"])
    job = slurm.submit("sleep 300", options="--gpus=2 -o /dev/null")
    try:
        # Slurm calls the job running before its prolog has ended.
        wait_until(lambda: job_files(folder) == {"0": f"{job}\n", "1": f"{job}\n"}, what="the job has its files")
        others = [has_other_jobs(slurm, number) for number in (job, job + 1)]
    finally:
        slurm.ssh(f"scancel {job}")

    assert others == [False, True], "the job is none beside itself"
    wait_until(lambda: not [*folder.iterdir()], what="the files of an ended job are gone")


def job_files(folder: Path) -> dict[str, str]:
    """Return the content of each file that maps a GPU."""
    return {path.name: path.read_text() for path in folder.iterdir()}


def has_other_jobs(slurm: Slurm, job: int) -> bool:
    """Return the answer of a hook's question to slurmctld for another job of alice on the node."""
    asked = f"users_processes.has_other_jobs(JobOnNode('{job}', 2001, 'gpu-0'))"
    program = f"from job_hooks import users_processes; from job_hooks.job_on_node import JobOnNode; print({asked})"
    return hook_python(slurm, program) == "True"


def hook_python(slurm: Slurm, program: str) -> str:
    """Run Python with the hooks' modules in the worker's container."""
    return slurm.exec(
        "gpu-0", "slurmd", "env", "PYTHONPATH=/usr/lib/soperator/health", "python3", "-c", program
    ).strip()


def test_the_page_cache_can_be_dropped_and_the_containers_proc_stays_read_only(slurm: Slurm) -> None:
    def dropped() -> int:
        (line,) = [line for line in Path("/proc/vmstat").read_text().splitlines() if line.startswith("drop_pagecache ")]
        return int(line.split()[1])

    before = dropped()
    assert hook_python(slurm, "from job_hooks import page_cache; print(repr(page_cache.drop(60)))") == "''"
    assert dropped() > before
    mounted = slurm.exec("gpu-0", "slurmd", "cat", "/proc/mounts").splitlines()
    assert [text.split()[3].split(",")[0] for text in mounted if text.split()[1] == "/proc/sys"] == ["ro"]
