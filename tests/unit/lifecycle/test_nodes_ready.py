"""The resource after a node set's StatefulSet: what it sees, what it mends, and what it says."""

from collections.abc import Iterator

import pytest
from pulumi.runtime.rpc import UNKNOWN

from soperator_pulumi.cluster.worker_scripts import NEWCOMER_SECONDS
from soperator_pulumi.errors import KubernetesError, NotReadyError
from soperator_pulumi.lifecycle.nodes_ready import NodesReadyProvider
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from soperator_pulumi.spec.drain import DrainSpec
from tests.fakes.kubernetes import Kubernetes
from tests.fakes.workers import OWNER, Set
from tests.unit.faults.engine import NodeSet, Program
from tests.unit.lifecycle.model import NAME, Model, a_model


@pytest.fixture
def model() -> Iterator[Model]:
    """Three idle workers."""
    with a_model() as model:
        model.up(3)
        yield model


def marker(operation: Operation) -> str:
    run = "" if operation.of_a_pod else "0f0f0f"
    return str(Marker(OWNER, operation, run))


def test_nodes_that_have_joined_are_no_change_which_one_command_tells(model: Model) -> None:
    assert not model.differs()
    assert model.commands == ["scontrol show nodes --json"]
    assert model.world.reported == []


def test_a_changed_connection_is_recorded(model: Model) -> None:
    state = model.engine.state[NAME]
    assert NodesReadyProvider().diff("", state, {**state, "kubeconfig": "other", "context": "new"}).changes


def test_a_changed_policy_is_a_change_that_is_recorded(model: Model) -> None:
    state = model.engine.state[NAME]
    news = {**state, "policy": {**state["policy"], "timeout": "5m"}}
    assert NodesReadyProvider().diff("", state, news).changes
    assert (NodesReadyProvider().update("", state, news).outs or {})["policy"]["timeout"] == "5m"


@pytest.mark.parametrize("missing", [{"cpus"}, {"cpus", "memory_mib"}])
def test_sizes_of_nodes_are_no_change_by_themselves_and_may_be_missing_in_older_states(
    model: Model, missing: set[str]
) -> None:
    state = model.engine.state[NAME]
    older = {key: value for key, value in state.items() if key not in missing}
    sizes = {"memory_mib": {"gpu": 64.0, "new": 32.0}, "cpus": {"gpu": 14.0, "new": 4.0}}
    assert not NodesReadyProvider().diff("", older, {**state, **sizes}).changes
    assert NodesReadyProvider().read("", older).outs


def test_an_unknown_namespace_uid_does_not_keep_a_preview_from_looking(model: Model) -> None:
    state = model.engine.state[NAME]
    assert not NodesReadyProvider().diff("", state, {**state, "namespace_uid": UNKNOWN}).changes


def test_a_template_that_is_not_known_yet_shows_the_jobs_of_all_nodes_that_it_may_recreate(model: Model) -> None:
    model.submit(seconds=200, limit_seconds=7200)
    model.begin()
    state = model.engine.state[NAME]
    assert NodesReadyProvider().diff("", state, {**state, "template": UNKNOWN}).changes
    first, second, *lines = model.world.reported
    assert first == "gpu: the template of its pods is not known yet. If it changes:"
    assert "3 nodes to be recreated: gpu-[0-2]" in second
    assert any("job 1 (alice, job1), ends by" in line for line in lines)


def test_other_unknown_inputs_are_a_change(model: Model) -> None:
    state = model.engine.state[NAME]
    assert NodesReadyProvider().diff("", state, {**state, "replicas": UNKNOWN}).changes


def test_a_diff_does_not_wait_until_kubernetes_counts_what_was_just_applied(model: Model) -> None:
    """It would hold one of the four threads that all of a program's dynamic resources share."""
    model.world.kubernetes.sets["gpu"].generation += 1
    began = model.world.time
    assert model.differs()
    assert model.world.time - began < 1
    assert model.world.reported == []


