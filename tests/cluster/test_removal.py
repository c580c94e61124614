"""Node sets that are removed or renamed: their nodes are drained before Slurm forgets the partition or a pod goes.

One life of a cluster is lived once, up to the destruction of the node sets that are left.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cluster.slurm import Slurm, a_cluster, a_jail, a_node_set, deployed, unique
from tests.cluster.workers import NO_TIME, UNTIL_DRAINED, ended_well, in_service, job_on, nodes, pods, said
from tests.conftest import Kubernetes
from tools.engine import DeployError

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]  # its fixture lives a whole life

PARTITIONS = {"cpu": "main", "own": "own", "sharing": "main", "old": "main"}
"""The partition of each node set."""

IN_TIME = "{timeout: 1s, on_timeout: wait, max_wait: 2m}"


@dataclass
class Life:
    """Observations."""

    job: int = 0
    """The job on own-0 while the node set was first to be removed, under the policy that it was deployed with."""
    preview: str = ""
    aborted: str = ""
    after_abort: set[str] = field(default_factory=set)
    """Nodes in service then."""
    job_state: str = ""
    partitions: str = ""
    staying: str = ""
    """The state of the job on a node that stays, when the others had gone."""
    ended_well: dict[str, bool] = field(default_factory=dict)
    """Jobs on nodes that left came to their own ends, by node set."""
    nodes: set[str] = field(default_factory=set)
    pods: set[str] = field(default_factory=set)
    partitions_after: str = ""
    changed_after: int = -1
    written: dict[str, str] = field(default_factory=dict)
    """Output of the jobs that ran when the stack was destroyed."""
    left: int = -1
    """Number of resources in the state then."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of the machine that jobs write to and that outlives the cluster."""
    made = tmp_path_factory.mktemp("data")
    made.chmod(0o1777)
    return made


@pytest.fixture(scope="module")
def slurm_with_sets(
    kubernetes: Kubernetes, built_images: None, tmp_path_factory: pytest.TempPathFactory, data: Path
) -> Iterator[Slurm]:
    sets = [
        a_node_set(name, partitions=[where], drain={**NO_TIME, "grace": "30s"}) for name, where in PARTITIONS.items()
    ]
    jail = a_jail(submounts=[{"path": "/data", "host_path": str(data)}])
    cluster = a_cluster(name=unique("removal"), node_sets=sets, jail=jail)
    with deployed(Slurm(kubernetes, tmp_path_factory.mktemp("removal"), cluster)) as slurm:
        yield slurm


@pytest.fixture(scope="module")
def life(slurm_with_sets: Slurm, data: Path) -> Life:
    """Do it all once; the tests below look at what was seen."""
    slurm, seen, described = slurm_with_sets, Life(), slurm_with_sets.cluster["node_sets"]
    seen.job = job_on(slurm, "own-0", options="-p own -t 30 -J training")
    slurm.cluster["node_sets"] = [item for item in described if item["name"] != "own"]
    seen.preview = said(slurm.deployer().preview())
    with pytest.raises(DeployError) as failure:
        slurm.up()
    seen.aborted = str(failure.value)
    seen.after_abort = in_service(slurm)
    seen.job_state = slurm.job(seen.job)["JobState"]
    seen.partitions = slurm.scontrol("show", "partitions")
    slurm.ssh(f"scancel {seen.job}")

    staying = job_on(slurm, "cpu-0")
    jobs = {name: job_on(slurm, f"{name}-0", UNTIL_DRAINED, f"-p {PARTITIONS[name]}") for name in ("own", "sharing")}
    jobs["old"] = job_on(slurm, "old-0", UNTIL_DRAINED)
    renamed = {**next(item for item in described if item["name"] == "old"), "name": "renamed"}
    slurm.cluster["node_sets"] = [described[0], renamed]
    slurm.up(slurm.for_this_run(IN_TIME))
    seen.staying = slurm.job(staying)["JobState"]
    seen.ended_well = {name: ended_well(slurm, job) for name, job in jobs.items()}
    seen.nodes = in_service(slurm) | set(nodes(slurm))
    seen.pods = {name for node_set in jobs for name in pods(slurm, node_set)}
    seen.partitions_after = slurm.scontrol("show", "partitions")
    seen.changed_after = len(slurm.deployer().up().changed)

    slurm.ssh(f"scancel {staying}")
    for node in ("cpu-0", "renamed-0"):
        job_on(slurm, node, f"{UNTIL_DRAINED}; echo $SLURM_RESTART_COUNT ended > /data/{node}")
    slurm.deployer(slurm.for_this_run(IN_TIME)).destroy()
    seen.written = {file.name: file.read_text() for file in data.iterdir()}
    seen.left = len(slurm.deployer().state())
    return seen


def test_the_preview_of_a_removal_lists_the_jobs(life: Life) -> None:
    assert "Leaving: own-0" in life.preview
    assert f"job {life.job} (alice, training), ends by" in life.preview


def test_a_job_that_does_not_end_in_time_keeps_its_node_set_and_partition(life: Life) -> None:
    assert f"job {life.job} (alice, training)" in life.aborted
    assert life.after_abort == {f"{name}-0" for name in PARTITIONS}
    assert life.job_state == "RUNNING"
    assert "PartitionName=own" in life.partitions


def test_node_sets_with_a_shared_partition_with_one_of_their_own_and_renamed_wait_for_their_jobs(life: Life) -> None:
    assert life.ended_well == {"own": True, "sharing": True, "old": True}
    assert life.staying == "RUNNING"


def test_of_removed_node_sets_nothing_is_left(life: Life) -> None:
    assert life.nodes == {"cpu-0", "renamed-0"}
    assert life.pods == set()
    assert "PartitionName=own" not in life.partitions_after
    assert life.changed_after == 0


def test_destroying_two_node_sets_waits_for_the_jobs_of_both(life: Life) -> None:
    assert life.written == {"cpu-0": "ended\n", "renamed-0": "ended\n"}  # a second try would say its number
    assert life.left == 0
