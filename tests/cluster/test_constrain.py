"""Jobs held to their share by cgroups, in Guaranteed pods, as in production: also those that want out, or all of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.escaping import BY_USERS, PROGRAM, addresses, assert_blocked, bring, outcomes, words
from tests.cluster.greed import FILL_TMP, forks
from tests.cluster.slurm import JAIL, QUICK, Slurm, a_cluster, a_jail, deployed, unique
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools.kube.cgroups import hierarchies

pytestmark = pytest.mark.cluster

EAT = "python3 -c 'x = bytearray(300 * 2**20); print(len(x))'"


FEW_PROCESSES = 100

CGROUPS = Path("/sys/fs/cgroup")
UNIFIED = hierarchies().unified
"""True with cgroup v2: `tests/machines` runs these tests there."""


@pytest.fixture(scope="module")
def constrained(
    kubernetes: Kubernetes, built_images: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Slurm]:
    node_set = {"name": "real", "replicas": 1, "cpus": 1, "memory_gib": 0.5, "max_processes": FEW_PROCESSES}
    options = {"OverSubscribe": "FORCE:4", "DefMemPerCPU": "32"}  # for several jobs on one processor
    cluster = a_cluster(
        name=unique("constrained"),
        slurm={"constrain": "cgroup", "extra": dict(QUICK)},
        node_sets=[node_set],
        partitions=[{"name": "main", "default": True, "options": options}],
        users=[
            {"name": "alice", "uid": 2001},
            {"name": "bob", "uid": 2002},
            {"name": "greedy", "uid": 2667},
        ],
        jail=a_jail(JAIL),
    )
    with deployed(Slurm(kubernetes, tmp_path_factory.mktemp("constrained"), cluster)) as slurm:
        yield slurm


def test_worker_pods_are_guaranteed(constrained: Slurm) -> None:
    pod = constrained.api.read_namespaced_pod("real-0", constrained.namespace)

    assert pod.status.qos_class == "Guaranteed"


def test_a_job_within_its_memory_runs(constrained: Slurm) -> None:
    assert constrained.ssh(f"srun --mem=384M {EAT.replace('300', '100')}").stdout == f"{100 * 2**20}\n"


def test_a_job_beyond_its_memory_is_ended_and_the_node_continues(constrained: Slurm) -> None:
    eaten = constrained.ssh(f"srun --mem=100M {EAT}", check=False)

    assert eaten.returncode != 0
    assert "Out Of Memory" in eaten.stderr
    assert constrained.ssh("srun hostname").stdout == "real-0\n"


@pytest.fixture(scope="module")
def neighbour(constrained: Slurm) -> Iterator[int]:
    """A job of another user, which lives through all that others do."""
    job = constrained.submit("SECRET=of-bob sleep 3600", user="bob", options="--mem=32M -o /dev/null")
    constrained.wait_for_job(job, "RUNNING")
    yield job
    constrained.ssh(f"scancel {job}", user="bob")


@pytest.fixture(scope="module")
def by_job(constrained: Slurm, neighbour: int) -> dict[str, str]:
    bring(constrained)
    command = f"env {addresses(constrained, 'real-0')} {PROGRAM} {' '.join(BY_USERS)}"
    return outcomes(constrained.ssh(f"srun --mem=128M {command}").stdout)


@pytest.mark.parametrize("name", BY_USERS, ids=words)
def test_a_constrained_job_cannot(by_job: dict[str, str], name: str) -> None:
    assert_blocked(by_job[name])


def test_a_constrained_job_stays_in_the_cgroups_of_its_pod(constrained: Slurm) -> None:
    """The kubelet's limits hold for it, and it goes with the pod."""
    uid = constrained.api.read_namespaced_pod("real-0", constrained.namespace).metadata.uid
    job = constrained.submit("sleep 300", options="--mem=32M -o /dev/null")

    hierarchies = [CGROUPS] if UNIFIED else [CGROUPS / "cpuset", CGROUPS / "memory"]

    def is_below(hierarchy: Path) -> bool:
        return any(hierarchy.glob(f"**/*pod*{uid}*/**/job_{job}"))

    wait_until(lambda: all(map(is_below, hierarchies)), what="the job's cgroups are below the pod's")
    constrained.ssh(f"scancel {job}")