# -- waiting ------------------------------------------------------------------------------------------------------


def test_scaling_up_waits_until_the_new_nodes_have_joined_and_says_how_far_it_is(model: Model) -> None:
    reported = model.up(5)
    assert len(model.records) == 5
    assert "gpu: 3 of 5 nodes have joined, 60 s left" in reported
    assert reported[-1] == "gpu: 5 of 5 nodes have joined"


def test_new_nodes_take_jobs_when_it_is_done_and_those_that_come_later_by_themselves(model: Model) -> None:
    model.world.kubernetes.new_pods_fit = False
    model.up(4, wait_until_ready=False)
    model.world.kubernetes.new_pods_fit = True
    model.world.advance(20)
    assert model.drained() == {"gpu-3": str(Marker(OWNER, Operation.POD_START))}
    assert model.differs()
    model.up(5)
    assert model.drained() == {}
    model.up(6, wait_until_ready=False)
    model.world.advance(NEWCOMER_SECONDS + 20)
    assert len(model.records) == 6
    assert model.drained() == {}


def test_nodes_that_do_not_come_fail_it_with_the_reason_of_each(model: Model) -> None:
    model.world.kubernetes.new_pods_fit = False
    with pytest.raises(NotReadyError) as raised:
        model.up(5)
    assert "gpu: 2 of 5 nodes have not joined Slurm after 60 s:" in str(raised.value)
    assert "gpu-3, gpu-4: its pod waits for a machine: 0/3 nodes are available" in str(raised.value)
    assert "lower the node set's replicas, or raise its ready_timeout_seconds or max_unready." in str(raised.value)


def test_as_many_as_the_user_allows_may_be_missing_after_the_time(model: Model) -> None:
    model.world.kubernetes.new_pods_fit = False
    reported = model.up(5, max_unready=2)
    assert reported[-1].endswith("max_unready lets 2 be missing.")
    assert "gpu-3, gpu-4: its pod waits for a machine" in reported[-1]
    assert not model.differs()
    assert "gpu: 3 of 5 nodes have joined" in model.world.reported


def test_one_more_missing_than_allowed_fails(model: Model) -> None:
    model.world.kubernetes.new_pods_fit = False
    with pytest.raises(NotReadyError):
        model.up(5, max_unready=1)


def test_without_waiting_missing_nodes_are_said_at_once_and_are_no_change_later(model: Model) -> None:
    model.world.kubernetes.new_pods_fit = False
    before = model.world.time
    reported = model.up(5, wait_until_ready=False)
    assert "gpu: 3 of 5 nodes have joined" in reported
    assert model.world.time - before < 30
    assert not model.differs()


def test_a_node_that_goes_missing_later_is_a_change_with_its_reason(model: Model) -> None:
    model.world.kubernetes.die(model.pods["gpu-1"])
    assert model.differs()
    assert "  gpu-1: its pod does not exist yet" in model.world.reported


def test_a_pod_that_slurm_does_not_know_is_a_change_and_told(model: Model) -> None:
    del model.records["gpu-1"]
    assert model.differs()
    assert "  gpu-1: slurmd runs, but has not registered with slurmctld" in model.world.reported


# -- what others changed -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("replicas", [1, 4])
def test_a_scaled_stateful_set_is_reported_at_once_with_what_to_run(model: Model, replicas: int) -> None:
    model.world.kubernetes.sets["gpu"].replicas = replicas
    model.world.advance(10)
    assert model.differs()
    assert any(f"its StatefulSet has {replicas} replicas instead of 3" in line for line in model.world.reported)
    before = model.world.time
    with pytest.raises(NotReadyError, match="Run `pulumi up --refresh`"):
        model.again()
    assert model.world.time - before < 30


