"""Accounting that is switched off and on again, with data that outlives mistakes: no record is lost on the way."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.slurm import SMALL, Slurm, a_cluster, bring_images, deployed, unique
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools.engine import DeployError

pytestmark = [pytest.mark.cluster, pytest.mark.soak]


@pytest.fixture
def slurm(kubernetes: Kubernetes, tmp_path: Path) -> Iterator[Slurm]:
    bring_images(kubernetes)
    keep = {"keep": True, "state": {"size_gib": 1}}
    cluster = a_cluster(name=unique("off"), storage=keep, accounting=an_accounting())
    with deployed(Slurm(kubernetes, tmp_path, cluster)) as slurm:
        yield slurm


def an_accounting(**storage: Any) -> dict[str, Any]:
    own = {"pod_resources": SMALL, "storage": storage or {"size_gib": 1}}
    return {"database": {"own": own}, "slurmdbd": {"pod_resources": SMALL}}


def state_in_sacct(slurm: Slurm, job: int) -> str:
    return slurm.ssh(f"sacct -nPX -j {job} --format=state", check=False).stdout.strip()


def claim(slurm: Slurm) -> str:
    return str(slurm.api.read_namespaced_persistent_volume_claim("database", slurm.namespace).metadata.uid)


def test_records_outlive_accounting_that_is_switched_off(slurm: Slurm) -> None:
    job, before = slurm.submit("true"), claim(slurm)
    wait_until(lambda: state_in_sacct(slurm, job) == "COMPLETED", what="the job is recorded")

    slurm.cluster["accounting"] = "none"
    with pytest.raises(DeployError, match="protected"):
        slurm.up()
    assert claim(slurm) == before

    slurm.cluster["accounting"] = an_accounting(size_gib=1, protect=False)
    slurm.up()
    wait_until(lambda: state_in_sacct(slurm, job) == "COMPLETED", what="the job is recorded again")
    slurm.cluster["accounting"] = "none"
    slurm.up()
    assert slurm.deployer().up().changed == ()
    assert claim(slurm) == before

    slurm.cluster["accounting"] = an_accounting(existing_claim="database")
    slurm.up()
    wait_until(lambda: state_in_sacct(slurm, job) == "COMPLETED", what="the job is recorded still")
