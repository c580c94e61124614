"""Policies on numbers: GPUs, logins, nodes that leave."""

from dataclasses import replace
from typing import Any

import pytest

from soperator_pulumi.policy import UNKNOWN, ResourceView
from soperator_pulumi.policy.protection import DISRUPTION_BUDGETS
from soperator_pulumi.policy.quotas import GPU_QUOTA
from soperator_pulumi.policy.sizes import (
    CANCELLED_JOBS,
    CLUSTER_SCALE_DOWN,
    DRAIN_POLICIES,
    LOGIN_REPLICAS,
    SCALE_DOWN,
    UNDRAINED_NODES,
)
from tests.unit.policy.views import RUN, a_resource_of_ours, an_object, below, paths

DRAIN = {"timeout": "2h", "on_timeout": "abort", "wait": True}


def using(gpus: Any, replicas: Any = None, kind: str = "apps/v1:StatefulSet", **pod: Any) -> ResourceView:
    container = {"name": "a", "resources": {"limits": {"nvidia.com/gpu": gpus, "cpu": "4"}}}
    spec = {"template": {"spec": {"containers": [container], **pod}}}
    return an_object(kind, {"spec": spec if replicas is None else {**spec, "replicas": replicas}}, f"{kind}-{gpus}")


def used(*resources: ResourceView, limit: int = 0) -> str:
    found = [*GPU_QUOTA.check(resources, RUN, GPU_QUOTA.settings.model_validate({"limit": limit}))]
    return found[0].text if found else ""


@pytest.mark.parametrize(
    ("resource", "gpus"),
    [
        (using("8", 4.0), 32),
        (using(8, "2"), 16),
        (using("8"), 8),
        (using("8000m", 2), 16),
        (using("1k"), 1000),
        (using("8", kind="apps/v1:DaemonSet"), 8),
        (using("1", initContainers=[{"name": "i", "resources": {"limits": {"amd.com/gpu": "4"}}}]), 4),
        (using("1", initContainers=[{"restartPolicy": "Always", "resources": {"limits": {"x.io/mig-1g": 2}}}]), 3),
        (an_object("batch/v1:Job", {"spec": {**using("2").props["spec"], "parallelism": 3}}), 6),
    ],
)
def test_gpus_are_counted_over_containers_and_pods(resource: ResourceView, gpus: int) -> None:
    assert used(resource).startswith(f"{gpus} GPUs, at most 0 are allowed in prod")
    assert used(resource, limit=gpus) == ""


def test_the_quota_is_for_the_stack_as_a_whole_and_none_is_no_quota() -> None:
    assert used(using("8"), using("4"), limit=11).startswith("12 GPUs, at most 11")
    assert paths(GPU_QUOTA, using("8", 1000)) == []


GPUS = 'spec.template.spec.containers[0].resources.limits["nvidia.com/gpu"]'


@pytest.mark.parametrize(("resource", "path"), [(using(UNKNOWN, 4), GPUS), (using("8", UNKNOWN), "spec.replicas")])
def test_a_number_of_gpus_that_is_not_known_is_named(resource: ResourceView, path: str) -> None:
    assert paths(GPU_QUOTA, resource, unknown=True, limit=8) == [path]


def test_what_is_no_number_of_gpus_violates_the_quota() -> None:
    assert paths(GPU_QUOTA, using("many"), limit=8) == [GPUS]
    assert paths(GPU_QUOTA, using("8", "many"), limit=8) == ["spec.replicas"]


def test_a_patch_changes_the_number_of_pods() -> None:
    metadata = {"name": "a", "namespace": "shop"}
    whole = an_object("apps/v1:Deployment", {"metadata": metadata, **using("1").props}, "a")
    patch = an_object("apps/v1:DeploymentPatch", {"metadata": metadata, "spec": {"replicas": 500}}, "b")
    assert used(whole, patch, limit=8).startswith("500 GPUs")
    assert paths(GPU_QUOTA, patch, limit=8) == ["spec.replicas"], "its pods are not in the stack"