def test_a_refresh_shows_drift_and_reads_the_live_size(model: Model) -> None:
    model.world.kubernetes.sets["gpu"].replicas = 2
    model.world.advance(10)
    assert model.refresh()["replicas"] == 2
    assert any("its StatefulSet has 2 replicas, but 3 were recorded" in line for line in model.world.reported)
    assert any("gpu-2: its pod does not exist yet" in line for line in model.world.reported)


def test_after_a_kill_a_refresh_and_the_diff_after_it_say_what_is_true_for_the_run_and_once(model: Model) -> None:
    model.world.kubernetes.new_pods_fit = False
    model.kill_at(lambda: len(model.pods) == 5)
    model.killed(5)
    model.world.kubernetes.new_pods_fit = True
    model.world.advance(20)
    model.begin()
    model.engine.up(Program({"gpu": NodeSet(5, DrainSpec())}), refresh=True)
    reported = model.world.reported
    (size,) = [line for line in reported if "replicas" in line]
    assert size.startswith("gpu: its StatefulSet has 5 replicas, but 3 were recorded, before an interrupted run or ")
    assert size.endswith("This refresh records 5; pulumi up sets the program's number.")
    held = "gpu-[3-4]: still drained by this stack (pod-start); pulumi up undrains them"
    assert [line for line in reported if "still drained" in line] == [held]
    assert not [line for line in reported if "up --refresh" in line]
    assert model.drained() == {}


def test_a_refresh_of_a_stateful_set_that_is_gone_says_that_the_next_run_makes_it(model: Model) -> None:
    model.world.kubernetes.sets.clear()
    assert model.refresh()["replicas"] == 0
    assert "gpu: its StatefulSet was deleted. pulumi up recreates it." in model.world.reported


def test_a_refresh_of_what_cannot_be_looked_at_keeps_what_is_recorded(model: Model) -> None:
    model.world.kubernetes.namespace_uid = "another"
    assert model.refresh() == model.engine.state[NAME]
    assert "is not the one that this stack has recorded" in model.world.reported[0]


def test_another_namespace_of_the_same_name_is_a_change_that_stops_before_anything_is_done(model: Model) -> None:
    state = model.engine.state[NAME]
    model.world.kubernetes.namespace_uid = "another"
    assert model.differs()
    with pytest.raises(KubernetesError, match="is not the one that this stack has recorded"):
        NodesReadyProvider().update("", state, state)
    assert model.commands == []


def test_a_slurmctld_that_does_not_answer_counts_as_changed_and_is_said(model: Model) -> None:
    model.world.slurm.up = False
    assert model.differs()
    assert "gpu: slurmctld does not answer: " in model.world.reported[0]


# -- drains that an interrupted run has left -----------------------------------------------------------------------


@pytest.mark.parametrize("operation", [operation for operation in Operation if operation is not Operation.SCALE_DOWN])
def test_a_drain_of_this_cluster_that_an_interrupted_run_has_left_is_taken_back(
    model: Model, operation: Operation
) -> None:
    model.world.slurm.drain(["gpu-0"], marker(operation))
    assert model.differs()
    assert f"gpu-0: still drained by this stack ({operation}); pulumi up undrains it" in model.world.reported
    state = model.engine.state[NAME]
    NodesReadyProvider().update("", state, state)
    assert model.drained() == {}


@pytest.mark.parametrize(
    "reason",
    [
        "disk",
        f"soperator-pulumi {OWNER}: removal 0f0f0f and its disk is broken",
        "soperator-pulumi other: removal 0f0f0f",
        marker(Operation.SCALE_DOWN),
    ],
)
def test_other_drains_stay_and_are_no_change(model: Model, reason: str) -> None:
    model.world.slurm.drain(["gpu-0"], reason)
    assert not model.differs()
    state = model.engine.state[NAME]
    NodesReadyProvider().update("", state, state)
    assert model.drained() == {"gpu-0": reason}


# -- records without pods ------------------------------------------------------------------------------------------


