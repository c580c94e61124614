"""Nodes to be recreated next, by the state at one moment."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.operations.nodes.live_node_set import LiveNodeSet
from soperator_pulumi.operations.nodes.recreation import Recreation
from soperator_pulumi.operations.nodes.registration import NodeSetStatus
from soperator_pulumi.operations.pods import Pod
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
    return Job(
        job_id, "alice", "job", frozenset(), frozenset({"RUNNING"}), node, frozenset({node}), frozenset(), ends_at
    )


def a_renewal(
    nodes: Iterable[Node], pods: Iterable[Pod] = (), jobs: Iterable[Job] = (), *, size: int = 4, **more: int
) -> Recreation:
    """Return a node set whose pods are all old ones and ready, but for those that are given."""
    usual = {f"gpu-{ordinal}": a_pod(f"gpu-{ordinal}") for ordinal in range(size)}
    stateful_set = {"metadata": {}, "spec": {"replicas": size}, "status": {"updateRevision": "new"}}
    live = LiveNodeSet("gpu", stateful_set, usual | {pod.name: pod for pod in pods})
    known = {name: a_node(name) for name in usual} | {node.name: node for node in nodes}
    budget = Share(more.pop("max_unavailable", 1))
    return Recreation(NodeSetStatus(size, live, known), tuple(jobs), OWNER, budget, **more)


def waves(recreation: Recreation) -> list[tuple[str, ...]]:
    """Return all of them."""
    found, left = recreation.waves(recreation.outdated, 100)
    assert left == 0
    return found


def wave(recreation: Recreation) -> tuple[str, ...]:
    return recreation.wave(recreation.outdated)


def test_as_many_idle_nodes_go_as_may_be_out_of_service() -> None:
    assert wave(a_renewal([], max_unavailable=3)) == ("gpu-0", "gpu-1", "gpu-2")


def test_only_so_many_waves_are_looked_ahead() -> None:
    recreation = a_renewal([])
    assert recreation.waves(recreation.outdated, 2) == ([("gpu-0",), ("gpu-1",)], 2)


def test_idle_nodes_do_not_wait_for_the_jobs_of_others() -> None:
    jobs = [a_job(1, "gpu-0"), a_job(2, "gpu-1", 50.0), a_job(3, "gpu-2", 100.0)]
    recreation = a_renewal([], jobs=jobs, max_unavailable=3)
    assert waves(recreation) == [("gpu-3",), ("gpu-1", "gpu-2", "gpu-0")]


def test_a_node_that_was_just_put_back_is_in_service() -> None:
    nodes = [a_node(f"gpu-{ordinal}", "IDLE+NOT_RESPONDING") for ordinal in range(4)]
    assert wave(a_renewal(nodes)) == ("gpu-0",)


def test_nodes_that_no_job_can_come_to_are_renewed_all_at_once_and_first() -> None:
    nodes = [a_node("gpu-1", "DOWN"), a_node("gpu-2", "IDLE+INVALID_REG")]
    pods = [a_pod("gpu-3", ready=False, runs=False)]
    assert wave(a_renewal(nodes, pods)) == ("gpu-1", "gpu-2", "gpu-3")


def test_what_slurm_gives_jobs_to_though_it_is_not_ready_goes_within_the_budget() -> None:
    pods = [a_pod(f"gpu-{ordinal}", ready=False) for ordinal in range(4)]
    assert wave(a_renewal([], pods)) == ("gpu-0",)
    assert wave(a_renewal([a_node("gpu-3", "DOWN")], pods)) == ("gpu-3",)


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
    assert wave(recreation) == ()
    assert recreation.out_of_service == ("gpu-3",)


def test_new_nodes_that_may_be_missing_are_not_waited_for() -> None:
    recreation = a_renewal([a_node("gpu-3", "DOWN")], [a_pod("gpu-3", revision="new")], tolerated=1)
    assert wave(recreation) == ("gpu-0",)


def test_a_node_with_a_job_that_an_interrupted_run_drained_is_waited_for_when_nothing_else_is_left() -> None:
    drained, job = a_node("gpu-0", "MIXED+DRAIN", OURS), a_job(1, "gpu-0")
    assert wave(a_renewal([drained], jobs=[job], max_unavailable=2)) == ("gpu-1",)
    assert wave(a_renewal([drained], jobs=[job], max_unavailable=1)) == ("gpu-0",)


@pytest.mark.parametrize("state", ["IDLE+DRAIN", "IDLE+FAIL"])
def test_what_somebody_else_took_out_of_service_does_not_count_and_goes_first(state: str) -> None:
    recreation = a_renewal([a_node("gpu-2", state, "disk")])
    assert waves(recreation) == [("gpu-2",), ("gpu-0",), ("gpu-1",), ("gpu-3",)]
    assert wave(a_renewal([a_node("gpu-2", state, "disk")], [a_pod("gpu-2", revision="new")])) == ("gpu-0",)


def test_nodes_that_are_to_leave_are_neither_renewed_nor_counted() -> None:
    recreation = a_renewal([a_node("gpu-3", "MIXED+DRAIN", LEAVES)])
    assert waves(recreation) == [("gpu-0",), ("gpu-1",), ("gpu-2",)]


STATES = ["IDLE", "MIXED", "DOWN", "IDLE+DRAIN", "MIXED+DRAIN", "IDLE+NOT_RESPONDING", "ALLOCATED+COMPLETING"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(STATES),
            st.sampled_from([OURS, LEAVES, "disk"]),
            st.booleans(),
            st.booleans(),
            st.booleans(),
        ),
        min_size=1,
        max_size=8,
    ),
    st.integers(1, 4),
)
def test_a_wave_never_takes_more_nodes_out_of_service_than_may_be(
    nodes: list[tuple[str, str, bool, bool, bool]], max_unavailable: int
) -> None:
    given_nodes = [a_node(f"gpu-{ordinal}", state, reason) for ordinal, (state, reason, *_) in enumerate(nodes)]
    pods = [
        a_pod(f"gpu-{ordinal}", revision="new" if new else "old", ready=ready, runs=runs)
        for ordinal, (_, _, new, ready, runs) in enumerate(nodes)
    ]
    jobs = [a_job(ordinal, f"gpu-{ordinal}") for ordinal, (state, *_) in enumerate(nodes) if state.startswith("MIXED")]
    recreation = a_renewal(given_nodes, pods, jobs, size=len(nodes), max_unavailable=max_unavailable)
    out, chosen = {*recreation.out_of_service}, wave(recreation)
    foreign = {node.name for node in given_nodes if "DRAIN" in node.state and node.reason == "disk"}
    assert len(out | {*chosen} - foreign) <= max(len(out), recreation.budget)
    assert {*chosen} <= {*recreation.outdated}
    assert sorted(name for each in waves(recreation) for name in each) == sorted(recreation.outdated)