def login(replicas: Any) -> ResourceView:
    spec = {"replicas": replicas}
    return below("LoginNodes", an_object("apps/v1:StatefulSet", {"metadata": {"name": "login"}, "spec": spec}))


@pytest.mark.parametrize(("replicas", "violates"), [(0.0, True), (1.0, True), (2.0, False), (None, True)])
def test_there_is_more_than_one_login(replicas: float | None, violates: bool) -> None:
    assert paths(LOGIN_REPLICAS, login(replicas)) == (["spec.replicas"] if violates else [])
    assert paths(LOGIN_REPLICAS, login(3.0), minimum=4) == ["spec.replicas"]
    assert paths(LOGIN_REPLICAS, login(UNKNOWN), unknown=True) == ["spec.replicas"]
    patch = an_object("apps/v1:StatefulSetPatch", {"metadata": {"name": "login"}, "spec": {"replicas": replicas}})
    changes = violates and replicas is not None
    assert paths(LOGIN_REPLICAS, login(2), patch) == (["spec.replicas"] if changes else [])
    assert paths(LOGIN_REPLICAS, patch) == [], "of a stranger's"


def drain(**changes: Any) -> ResourceView:
    policy = {**DRAIN, **changes.pop("policy", {})}
    return a_resource_of_ours("NodeDrain", **{"replicas": 8.0, "policy": policy, **changes})


def test_a_drain_policy_waits_long_enough() -> None:
    assert paths(DRAIN_POLICIES, drain()) == []
    assert paths(DRAIN_POLICIES, drain(policy={"wait": False, "timeout": "9m"})) == ["policy.wait", "policy.timeout"]
    assert paths(DRAIN_POLICIES, drain(), minimum_timeout="3h") == ["policy.timeout"]
    assert paths(DRAIN_POLICIES, drain(policy={"wait": UNKNOWN}), unknown=True) == ["policy"]


def test_jobs_have_longer_before_a_requeue() -> None:
    assert paths(DRAIN_POLICIES, drain(policy={"timeout": "10m", "on_timeout": "requeue"})) == ["policy.timeout"]
    assert paths(DRAIN_POLICIES, drain(policy={"timeout": "10m", "on_timeout": "abort"})) == []
    requeue = drain(policy={"timeout": "1h", "on_timeout": "requeue"})
    assert paths(DRAIN_POLICIES, requeue) == []
    assert paths(DRAIN_POLICIES, requeue, minimum_before_requeue="2h") == ["policy.timeout"]
    assert paths(DRAIN_POLICIES, requeue, minimum_timeout="2h") == ["policy.timeout"]


def test_a_drain_policy_cancels_no_job() -> None:
    assert paths(CANCELLED_JOBS, drain(policy={"on_timeout": "cancel"})) == ["policy.on_timeout"]
    requeue = {"on_timeout": "requeue", "not_requeueable": "cancel"}
    assert paths(CANCELLED_JOBS, drain(policy=requeue)) == ["policy.not_requeueable"]
    assert paths(CANCELLED_JOBS, drain(policy={**requeue, "on_timeout": "wait"})) == []


def test_the_plugin_s_resource_is_judged_like_that_of_a_python_program() -> None:
    props = {"replicas": 1, "replicasBefore": 8, "policy": {"onTimeout": "cancel", "timeout": "2h"}}
    resource = ResourceView(type="soperator-pulumi:index:NodeDrain", name="it", urn="urn:it", props=props)
    assert paths(CANCELLED_JOBS, resource) == ["policy.on_timeout"]
    assert paths(SCALE_DOWN, resource) == ["replicas"]


@pytest.mark.parametrize(
    ("before", "now", "at_most", "violates"),
    [
        (None, 1.0, "25%", False),
        (8.0, 8.0, "25%", False),
        (4.0, 8.0, "25%", False),
        (8.0, 6.0, "25%", False),
        (8.0, 5.0, "25%", True),
        (2.0, 1.0, "25%", False),
        (2.0, 0.0, "25%", True),
        (8.0, 4.0, 4, False),
        (8.0, 3.0, 4, True),
        (8.0, 7.0, 0, True),
    ],
)
def test_a_node_set_loses_few_nodes_at_once(before: float | None, now: float, at_most: object, violates: bool) -> None:
    changes = {} if before is None else {"replicas_before": before}
    found = paths(SCALE_DOWN, drain(replicas=now, **changes), at_most=at_most)
    assert found == (["replicas"] if violates else [])


