"""The life of a stack: preview, up, change, refused change, repair, destroy; jobs go on through all of it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from tests.cluster.slurm import QUICK, Slurm, a_cluster, a_node_set, deployed, unique
from tests.cluster.workers import nodes, said
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools.engine import DeployError, Result

pytestmark = pytest.mark.cluster


def changed(result: Result) -> dict[str, str]:
    """Return what was done to which resource, by name, leaving out what stayed the same."""
    return {change.name: change.operation for change in result.changes if change.operation != "same"}


def exists(slurm: Slurm, kind: str, name: str) -> bool:
    try:
        getattr(slurm.api, f"read_namespaced_{kind}")(name, slurm.namespace)
    except ApiException as error:
        if error.status == 404:
            return False
        raise
    return True


def test_a_preview_of_a_new_stack_creates_nothing(new_slurm: Callable[..., Slurm]) -> None:
    slurm = new_slurm()

    plan = slurm.deployer().preview()

    assert {change.operation for change in plan.changes} == {"create"}
    assert slurm.namespace not in {item.metadata.name for item in slurm.api.list_namespace().items}


def answered(slurm: Slurm) -> bool:
    """Return True if all nodes answer slurmctld and take jobs, so that `up` has nothing to wait for."""
    return all(node.in_service and "NOT_RESPONDING" not in node.state for node in nodes(slurm).values())


def test_up_twice_changes_nothing(slurm: Slurm) -> None:
    wait_until(lambda: answered(slurm), what="the nodes answer")
    # An interpreter of its own orders sets as it likes; those that are forked all order them alike.
    assert changed(slurm.deployer(warm=False).up()) == {}


def test_replicas_and_an_option_change_only_what_they_name(workers: Slurm) -> None:
    slurm = workers
    job = slurm.submit("sleep 600")
    slurm.wait_for_job(job, "RUNNING")

    slurm.cluster["node_sets"][0]["replicas"] = 4
    slurm.cluster["slurm"]["extra"] = {**QUICK, "KillWait": "45"}
    plan = slurm.deployer().preview()
    result = slurm.up()

    name = slurm.cluster["name"]
    assert changed(result) == {f"{name}-{part}": "update" for part in ("slurm-config", "cpu-drain", "cpu", "cpu-ready")}
    assert "+KillWait=45" in said(plan)
    assert "KillWait                = 45 sec" in slurm.scontrol("show", "config")
    assert slurm.job(job)["JobState"] == "RUNNING"
    assert slurm.ssh("srun -w cpu-3 --overlap hostname").stdout.strip() == "cpu-3"


def test_a_configuration_that_slurm_refuses_leaves_the_old_one_in_place(workers: Slurm) -> None:
    slurm = workers
    before = slurm.api.read_namespaced_config_map("slurm-config", slurm.namespace).data
    job = slurm.submit("sleep 600")
    slurm.wait_for_job(job, "RUNNING")

    slurm.cluster["slurm"]["extra"] = {**QUICK, "PriorityType": "priority/nonsense"}
    with pytest.raises(DeployError, match=r"(?i)priority"):
        slurm.up()

    assert slurm.api.read_namespaced_config_map("slurm-config", slurm.namespace).data == before
    assert "UP" in slurm.scontrol("ping")
    assert slurm.job(job)["JobState"] == "RUNNING"

    slurm.cluster["slurm"]["extra"] = dict(QUICK)
    slurm.up()
    assert changed(slurm.deployer().up()) == {}


def test_refresh_finds_what_was_deleted_by_hand_and_up_brings_it_back(workers: Slurm) -> None:
    slurm = workers
    slurm.api.delete_namespaced_service("login", slurm.namespace)

    slurm.deployer().refresh()
    result = slurm.up()

    assert changed(result) == {f"{slurm.cluster['name']}-login-service": "create"}
    assert exists(slurm, "service", "login")


@pytest.fixture(scope="module")
def kept(kubernetes: Kubernetes, built_images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A cluster whose claims are kept; tests leave it up."""
    kept = {"keep": True, "state": {"size_gib": 1}}
    cluster = a_cluster(name=unique("kept"), node_sets=[a_node_set("cpu", replicas=1)], storage=kept)
    with deployed(Slurm(kubernetes, tmp_path_factory.mktemp("kept"), cluster)) as slurm:
        yield slurm


def test_destroy_keeps_the_claims_and_their_data(kept: Slurm) -> None:
    slurm = kept
    slurm.ssh("echo precious > ~/data")

    slurm.deployer().destroy(exclude_protected=True)

    def staying() -> list[Any]:
        pods = slurm.api.list_namespaced_pod(slurm.namespace).items
        return [pod for pod in pods if pod.metadata.deletion_timestamp is None]

    wait_until(lambda: not staying(), what="the pods are gone or going")
    claims = {c.metadata.name for c in slurm.api.list_namespaced_persistent_volume_claim(slurm.namespace).items}
    slurm.up()
    data = slurm.ssh("cat ~/data").stdout

    assert claims == {"jail", "slurmctld-state"}
    assert data == "precious\n"


def test_destroy_of_kept_claims_is_refused_before_anything_is_deleted(kept: Slurm) -> None:
    with pytest.raises(DeployError, match="protect"):
        kept.deployer().destroy()

    assert kept.ssh("srun hostname").stdout == "cpu-0\n"


def test_destroy_leaves_nothing_where_the_stack_keeps_nothing(new_slurm: Callable[..., Slurm]) -> None:
    slurm = new_slurm(node_sets=[a_node_set("cpu", replicas=1)])
    slurm.up()

    slurm.deployer().destroy()

    assert slurm.namespace not in {item.metadata.name for item in slurm.api.list_namespace().items}
    assert slurm.deployer().state() == []


def test_a_second_cluster_in_one_namespace_is_refused(slurm: Slurm, new_slurm: Callable[..., Slurm]) -> None:
    second = new_slurm(name="second", namespace=slurm.namespace, create_namespace=False)

    with pytest.raises(DeployError, match="holds one SlurmCluster"):
        second.up()

    wait_until(lambda: answered(slurm), what="the nodes answer")
    assert changed(slurm.deployer().up()) == {}