def test_a_job_can_read_its_own_limit(constrained: Slurm) -> None:
    """Runtimes of languages do, to be no larger than their job."""
    v1 = "cd /sys/fs/cgroup/memory$(grep :memory: /proc/self/cgroup | cut -d: -f3)/.."
    v2 = "cd /sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/.."
    first = f"{v1} && cat memory.limit_in_bytes ../memory.limit_in_bytes"
    limits = f"{v2} && cat memory.max ../../memory.max" if UNIFIED else first
    tasks, job = map(int, constrained.ssh(f"srun --mem=64M sh -c '{limits}'").stdout.split())

    assert (tasks, job) == (56 * 2**20, 64 * 2**20), "slurmstepd has the rest"


def test_a_step_that_ends_takes_its_cgroups_away_and_says_nothing(constrained: Slurm) -> None:
    cgroups = "find /sys/fs/cgroup -type d '(' -name 'step_*' -o -name 'job_*' ')'"

    def left() -> set[str]:
        # Folders that go while find looks are an error of find's.
        return set(constrained.exec("real-0", "slurmd", "sh", "-c", f"{cgroups}; true").splitlines())

    wait_until(lambda: "COMPLETING" not in constrained.node_state("real-0"), what="no job is ending")
    before = left()
    said = constrained.ssh("srun --mem=32M true")

    assert said.stderr.replace("srun: job", "").count("error") == 0, said.stderr
    wait_until(lambda: left() <= before, what="the step's cgroups are gone")

    job = constrained.submit("sleep 300", options="--mem=32M -o /dev/null")
    wait_until(lambda: bool(left() - before), what="a running job has cgroups")
    constrained.ssh(f"scancel {job}")
    wait_until(lambda: left() <= before, what="the job's cgroups are gone")


def test_all_jobs_of_a_node_have_the_memory_of_its_pod(constrained: Slurm) -> None:
    file = "memory.max" if UNIFIED else "memory/memory.limit_in_bytes"
    limit = constrained.exec("real-0", "slurmd", "cat", f"/sys/fs/cgroup/{file}")

    assert int(limit) == 512 * 2**20


def test_a_job_whose_memory_is_out_is_ended_by_its_slurmstepd(constrained: Slurm) -> None:
    """Files stay in memory when the kernel has killed all of the job's processes; slurmstepd is not among them."""
    program = "echo 0 > /proc/self/oom_score_adj; head -c 4G /dev/zero > /dev/shm/fill; exec sleep 5"
    said = constrained.ssh(f"timeout 120 srun --mem=200M sh -c '{program}'", user="greedy", check=False)

    assert "Out Of Memory" in said.stderr
    assert constrained.ssh("srun hostname").stdout == "real-0\n"


GREED = {
    "memory": EAT,
    "processes": f"python3 -c '{forks(hold_seconds=1)}'",
    "tmp": f"sh -c '{FILL_TMP}'",
    "shared memory": "sh -c 'head -c 4G /dev/zero > /dev/shm/fill'",
}


@pytest.mark.parametrize("command", GREED.values(), ids=GREED)
def test_a_job_that_takes_all_ends_alone(constrained: Slurm, neighbour: int, command: str) -> None:
    daemon = constrained.daemon("real-0")
    with constrained.ssh_session("echo in; exec sleep 600", user="bob") as session:
        assert session.stdout
        assert session.stdout.readline() == "in\n"
        constrained.ssh(f"srun --mem=200M {command}", user="greedy", check=False)
        assert session.poll() is None

    assert constrained.job(neighbour)["JobState"] == "RUNNING"
    assert constrained.daemon("real-0") == daemon
    assert constrained.ssh("srun --mem=32M hostname").stdout == "real-0\n"


def test_a_job_sees_its_processors_alone(constrained: Slurm) -> None:
    assert constrained.ssh("srun -c1 nproc").stdout == "1\n"


def test_nothing_is_privileged(constrained: Slurm) -> None:
    pods = constrained.api.list_namespaced_pod(constrained.namespace).items

    assert [
        container.name
        for pod in pods
        for container in [*pod.spec.init_containers, *pod.spec.containers]
        if container.security_context.privileged or container.security_context.allow_privilege_escalation is not False
    ] == []