def be_late(kubernetes: Kubernetes, seconds: float) -> None:
    """Have Kubernetes look at StatefulSets only after some time."""
    usual, begins = kubernetes._reconcile, kubernetes.now + seconds

    def reconcile(owner: Set) -> None:
        if kubernetes.now >= begins:
            usual(owner)

    kubernetes._reconcile = reconcile  # type: ignore[method-assign]


def test_a_template_that_kubernetes_has_not_looked_at_is_waited_for(model: Model) -> None:
    """The report on the pods is about the template of before."""
    be_late(model.world.kubernetes, 30)
    model.up(3, template="b")
    assert model.revisions() == ["b", "b", "b"]


def test_a_new_stateful_set_that_kubernetes_has_not_looked_at_is_waited_for() -> None:
    with a_model() as model:
        be_late(model.world.kubernetes, 30)
        model.up(3)
        assert len(model.pods) == 3


def test_a_template_that_kubernetes_never_looks_at_is_an_error(model: Model) -> None:
    model.world.kubernetes._reconcile = lambda *_args: None  # type: ignore[method-assign]
    with pytest.raises(NotReadyError, match="gpu: Kubernetes has not observed its StatefulSet's change for 60 s"):
        model.up(3, template="b")


def test_a_scale_down_leaves_no_record(model: Model) -> None:
    reported = model.up(1)
    assert sorted(model.records) == ["gpu-0"]
    assert "gpu-[1-2]: removed from Slurm" in reported
    assert not model.differs()


def test_pods_that_kubernetes_has_not_begun_to_take_away_are_waited_for(model: Model) -> None:
    state = model.engine.state[NAME]
    model.world.slurm.drain(["gpu-1", "gpu-2"], marker(Operation.SCALE_DOWN))
    model.world.kubernetes.sets["gpu"].replicas = 1  # what watches StatefulSets sees it later
    NodesReadyProvider().update("", state, {**state, "replicas": 1})
    assert sorted(model.records) == ["gpu-0"]
    assert sorted(model.pods) == ["gpu-0"]


def test_a_scale_down_ends_with_one_look_and_one_delete(model: Model) -> None:
    model.up(1)
    after = model.commands[[command.startswith("scontrol update") for command in model.commands].index(True) + 1 :]
    assert after[-4:] == [
        "scontrol show nodes --json",
        "squeue --json --all",
        "scontrol show reservations --json",
        "scontrol delete nodename=gpu-[1-2]",
    ]


def test_a_record_that_comes_back_is_a_change_and_removed_by_the_next_update(model: Model) -> None:
    model.up(1)
    model.world.slurm.register("gpu-2", 1)
    assert model.differs()
    assert "gpu-2: in Slurm without a pod, is removed" in model.world.reported
    model.again()
    assert sorted(model.records) == ["gpu-0"]


def test_a_record_that_is_kept_for_someone_is_reported_and_no_change(model: Model) -> None:
    model.world.slurm.drain(["gpu-2"], "disk")
    reported = model.up(1)
    assert sorted(model.records) == ["gpu-0", "gpu-2"]
    assert model.drained() == {"gpu-2": "disk"}
    assert any("gpu-2: stays in Slurm: someone else drained it (disk)" in line for line in reported)
    assert not model.differs()
    assert any("gpu-2: stays in Slurm" in line for line in model.world.reported)


def test_a_drain_on_a_kept_record_is_in_force_when_the_node_comes_back(model: Model) -> None:
    model.world.slurm.drain(["gpu-2"], "disk")
    model.up(1)
    model.up(3)
    assert model.drained() == {"gpu-2": "disk"}
    assert len(model.pods) == 3


def test_a_scale_down_to_nothing_leaves_no_record(model: Model) -> None:
    model.up(0)
    assert model.records == {}
    assert not model.differs()


def test_deleting_asks_no_one(model: Model) -> None:
    model.world.kubernetes.namespace_uid = None
    NodesReadyProvider().delete("", model.engine.state[NAME])
