"""`pulumi destroy` is refused, with everything put back, where jobs or a lost controller forbid it.

That it waits for jobs where the policy says so is in test_removal.py. The cluster ends with the last test of it.
"""

from collections.abc import Callable, Iterator

import pytest

from tests.cluster.slurm import NOWHERE, VERSION, Slurm, a_cluster, a_node_set, deployed, unique
from tests.cluster.workers import NO_TIME, drain, in_service, job_on, nodes, pods, started_up
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools import images
from tools.engine import DeployError

pytestmark = pytest.mark.cluster


@pytest.fixture
def two_sets(kubernetes: Kubernetes, built_images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    sets = [a_node_set(name, drain={**NO_TIME, "grace": "30s"}) for name in ("cpu", "big")]
    cluster = a_cluster(name=unique("two"), node_sets=sets)
    with deployed(Slurm(kubernetes, tmp_path_factory.mktemp("two"), cluster)) as slurm:
        yield slurm


def recorded(slurm: Slurm) -> set[str]:
    return {resource.urn for resource in slurm.deployer().state()}


def namespaces(slurm: Slurm) -> set[str]:
    return {item.metadata.name for item in slurm.api.list_namespace().items}


def test_a_job_stops_it_before_anything_is_deleted_and_so_does_a_namespace_deleted_by_hand(two_sets: Slurm) -> None:
    """That the controller is lost is believed only when it does not answer."""
    slurm = two_sets
    lost = {"SOPERATOR_CONTROLLER_LOST": slurm.cluster["name"]}
    job = job_on(slurm, "big-0", options="-J training")
    drain(slurm, ["cpu-0"], "bad memory")
    admins, before = nodes(slurm)["cpu-0"], recorded(slurm)

    for environment in ({}, lost):
        with pytest.raises(DeployError, match=rf"job {job} \(alice, training\)"):
            slurm.deployer(environment).destroy(exclude_protected=True)

        assert recorded(slurm) == before
        assert nodes(slurm)["cpu-0"] == admins
        assert in_service(slurm) == {"big-0"}
        assert slurm.job(job)["JobState"] == "RUNNING"
        assert not any(pod.metadata.deletion_timestamp for name in ("cpu", "big") for pod in pods(slurm, name).values())

    slurm.kubernetes.run("delete", "namespace", slurm.namespace, "--wait=false")
    wait_until(lambda: slurm.namespace not in namespaces(slurm), what="the namespace is gone")
    with pytest.raises(DeployError, match=f"SOPERATOR_CONTROLLER_LOST={slurm.cluster['name']}"):
        slurm.deployer().destroy(exclude_protected=True)
    assert any("StatefulSet" in urn for urn in recorded(slurm))

    slurm.deployer(lost).destroy(exclude_protected=True)
    assert recorded(slurm) == set()


def test_a_first_deployment_whose_workers_image_does_not_exist_names_it_and_is_destroyed_without_more_ado(
    new_slurm: Callable[..., Slurm], capfd: pytest.CaptureFixture[str]
) -> None:
    missing = {**images.references(slurm=VERSION), "worker": NOWHERE}
    slurm = new_slurm(images=missing, node_sets=[a_node_set("cpu", ready_timeout_seconds=10)])
    with pytest.raises(DeployError) as failure:
        slurm.up()
    assert "cpu: 1 of 1 nodes have not joined Slurm after 10 s" in str(failure.value)
    assert NOWHERE in str(failure.value)
    assert "Traceback" not in capfd.readouterr().err + str(failure.value)

    slurm.deployer().destroy()

    assert recorded(slurm) == set()


@pytest.mark.soak
def test_a_first_deployment_whose_controllers_image_does_not_exist_is_destroyed_without_more_ado(
    new_slurm: Callable[..., Slurm],
) -> None:
    slurm = new_slurm(images={**images.references(slurm=VERSION), "controller": NOWHERE})
    with started_up(slurm):
        wait_until(lambda: "controller-0" in pods(slurm, "controller"), "the controller's pod is there")

    slurm.deployer().destroy()

    assert recorded(slurm) == set()


def test_a_first_deployment_that_failed_is_not_destroyed_under_a_job(new_slurm: Callable[..., Slurm]) -> None:
    """One node has joined and another never will."""
    huge = {"requests": {"cpu": "1000", "memory": "64Mi"}, "limits": {"memory": "1Gi"}}
    never = a_node_set("never", pod_resources=huge, ready_timeout_seconds=10, partitions=["never"])
    slurm = new_slurm(node_sets=[a_node_set("cpu", drain={**NO_TIME, "grace": "30s"}), never])
    with pytest.raises(DeployError, match="Insufficient cpu"):
        slurm.up()
    options = ("--uid=2001", "--gid=2001", "--chdir=/tmp", "-p", "main", "-o", "/dev/null")
    job = int(slurm.exec("cpu-0", "slurmd", "sbatch", "--parsable", *options, "--wrap", "sleep 600"))
    slurm.wait_for_job(job, "RUNNING")

    with pytest.raises(DeployError, match=f"job {job}"):
        slurm.deployer().destroy()

    assert slurm.job(job)["JobState"] == "RUNNING"
    assert "cpu-0" in in_service(slurm)
