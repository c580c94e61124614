"""The attempts to get out, on a cluster with all that is optional: accounting, REST, hooks, checks, and isolation."""

from collections.abc import Iterator

import pytest

from tests.cluster.escaping import BY_USERS, PROGRAM, addresses, assert_blocked, bring, outcomes, words
from tests.cluster.slurm import JAIL, QUICK, SMALL, Slurm, a_cluster, a_jail, a_node_set, deployed, unique
from tests.conftest import Kubernetes

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

SCRIPT = {"script": "#!/bin/sh\nexit 0\n"}
MEMORY = {"schedule": "0 0 1 1 *", "every": "1s", "arguments": {"mib": 16, "seconds": 0.1}, "limit": 0}


@pytest.fixture(scope="module", params=["none", "cgroup"])
def slurm(
    request: pytest.FixtureRequest, kubernetes: Kubernetes, built_images: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Slurm]:
    """A cluster with everything on, by either value of `slurm.constrain`."""
    cluster = a_cluster(
        name=unique("all-on"),
        slurm={"constrain": request.param, "extra": dict(QUICK)},
        node_sets=[a_node_set("cpu", cpus=1)],
        partitions=[{"name": "main", "default": True, "options": {"OverSubscribe": "FORCE:4", "DefMemPerCPU": "32"}}],
        users=[{"name": "alice", "uid": 2001}, {"name": "bob", "uid": 2002}],
        jail=a_jail(JAIL, isolation={"pid": True, "ipc": True}),
        accounting={
            "database": {"own": {"pod_resources": SMALL, "storage": {"size_gib": 1}}},
            "slurmdbd": {"pod_resources": SMALL},
        },
        rest={"pod_resources": SMALL},
        hooks={"prolog": {"first": SCRIPT}, "epilog": {"last": SCRIPT}},
        health={"enabled": True, "long_checks": {"memory_bandwidth": MEMORY}},
    )
    with deployed(Slurm(kubernetes, tmp_path_factory.mktemp("all-on"), cluster)) as made:
        yield made


@pytest.fixture(scope="module")
def made_by_job(slurm: Slurm) -> dict[str, str]:
    """Outcomes of the attempts in a job, with a job of another user on the node."""
    bring(slurm)
    neighbour = slurm.submit("SECRET=of-bob sleep 3600", user="bob", options="--mem=32M -o /dev/null")
    slurm.wait_for_job(neighbour, "RUNNING")
    command = f"env {addresses(slurm, 'cpu-0')} {PROGRAM} {' '.join(BY_USERS)}"
    return outcomes(slurm.ssh(f"srun --mem=128M {command}").stdout)


@pytest.fixture(scope="module")
def made_by_session(slurm: Slurm, made_by_job: dict[str, str]) -> dict[str, str]:
    """Outcomes of the attempts in a session."""
    return outcomes(slurm.ssh(f"{addresses(slurm, 'cpu-0')} {PROGRAM} {' '.join(BY_USERS)}").stdout)


@pytest.mark.parametrize("name", BY_USERS, ids=words)
def test_a_job_with_everything_on_cannot(made_by_job: dict[str, str], name: str) -> None:
    assert_blocked(made_by_job[name])


@pytest.mark.parametrize("name", BY_USERS, ids=words)
def test_a_session_with_everything_on_cannot(made_by_session: dict[str, str], name: str) -> None:
    assert_blocked(made_by_session[name])