@pytest.mark.parametrize("policy", [{"wait": False}, {"timeout": "0s"}])
def test_a_scale_down_needs_a_drain_policy_that_waits(policy: dict[str, Any]) -> None:
    assert paths(SCALE_DOWN, drain(replicas=7.0, replicas_before=8.0, policy=policy)) == ["policy"]
    assert paths(SCALE_DOWN, drain(replicas=8.0, replicas_before=8.0, policy=policy)) == []


def test_a_removed_node_set_loses_all_of_its_nodes() -> None:
    removed = a_resource_of_ours("RemovedNodeSets", removed={"gpu": 2.0, "cpu": 1.0, "old": 0.0})
    assert paths(SCALE_DOWN, removed) == ["removed.gpu"]
    assert paths(SCALE_DOWN, removed, at_most=2) == []


def test_a_size_that_a_preview_does_not_know_is_named() -> None:
    assert paths(SCALE_DOWN, drain(replicas=UNKNOWN, replicas_before=8.0), unknown=True) == ["replicas"]


def test_a_removed_node_set_whose_nodes_a_preview_does_not_know_is_named() -> None:
    removed = a_resource_of_ours("RemovedNodeSets", removed={"a": UNKNOWN})
    assert paths(SCALE_DOWN, removed, unknown=True) == ["removed.a"]


def stateful_set(replicas: Any, kind: str = "StatefulSet", strategy: Any = "OnDelete") -> ResourceView:
    metadata = {"name": "cpu", "namespace": "hpc"}
    spec = {"replicas": replicas} if strategy is None else {"replicas": replicas, "updateStrategy": {"type": strategy}}
    return an_object(f"apps/v1:{kind}", {"metadata": metadata, "spec": spec}, "cpu")


def test_a_node_set_has_no_fewer_nodes_than_its_drain_has_left() -> None:
    own = drain(namespace="hpc", node_set="cpu", replicas=8.0)
    assert paths(UNDRAINED_NODES, own, stateful_set(1.0)) == ["spec.replicas"]
    assert paths(UNDRAINED_NODES, own, stateful_set(1.0, "StatefulSetPatch")) == ["spec.replicas"]
    assert paths(UNDRAINED_NODES, own, stateful_set(8.0)) == []
    assert paths(UNDRAINED_NODES, stateful_set(1.0)) == [], "no node set"
    assert paths(UNDRAINED_NODES, own, stateful_set(UNKNOWN), unknown=True) == ["spec.replicas"]


def test_replicas_of_a_custom_resource_count_wherever_they_are() -> None:
    pods = {"containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": 8}}}]}
    roles = {
        "Master": {"replicas": 1, "template": {"spec": pods}},
        "Worker": {"replicas": 4, "template": {"spec": pods}},
    }
    training = an_object("kubeflow.org/v1:PyTorchJob", {"spec": {"pytorchReplicaSpecs": roles}})
    assert used(training, limit=39).startswith("40 GPUs")
    jobs = [{"replicas": 2, "template": {"spec": {"parallelism": 3, "template": {"spec": pods}}}}]
    assert used(an_object("jobset.x-k8s.io/v1alpha2:JobSet", {"spec": {"replicatedJobs": jobs}})).startswith("48 GPUs")


def test_an_autoscaler_s_most_pods_count() -> None:
    metadata = {"name": "a", "namespace": "shop"}
    whole = an_object("apps/v1:Deployment", {"metadata": metadata, **using("1", 1).props}, "a")
    target = {"kind": "Deployment", "name": "a"}
    spec = {"scaleTargetRef": target, "maxReplicas": 500.0}
    scaler = an_object("autoscaling/v2:HorizontalPodAutoscaler", {"metadata": metadata, "spec": spec}, "b")
    assert used(whole, limit=8) == ""
    assert used(whole, scaler, limit=8).startswith("500 GPUs")


