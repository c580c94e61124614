"""Kubernetes' view of a node set: nodes that are there, nodes that may come, and nodes with slurmd."""

from typing import Any

import pytest

from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.nodes.live_node_set import (
    IDENTITY_ANNOTATION,
    NODE_SET_LABEL,
    OWNER_LABEL,
    POLICY_ANNOTATION,
    PROMPT_SECONDS,
    LiveNodeSet,
    find_node_sets,
    find_policies,
)
from soperator_pulumi.spec.drain import DrainSpec
from tests.fakes.objects import NAMESPACE, STATEFUL_SETS, labels_of
from tests.fakes.small_world import SmallWorld

WORKERS = labels_of("worker")
PLACE = ClusterRef(namespace=NAMESPACE, owner="dev-hpc", selector=WORKERS)
POLICY = DrainSpec()


@pytest.fixture
def world() -> SmallWorld:
    return SmallWorld()


def a_set(world: SmallWorld, name: str, replicas: int, owner: str = "dev-hpc", **metadata: Any) -> None:
    labels = {**WORKERS, NODE_SET_LABEL: name, OWNER_LABEL: owner}
    body = {"metadata": {"name": name, "labels": labels, **metadata}, "spec": {"replicas": replicas}}
    world.objects[f"{STATEFUL_SETS}/{name}"] = body


def a_pod(world: SmallWorld, name: str, state: str = "running", *, going: bool = False) -> None:
    pod = world.add_pod(name, "worker", state, node_set=name.rpartition("-")[0])
    if going:
        pod["metadata"]["deletionTimestamp"] = "2026-11-21T00:00:00Z"


def gpu(world: SmallWorld) -> LiveNodeSet:
    return LiveNodeSet.read(world, PLACE, "gpu")


def test_a_node_set_that_is_not_there_has_no_nodes(world: SmallWorld) -> None:
    assert gpu(world).names() == ()
    assert gpu(world).replicas == 0


def test_a_pod_that_is_to_come_is_a_node_as_well(world: SmallWorld) -> None:
    a_set(world, "gpu", 3)
    a_pod(world, "gpu-0")
    assert gpu(world).names() == ("gpu-0", "gpu-1", "gpu-2")
    assert gpu(world).names(1) == ("gpu-1", "gpu-2")


def test_nodes_are_in_the_order_of_their_ordinals(world: SmallWorld) -> None:
    a_set(world, "gpu", 12)
    assert gpu(world).names(9) == ("gpu-9", "gpu-10", "gpu-11")


def test_a_pod_that_kubernetes_takes_away_for_good_is_none(world: SmallWorld) -> None:
    a_set(world, "gpu", 1)
    a_pod(world, "gpu-0", going=True)
    a_pod(world, "gpu-1", going=True)
    assert gpu(world).names() == ("gpu-0",), "gpu-0 comes back"


def test_pods_without_a_stateful_set_are_nodes(world: SmallWorld) -> None:
    a_pod(world, "gpu-1")
    assert gpu(world).names() == ("gpu-1",)


def test_of_a_stateful_set_that_is_being_deleted_only_pods_count(world: SmallWorld) -> None:
    a_set(world, "gpu", 3, deletionTimestamp="2026-11-21T00:00:00Z")
    a_pod(world, "gpu-0")
    a_pod(world, "gpu-1", going=True)
    assert gpu(world).names() == ("gpu-0",)


@pytest.mark.parametrize("name", ["gpu", "gpu-", "gpu-01", "gpu-x", "gpu-0-1", "biggpu-1", "gpu--1"])
def test_other_names_are_no_nodes_of_it(name: str) -> None:
    assert LiveNodeSet("gpu").ordinal(name) is None


def test_what_leaves_is_all_from_the_wanted_size_on(world: SmallWorld) -> None:
    a_set(world, "gpu", 3)
    for ordinal in range(3):
        a_pod(world, f"gpu-{ordinal}")
    leaving = gpu(world).leaving(POLICY, 1)
    assert (leaving.names, leaving.staying) == (("gpu-1", "gpu-2"), ("gpu-0",))
    assert (leaving.before, leaving.after, leaving.come_back) == (3, 1, False)


def test_all_leave_and_come_back_when_it_is_replaced(world: SmallWorld) -> None:
    a_set(world, "gpu", 2)
    leaving = gpu(world).recreated(POLICY)
    assert (leaving.names, leaving.staying, leaving.come_back) == (("gpu-0", "gpu-1"), (), True)


def test_where_no_slurmd_runs_no_job_can_be_unless_slurm_knows_the_node(world: SmallWorld) -> None:
    a_set(world, "gpu", 4)
    a_pod(world, "gpu-0")
    a_pod(world, "gpu-1", "creating")
    a_pod(world, "gpu-2", "crashed")
    leaving = gpu(world).leaving(POLICY, 0)
    assert leaving.never_started == {"gpu-2"}
    assert leaving.starting == {"gpu-1", "gpu-3"}


@pytest.mark.parametrize("state", ["crashed", "no image", "unschedulable"])
def test_a_pod_that_cannot_start_by_itself_is_not_starting(world: SmallWorld, state: str) -> None:
    a_set(world, "gpu", 1)
    a_pod(world, "gpu-0", state)
    assert gpu(world).starting(["gpu-0"]) == frozenset()
    assert gpu(world).without_slurmd(["gpu-0"]) == {"gpu-0"}


def test_a_pod_that_its_controller_has_not_made_is_awaited_for_a_minute(world: SmallWorld) -> None:
    a_set(world, "gpu", 1)
    assert gpu(world).starting(["gpu-0"]) == {"gpu-0"}
    assert gpu(world).starting(["gpu-0"], waited_seconds=PROMPT_SECONDS) == frozenset()


@pytest.mark.parametrize(("state", "ran"), [("running", True), ("crashed", True), ("creating", False)])
def test_slurmd_has_run_where_it_runs_or_has_ended(world: SmallWorld, state: str, *, ran: bool) -> None:
    a_pod(world, "gpu-0", state)
    assert gpu(world).ever_ran is ran


def test_what_it_is_stands_on_its_stateful_set(world: SmallWorld) -> None:
    a_set(world, "gpu", 1, annotations={IDENTITY_ANNOTATION: "one"})
    assert gpu(world).identity == "one"
    assert LiveNodeSet("gpu").identity == ""


def test_all_node_sets_are_found_but_those_of_another_stack(world: SmallWorld) -> None:
    a_set(world, "gpu", 1)
    a_set(world, "cpu", 0)
    a_set(world, "theirs", 1, owner="prod-hpc")
    a_pod(world, "gpu-0")
    a_pod(world, "orphan-2")
    found = find_node_sets(world, PLACE)
    assert {name: live_node_set.names() for name, live_node_set in found.items()} == {
        "cpu": (),
        "gpu": ("gpu-0",),
        "orphan": ("orphan-2",),
    }


def test_each_node_set_of_the_cluster_says_its_own_policy(world: SmallWorld) -> None:
    a_set(world, "gpu", 1, annotations={POLICY_ANNOTATION: '{"timeout": "PT1H"}'})
    a_set(world, "cpu", 1)
    a_set(world, "odd", 1, annotations={POLICY_ANNOTATION: "none"})
    a_set(world, "foreign", 1, owner="dev-other")
    of_gpu = PLACE.model_copy(update={"selector": {**WORKERS, NODE_SET_LABEL: "gpu"}})
    assert find_policies(world, of_gpu) == {"gpu": {"timeout": "PT1H"}, "cpu": {}, "odd": {}}
