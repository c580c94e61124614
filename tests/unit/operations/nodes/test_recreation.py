"""Nodes to be drained next in a rolling update, by the state at one moment: never more than may be out of service."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.kube.pods import Pod
from soperator_pulumi.operations.nodes.live_node_set import LiveNodeSet
from soperator_pulumi.operations.nodes.recreation import Recreation
from soperator_pulumi.operations.nodes.registration import NodeSetStatus
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from soperator_pulumi.slurm.models import Job, Node
from soperator_pulumi.spec.types.int_or_percent import Share

OWNER = "hpc"
OURS = str(Marker(OWNER, Operation.ROLLING_UPDATE, "0f0f0f"))
LEAVES = str(Marker(OWNER, Operation.SCALE_DOWN, "0f0f0f"))


def a_pod(name: str, *, revision: str = "old", ready: bool = True, runs: bool = True) -> Pod:
    return Pod.of(
        {
            "metadata": {
                "name": name,
                "namespace": "hpc",
                "uid": name,
                "labels": {"controller-revision-hash": revision},
            },
            "status": {
                "conditions": [{"type": "Ready", "status": str(ready)}],
                "containerStatuses": [{"name": "slurmd", "state": {"running": {}} if runs else {"waiting": {}}}],
            },
        }
    )


def a_node(name: str, state: str = "IDLE", reason: str = "") -> Node:
    return Node(name, frozenset(state.split("+")), frozenset(), reason)


def a_job(job_id: int, node: str, ends_at: float | None = None) -> Job:
    running, nodes = frozenset({"RUNNING"}), frozenset({node})
    return Job(job_id, "alice", "job", frozenset(), running, node, nodes, ends_at=ends_at)


def a_renewal(
    nodes: Iterable[Node],
    pods: Iterable[Pod] = (),
    jobs: Iterable[Job] = (),
    *,
    size: int = 4,
    max_unavailable: int = 1,
    **more: Any,
) -> Recreation:
    """Return a node set whose pods are all old ones and ready, but for those that are given."""
    usual = {f"gpu-{ordinal}": a_pod(f"gpu-{ordinal}") for ordinal in range(size)}
    stateful_set = {"metadata": {}, "spec": {"replicas": size}, "status": {"updateRevision": "new"}}
    live = LiveNodeSet("gpu", stateful_set, usual | {pod.name: pod for pod in pods})
    known = {name: a_node(name) for name in usual} | {node.name: node for node in nodes}
    return Recreation(NodeSetStatus(size, live, known), tuple(jobs), OWNER, Share(max_unavailable), **more)


def groups(recreation: Recreation) -> list[tuple[str, ...]]:
    return recreation.groups(recreation.outdated)


def test_as_many_idle_nodes_are_drained_as_may_be_out_of_service() -> None:
    assert a_renewal([], max_unavailable=3).next() == ("gpu-0", "gpu-1", "gpu-2")


def test_one_node_may_always_be_out_of_service() -> None:
    assert replace(a_renewal([]), max_unavailable=Share(10, percent=True)).next() == ("gpu-0",)


def test_idle_nodes_come_first_and_then_those_whose_jobs_end_first() -> None:
    jobs = [a_job(1, "gpu-0"), a_job(2, "gpu-1", 50.0), a_job(3, "gpu-2", 100.0), a_job(4, "gpu-1", 150.0)]
    recreation = a_renewal([], jobs=jobs, max_unavailable=3)
    assert groups(recreation) == [("gpu-3",), ("gpu-2",), ("gpu-1",), ("gpu-0",)]
    assert recreation.next() == ("gpu-3", "gpu-2", "gpu-1")


def test_a_node_that_the_run_drains_leaves_less_room_whether_slurm_shows_the_drain_yet_or_not() -> None:
    drained, job = a_node("gpu-0", "MIXED+DRAIN", OURS), a_job(1, "gpu-0")
    for nodes in ([], [drained]):
        recreation = a_renewal(nodes, jobs=[job], max_unavailable=2, draining=frozenset({"gpu-0"}))
        assert recreation.next() == ("gpu-1",)


def test_a_recreated_node_that_has_not_joined_leaves_less_room_even_if_nodes_may_be_missing() -> None:
    recreation = a_renewal([a_node("gpu-0", "DOWN")], [a_pod("gpu-0", revision="new")], tolerated=4)
    assert recreation.next() == ("gpu-1",)
    assert replace(recreation, joining=frozenset({"gpu-0"})).next() == ()


def test_a_node_that_was_just_undrained_is_in_service() -> None:
    nodes = [a_node(f"gpu-{ordinal}", "IDLE+NOT_RESPONDING") for ordinal in range(4)]
    assert a_renewal(nodes).next() == ("gpu-0",)


def test_nodes_that_no_job_can_come_to_are_renewed_all_at_once_and_first() -> None:
    nodes = [a_node("gpu-1", "DOWN"), a_node("gpu-2", "IDLE+INVALID_REG")]
    pods = [a_pod("gpu-3", ready=False, runs=False)]
    recreation = a_renewal(nodes, pods)
    assert recreation.next() == ("gpu-1", "gpu-2", "gpu-3")
    assert groups(recreation) == [("gpu-1", "gpu-2", "gpu-3"), ("gpu-0",)]


def test_what_slurm_gives_jobs_to_though_it_is_not_ready_goes_within_the_budget() -> None:
    pods = [a_pod(f"gpu-{ordinal}", ready=False) for ordinal in range(4)]
    assert a_renewal([], pods).next() == ("gpu-0",)
    assert a_renewal([a_node("gpu-3", "DOWN")], pods).next() == ("gpu-3",)
    assert a_renewal([], pods, draining=frozenset({"gpu-0"})).next() == ()


@pytest.mark.parametrize(
    ("node", "pod"),
    [
        (a_node("gpu-3", "DOWN"), a_pod("gpu-3", revision="new")),
        (a_node("gpu-3"), a_pod("gpu-3", revision="new", ready=False)),
        (a_node("gpu-3", "IDLE+DRAIN", OURS), a_pod("gpu-3", revision="new")),
    ],
    ids=["down", "not ready", "drained by us"],
)
def test_new_nodes_that_are_not_in_service_are_waited_for(node: Node, pod: Pod) -> None:
    recreation = a_renewal([node], [pod])
    assert recreation.next() == ()
    assert recreation.out_of_service == ("gpu-3",)


def test_new_nodes_that_may_be_missing_are_not_waited_for() -> None:
    recreation = a_renewal([a_node("gpu-3", "DOWN")], [a_pod("gpu-3", revision="new")], tolerated=1)
    assert recreation.next() == ("gpu-0",)


def test_a_node_with_a_job_that_an_interrupted_run_drained_is_drained_again_and_costs_nothing() -> None:
    drained, job = a_node("gpu-3", "MIXED+DRAIN", OURS), a_job(1, "gpu-3")
    assert a_renewal([drained], jobs=[job], max_unavailable=2).next() == ("gpu-3", "gpu-0")
    assert a_renewal([drained], jobs=[job]).next() == ("gpu-3",)


@pytest.mark.parametrize("state", ["IDLE+DRAIN", "IDLE+FAIL"])
def test_what_someone_else_took_out_of_service_does_not_count_and_goes_first(state: str) -> None:
    recreation = a_renewal([a_node("gpu-2", state, "disk")])
    assert recreation.next() == ("gpu-2", "gpu-0")
    assert replace(recreation, draining=frozenset({"gpu-2"})).next() == ("gpu-0",)
    assert a_renewal([a_node("gpu-2", state, "disk")], [a_pod("gpu-2", revision="new")]).next() == ("gpu-0",)


def test_nodes_that_are_to_leave_are_neither_renewed_nor_counted() -> None:
    recreation = a_renewal([a_node("gpu-3", "MIXED+DRAIN", LEAVES)])
    assert groups(recreation) == [("gpu-0", "gpu-1", "gpu-2")]
    assert recreation.next() == ("gpu-0",)


STATES = ["IDLE", "MIXED", "DOWN", "IDLE+DRAIN", "MIXED+DRAIN", "IDLE+NOT_RESPONDING", "ALLOCATED+COMPLETING"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(STATES),
            st.sampled_from([OURS, LEAVES, "disk"]),
            st.booleans(),
            st.booleans(),
            st.booleans(),
            st.booleans(),
        ),
        min_size=1,
        max_size=8,
    ),
    st.integers(1, 4),
)
def test_never_more_nodes_are_out_of_service_than_may_be(
    nodes: list[tuple[str, str, bool, bool, bool, bool]], max_unavailable: int
) -> None:
    given_nodes = [a_node(f"gpu-{ordinal}", state, reason) for ordinal, (state, reason, *_) in enumerate(nodes)]
    pods = [
        a_pod(f"gpu-{ordinal}", revision="new" if new else "old", ready=ready, runs=runs)
        for ordinal, (_, _, new, ready, runs, _) in enumerate(nodes)
    ]
    jobs = [a_job(ordinal, f"gpu-{ordinal}") for ordinal, (state, *_) in enumerate(nodes) if state.startswith("MIXED")]
    recreation = a_renewal(given_nodes, pods, jobs, size=len(nodes), max_unavailable=max_unavailable)
    hands = {f"gpu-{ordinal}" for ordinal, (*_, drains) in enumerate(nodes) if drains} & {*recreation.outdated}
    recreation = replace(recreation, draining=frozenset(hands))
    out, chosen = {*recreation.out_of_service}, recreation.next()
    foreign = {node.name for node in given_nodes if "DRAIN" in node.state and node.reason == "disk"}
    assert len(out | {*chosen} - foreign) <= max(len(out), recreation.budget)
    assert {*chosen} <= {*recreation.outdated} - hands
    assert len(chosen) == len({*chosen})
    assert chosen or hands or out or not recreation.outdated