def losing(*sizes: tuple[float, float], **removed: float) -> list[ResourceView]:
    gone = a_resource_of_ours("RemovedNodeSets", namespace="hpc", removed=removed)
    return [*(drain(namespace="hpc", replicas_before=before, replicas=now) for before, now in sizes), gone]


@pytest.mark.parametrize(
    ("resources", "violates"),
    [
        (losing((8, 6), (8, 6)), False),
        (losing((2, 1), (2, 1)), True),
        (losing((40, 40), (2, 1), (2, 1)), False),
        (losing((10, 10), a=1, b=1, c=1, d=1), True),
        (losing((10, 9), new=0), False),
        (losing((4, 8), (4, 2)), False),
        (losing((1, 0)), False),
    ],
)
def test_several_node_sets_lose_no_more_together_than_one_cluster_may(
    resources: list[ResourceView], violates: bool
) -> None:
    assert paths(CLUSTER_SCALE_DOWN, *resources) == (["namespace.hpc"] if violates else [])


def test_a_node_set_that_an_engine_shows_without_its_size_before_counts_as_it_is() -> None:
    unchanged = drain(namespace="hpc", replicas=40)
    assert paths(CLUSTER_SCALE_DOWN, unchanged, *losing((2, 1), (2, 1))) == []


def test_no_node_leaves_where_the_setting_is_none() -> None:
    assert paths(SCALE_DOWN, drain(replicas=7.0, replicas_before=8.0), at_most=0) == ["replicas"]
    assert paths(SCALE_DOWN, drain(replicas=7.0, replicas_before=8.0), at_most="0%") == ["replicas"]
    assert paths(SCALE_DOWN, drain(replicas=1.0, replicas_before=2.0), at_most="1%") == []


def test_an_autoscaler_of_a_node_set_drains_nothing() -> None:
    own = drain(namespace="hpc", node_set="cpu", replicas=8.0)
    target = {"kind": "StatefulSet", "name": "cpu"}
    for kind in ("autoscaling/v2:HorizontalPodAutoscaler", "keda.sh/v1alpha1:ScaledObject"):
        scaler = an_object(kind, {"metadata": {"namespace": "hpc"}, "spec": {"scaleTargetRef": target}})
        assert paths(UNDRAINED_NODES, own, scaler) == ["spec.scaleTargetRef"]
        assert paths(UNDRAINED_NODES, scaler) == [], "no node set"


def test_pods_of_a_node_set_are_recreated_by_its_drains_alone() -> None:
    own = drain(namespace="hpc", node_set="cpu", replicas=8.0)
    where = "spec.updateStrategy.type"
    assert paths(UNDRAINED_NODES, own, stateful_set(8.0, strategy="RollingUpdate")) == [where]
    assert paths(UNDRAINED_NODES, own, stateful_set(8.0, strategy=None)) == [where]
    assert paths(UNDRAINED_NODES, own, stateful_set(8.0, "StatefulSetPatch", "RollingUpdate")) == [where]
    assert paths(UNDRAINED_NODES, own, stateful_set(8.0, "StatefulSetPatch", None)) == []
    assert paths(UNDRAINED_NODES, own, stateful_set(8.0, strategy=UNKNOWN), unknown=True) == [where]


def test_gpus_of_two_objects_of_one_name_in_two_clusters_count_both() -> None:
    named = [replace(using("8", 1), props={**using("8", 1).props, "metadata": {"name": "a"}}) for _ in range(2)]
    assert used(*named, limit=15).startswith("16 GPUs")


def test_a_number_of_too_many_digits_is_none() -> None:
    budget = an_object("policy/v1:PodDisruptionBudgetPatch", {"spec": {"maxUnavailable": "9" * 5000 + "%"}})
    assert paths(DISRUPTION_BUDGETS, budget) == []
