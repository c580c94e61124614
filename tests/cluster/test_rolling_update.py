"""Workers are renewed when what their pods are made of has changed: a few at a time, and no job feels it.

Every test leaves three idle workers of the newest kind.
"""

import copy
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.cluster.slurm import SMALL, Slurm, a_cluster, a_node_set, deployed, unique
from tests.cluster.workers import (
    NO_TIME,
    UNTIL_DRAINED,
    drain,
    drained,
    ended_well,
    in_service,
    job_on,
    nodes,
    pods,
    resume,
    said,
    set_size,
    started_up,
)
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools.engine import DeployError

pytestmark = pytest.mark.cluster

ALL = {"cpu-0", "cpu-1", "cpu-2"}

STREAM = """
rm -rf stream && mkdir stream && cd stream || exit
while [ ! -e stop ]; do
    sbatch --parsable -o /dev/null --wrap 'sleep 1; echo $SLURM_JOB_ID >> done' >> submitted || echo >> refused
    sleep 0.2
    while [ ! -e stop ] && [ "$(squeue -h -t PD | wc -l)" -gt 5 ]; do sleep 0.2; done
done
touch ended
"""
"""Submits short jobs until it is told to stop, as fast as they end: some always wait."""


@pytest.fixture(scope="module")
def renewable(kubernetes: Kubernetes, built_images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    cluster = a_cluster(name=unique("renewable"), node_sets=[a_node_set("cpu", replicas=3)])
    with deployed(Slurm(kubernetes, tmp_path_factory.mktemp("renewable"), cluster)) as slurm:
        yield slurm


@pytest.fixture
def outdated(renewable: Slurm) -> Iterator[Slurm]:
    """The cluster, with another template described but not deployed."""
    resources = copy.deepcopy(renewable.cluster["node_sets"][0].get("pod_resources", SMALL))
    amount = int(re.sub(r"\D", "", resources["requests"]["memory"]))
    resources["requests"]["memory"] = f"{amount + 1}Mi"
    renewable.cluster["node_sets"][0]["pod_resources"] = resources
    yield renewable
    renewable.ssh("mkdir -p stream && touch stream/stop")
    renewable.exec("controller-0", "slurmctld", "scancel", "--user=alice")
    if names := drained(renewable):
        resume(renewable, names)
    set_size(renewable, 3, timeout="2m", on_timeout="abort")
    renewable.up()
    assert in_service(renewable) == ALL


def revisions(slurm: Slurm) -> dict[str, str]:
    """Return from which template each worker's pod was made."""
    return {name: pod.metadata.labels["controller-revision-hash"] for name, pod in pods(slurm).items()}


def test_no_job_of_a_steady_stream_fails_and_one_worker_at_a_time_is_out_of_service(outdated: Slurm) -> None:
    slurm, before, most_away = outdated, revisions(outdated), 0
    slurm.ssh("cat > stream.sh && (sh stream.sh > stream.log 2>&1 < /dev/null &)", stdin=STREAM)
    wait_until(lambda: slurm.ssh("cat stream/done", check=False).stdout != "", "the first job of the stream has ended")

    with started_up(slurm) as up:
        while up.poll() is None:
            most_away = max(most_away, 3 - len(in_service(slurm)))
        assert up.returncode == 0, up.communicate()[1]
    slurm.ssh("touch stream/stop")
    wait_until(lambda: slurm.ssh("ls stream/ended", check=False).returncode == 0, "the stream has ended")
    wait_until(lambda: slurm.ssh("squeue -h").stdout == "", "the last jobs of the stream have ended")

    submitted = slurm.ssh("cat stream/submitted").stdout.split()
    done = Counter(slurm.ssh("cat stream/done").stdout.split())
    assert slurm.ssh("cat stream/refused", check=False).stdout == ""
    assert done == Counter(submitted)  # each once: none has failed, none was begun again
    assert len(submitted) > 20
    assert most_away == 1
    assert not set(revisions(slurm).values()) & set(before.values())
    assert slurm.deployer().up().changed == ()


@pytest.mark.soak
def test_killed_half_way_it_is_seen_by_the_next_preview_and_continues_as_fewer_replicas_are_wanted(
    outdated: Slurm,
) -> None:
    """The first to be renewed is idle, the second is an admin's, the third has a job and is not wanted any more."""
    slurm, before = outdated, revisions(outdated)
    job = job_on(slurm, "cpu-2", UNTIL_DRAINED)
    drain(slurm, ["cpu-1"], "bad memory")

    def renewed() -> set[str]:
        return {name for name, revision in revisions(slurm).items() if before[name] != revision}

    with started_up(slurm):
        wait_until(lambda: bool(renewed() & in_service(slurm)), "one worker is renewed")
    half = renewed()
    set_size(slurm, 2)
    plan = slurm.deployer().preview()
    slurm.up()

    assert half < ALL
    assert any(name in said(plan) for name in ALL - half)
    assert ended_well(slurm, job)
    assert set(nodes(slurm)) == {"cpu-0", "cpu-1"}
    assert in_service(slurm) == {"cpu-0"}
    assert drained(slurm)["cpu-1"].reason == "bad memory"
    assert renewed() >= {"cpu-0", "cpu-1"}
    assert slurm.deployer().up().changed == ()


def test_a_job_that_does_not_end_in_time_aborts_it_with_every_worker_in_service(outdated: Slurm) -> None:
    slurm = outdated
    before = revisions(slurm)
    job = job_on(slurm, "cpu-1")
    set_size(slurm, 3, **NO_TIME)

    with pytest.raises(DeployError, match=f"job {job}"):
        slurm.up()

    assert in_service(slurm) == ALL
    assert slurm.job(job)["JobState"] == "RUNNING"
    assert revisions(slurm)["cpu-1"] == before["cpu-1"]
