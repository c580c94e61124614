"""The resource before a node set's StatefulSet, on the model of slurmctld and Kubernetes, in Pulumi's order."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from pulumi.runtime.rpc import UNKNOWN

from soperator_pulumi.cluster.worker_scripts import NEWCOMER_SECONDS
from soperator_pulumi.errors import DrainError, KubernetesError, SpecError
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from soperator_pulumi.slurm.transport import Answer
from soperator_pulumi.spec.drain import DrainSpec
from tests.fakes.workers import OWNER
from tests.unit.faults.stage import STAGE, provider
from tests.unit.lifecycle.model import Model, a_model

NAME = "NodeDrain gpu"
SHORT = DrainSpec.model_validate({"timeout": "60s"})
WITHOUT_WAIT = DrainSpec.model_validate({"wait": False})


@pytest.fixture
def model() -> Iterator[Model]:
    """Four idle nodes."""
    with a_model() as model:
        model.up(4)
        model.commands.clear()
        yield model


def differs(model: Model, **changes: Any) -> bool:
    """Return True if NodeDrain sees something to do."""
    STAGE.begin(model.faults)
    model.world.reported.clear()
    model.commands.clear()
    state = model.engine.state[NAME]
    return bool(provider("NodeDrain").diff(NAME, state, {**state, **changes}).changes)


def marked(operation: Operation) -> str:
    return str(Marker(OWNER, operation, "abcdef"))


# -- check --------------------------------------------------------------------------------------------------------


def test_a_namespace_that_the_program_does_not_know_is_known_again_by_what_was_found_first(model: Model) -> None:
    STAGE.begin(model.faults)
    unknown = {**model.engine.state[NAME], "namespace_uid": None}
    first = provider("NodeDrain").check({}, dict(unknown)).inputs
    assert first["namespace_uid"] == "uid-0"
    model.world.kubernetes.namespace_uid = "uid-1"
    assert provider("NodeDrain").check(first, dict(unknown)).inputs["namespace_uid"] == "uid-0"


def test_a_namespace_that_is_given_up_is_looked_up_again(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    STAGE.begin(model.faults)
    monkeypatch.setenv("SOPERATOR_CONTROLLER_LOST", "hpc")
    model.world.kubernetes.namespace_uid = "uid-1"
    before = {**model.engine.state[NAME], "namespace_uid": "uid-0"}
    checked = provider("NodeDrain").check(before, {**before, "namespace_uid": None}).inputs
    assert checked["namespace_uid"] == "uid-1"


# -- diff ---------------------------------------------------------------------------------------------------------


def test_no_change_takes_one_look_at_slurm_and_says_nothing(model: Model) -> None:
    assert not differs(model)
    assert model.commands == ["scontrol show nodes --json"]
    assert model.world.reported == []


def test_a_changed_connection_is_recorded(model: Model) -> None:
    assert differs(model, kubeconfig="other", context="renewed")


@pytest.mark.parametrize("key", ["replicas", "policy", "identity"])
def test_what_is_not_known_yet_counts_as_changed_and_no_one_is_asked(model: Model, key: str) -> None:
    assert differs(model, **{key: UNKNOWN})
    assert model.commands == []


def test_a_preview_prints_the_plan(model: Model) -> None:
    model.submit(10_000, width=4, limit_seconds=36_000)
    lines = model.preview(2)
    assert lines[0] == "hpc/gpu: 4 -> 2 nodes. Leaving: gpu-[2-3]"
    assert "gpu-[2-3]  job 1 (alice, job1)" in lines[1]
    assert model.drained() == {}


def test_a_preview_without_slurmctld_says_that_it_does_not_know_what_runs(model: Model) -> None:
    model.world.slurm.crash(1000)
    assert differs(model, replicas=2.0)
    assert "Leaving: gpu-[2-3]. Their jobs are unknown" in model.world.reported[0]


def test_nothing_is_said_of_a_slurmctld_that_is_down_when_no_node_leaves(model: Model) -> None:
    model.world.slurm.crash(1000)
    assert not differs(model)
    assert model.world.reported == []


def test_a_refresh_records_the_live_size_and_the_diff_after_it_advises_no_other_refresh(model: Model) -> None:
    model.world.kubernetes.sets["gpu"].replicas = 6
    model.world.advance(10)
    state = model.engine.state[NAME]
    assert differs(model)
    assert "use `pulumi up --refresh`" in model.world.reported[0]
    model.world.reported.clear()
    refreshed = provider("NodeDrain").read("", state).outs or {}
    assert refreshed == {**state, "replicas": 6}
    assert provider("NodeDrain").diff("", refreshed, state).changes
    assert model.world.reported[0] == "hpc/gpu: 6 -> 4 nodes. Leaving: gpu-[4-5]"


def test_a_refresh_of_a_size_that_cannot_be_looked_at_keeps_what_is_recorded(model: Model) -> None:
    model.begin()
    model.world.kubernetes.namespace_uid = "another"
    state = model.engine.state[NAME]
    assert provider("NodeDrain").read("", state).outs == state
    assert "cannot read its size" in model.world.reported[0]


def test_a_namespace_that_was_made_again_is_reported(model: Model) -> None:
    model.world.kubernetes.namespace_uid = "uid-1"
    assert differs(model)
    assert "is not the one that this stack has recorded (its UID is uid-1, not uid-0)" in model.world.reported[0]


def test_a_bad_policy_for_this_run_is_refused_with_all_problems_in_the_preview(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOPERATOR_DRAIN", "hpc: {timeout: soon, on_timeot: cancel}")
    with pytest.raises(SpecError, match=r"(?s)SOPERATOR_DRAIN has 2 problems:.*on_timeot.*timeout"):
        differs(model)


# -- scaling down ---------------------------------------------------------------------------------------------------


def test_no_trace_of_the_nodes_is_left_in_slurm(model: Model) -> None:
    model.up(1)
    assert sorted(model.pods) == sorted(model.records) == ["gpu-0"]
    assert model.drained() == {}


def test_an_aborted_scale_down_leaves_all_nodes_and_pods(model: Model) -> None:
    model.submit(10_000, width=4)
    with pytest.raises(DrainError, match="All nodes drained for this change are undrained"):
        model.up(2, policy=SHORT)
    assert len(model.pods) == 4
    assert model.drained() == {}
    assert model.engine.state[NAME]["replicas"] == 4


def test_a_policy_for_one_run_counts_over_the_recorded_one(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    job = model.submit(10_000, width=4)
    monkeypatch.setenv("SOPERATOR_DRAIN", "hpc: {timeout: 10s, on_timeout: cancel}")
    model.world.watch.policies["gpu"] = (DrainSpec.model_validate({"timeout": "10s", "on_timeout": "cancel"}),)
    model.up(2)
    assert job.state == "CANCELLED"
    assert len(model.pods) == 2
    assert model.engine.state[NAME]["policy"]["on_timeout"] == "abort"


def test_without_waiting_busy_nodes_stay_and_a_later_run_continues(model: Model) -> None:
    job = model.submit(100, required=frozenset({"gpu-2"}))
    reported = model.up(1, policy=WITHOUT_WAIT)
    assert sorted(model.pods) == ["gpu-0", "gpu-1", "gpu-2"]
    assert model.drained().keys() == {"gpu-1", "gpu-2"}
    assert any("3 nodes for now, as drain.wait is false" in line for line in reported)
    assert differs(model, replicas=1.0)
    model.world.advance(120)
    model.up(1, policy=WITHOUT_WAIT)
    assert sorted(model.pods) == ["gpu-0"]
    assert job.state == "COMPLETED"


def test_a_scale_down_that_is_taken_back_puts_the_nodes_back(model: Model) -> None:
    model.submit(10_000, required=frozenset({"gpu-3"}))
    model.up(1, policy=WITHOUT_WAIT)
    assert model.drained().keys() == {"gpu-1", "gpu-2", "gpu-3"}
    reported = model.up(4, policy=WITHOUT_WAIT)
    assert model.drained() == {}
    assert "hpc/gpu: undrained: gpu-[1-3]" in reported


def test_a_part_that_is_taken_back_is_in_service_while_the_rest_is_waited_for(model: Model) -> None:
    model.submit(1000, required=frozenset({"gpu-3"}))
    model.up(1, policy=WITHOUT_WAIT)
    model.world.later.append((model.world.time + 100, lambda: seen.update(model.drained())))
    seen: dict[str, str] = {}
    model.up(3)
    assert seen.keys() == {"gpu-3"}


def test_nodes_that_an_admin_resumes_after_a_killed_run_are_drained_again(model: Model) -> None:
    model.submit(100, width=4)
    model.kill_at(lambda: any("state=drain" in command for command in model.commands))
    model.killed(1)
    assert model.drained().keys() == {"gpu-1", "gpu-2", "gpu-3"}
    model.world.slurm.resume(["gpu-1", "gpu-2", "gpu-3"])
    model.world.slurm.schedule()
    model.commands.clear()
    model.again()
    assert any("nodename=gpu-[1-3] state=drain" in command for command in model.commands)
    assert sorted(model.pods) == ["gpu-0"]


def test_a_killed_scale_down_that_is_wanted_no_more_is_undone_by_the_next_run(model: Model) -> None:
    model.submit(1000, width=4)
    model.kill_at(lambda: any("state=drain" in command for command in model.commands))
    model.killed(1)
    model.up(4)
    assert model.drained() == {}
    assert len(model.pods) == 4


def test_pods_that_come_while_others_are_drained_are_drained_as_well_without_waiting(model: Model) -> None:
    model.submit(300, required=frozenset({"gpu-2"}))

    run = model.world.programs.run

    def somebody_scales(command: Sequence[str]) -> Answer:
        answer = run(command)
        if "state=drain" in command:
            model.world.programs.run = run  # type: ignore[method-assign]
            model.world.kubernetes.sets["gpu"].replicas = 6
            model.world.advance(NEWCOMER_SECONDS + 60)
            model.submit(100, required=frozenset({"gpu-5"}))
        return answer

    model.world.programs.run = somebody_scales  # type: ignore[method-assign] # there is no other place to do it
    model.up(1, policy=WITHOUT_WAIT)
    assert len(model.pods) == 6
    assert model.drained().keys() == {f"gpu-{ordinal}" for ordinal in range(1, 6)}


def test_pods_that_come_while_others_are_waited_for_are_freed_as_well(model: Model) -> None:
    model.submit(300, width=4)
    kubernetes = model.world.kubernetes

    def somebody_scales() -> None:
        kubernetes.sets["gpu"].replicas = 6

    def job_there() -> None:
        job.append(model.submit(200, required=frozenset({"gpu-5"})))

    job: list[Any] = []
    model.world.later += [(model.world.time + 30, somebody_scales), (model.world.time + 200, job_there)]
    model.up(2)
    assert len(model.pods) == 2
    assert job[0].state == "COMPLETED"
    assert not job[0].by_others


def test_a_node_that_registers_when_it_was_looked_for_the_last_time_takes_no_job_before_its_pod_goes(
    model: Model,
) -> None:
    """The newest slurmd registers, with a job waiting for it, after NodeDrain has ended and before the pod is told."""
    kubernetes = model.world.kubernetes
    kubernetes.new_pods_fit = False
    model.up(5, wait_until_ready=False)
    shrink = kubernetes.put_set

    def slurmd_starts_first(*arguments: Any) -> None:
        kubernetes.new_pods_fit = True
        model.world.advance(20)
        assert "gpu-4" in model.records
        jobs.append(model.submit(100, required=frozenset({"gpu-4"})))
        shrink(*arguments)

    jobs: list[Any] = []
    kubernetes.put_set = slurmd_starts_first  # type: ignore[method-assign,assignment] # there is no other place
    model.up(2)
    assert [job.starts for job in jobs] == [0]
    assert sorted(model.pods) == ["gpu-0", "gpu-1"]


def test_a_pod_that_never_started_does_not_hold_up_a_scale_down(model: Model) -> None:
    model.world.kubernetes.new_pods_fit = False
    model.up(5, wait_until_ready=False)
    model.up(2)
    assert sorted(model.pods) == ["gpu-0", "gpu-1"]


def test_a_pod_that_is_starting_is_awaited_and_drained_before_its_node_leaves(model: Model) -> None:
    model.up(4)
    model.world.kubernetes.sets["gpu"].replicas = 5
    model.world.advance(0.1)
    assert not model.pods["gpu-4"].slurmd
    model.up(3)
    assert sorted(model.pods) == ["gpu-0", "gpu-1", "gpu-2"]
    assert any("slurmd is starting there" in line for line in model.world.log)


def test_pods_whose_slurmd_never_reached_slurmctld_do_not_hold_up_a_scale_down(model: Model) -> None:
    """Their containers run, but their startup probes have never succeeded, and Slurm does not know the nodes."""
    model.world.slurm.register = lambda *_args, **_kwargs: False  # type: ignore[method-assign]
    model.up(5, wait_until_ready=False)
    model.world.advance(60)
    assert all(pod.slurmd for pod in model.pods.values())
    before = model.world.time
    model.up(4)
    assert sorted(model.pods) == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
    assert model.world.time - before < 120


def test_a_preview_of_a_set_that_was_scaled_outside_of_pulumi_says_what_to_run(model: Model) -> None:
    model.world.kubernetes.sets["gpu"].replicas = 6
    model.world.advance(60)
    reported = model.preview(4)
    assert "hpc/gpu: it was scaled to 6 nodes outside Pulumi." in reported[0]
    assert reported[0].endswith("use `pulumi up --refresh`.")
    assert "somebody" not in model.preview(3)[0]


def test_an_admins_drain_stays_on_a_node_that_stays_and_lets_one_go_that_leaves(model: Model) -> None:
    model.world.slurm.drain(["gpu-0", "gpu-3"], "fan broken")
    model.up(2)
    assert model.drained().get("gpu-0") == "fan broken"
    assert sorted(model.pods) == ["gpu-0", "gpu-1"]


def test_scaling_up_needs_no_slurmctld_and_says_that_it_is_down(model: Model) -> None:
    STAGE.begin(model.faults)
    model.world.slurm.crash(10_000)
    state = model.engine.state[NAME]
    outs = provider("NodeDrain").update(NAME, state, {**state, "replicas": 6.0}).outs
    assert outs is not None
    assert outs["replicas"] == 6
    assert any("continues while slurmctld does not answer, as no node leaves" in line for line in model.world.reported)


def test_scaling_down_waits_for_a_slurmctld_that_restarts(model: Model) -> None:
    model.world.slurm.crash(60)
    model.up(2)
    assert sorted(model.records) == ["gpu-0", "gpu-1"]


def test_another_namespace_of_the_same_name_is_not_touched(model: Model) -> None:
    model.world.kubernetes.namespace_uid = "uid-1"
    STAGE.begin(model.faults)
    state = model.engine.state[NAME]
    with pytest.raises(KubernetesError, match="nothing is done"):
        provider("NodeDrain").update(NAME, state, {**state, "replicas": 2.0})
    assert model.drained() == {}


def test_a_namespace_that_was_made_again_is_taken_when_the_user_says_that_the_old_one_is_lost(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.world.kubernetes.namespace_uid = "uid-1"
    monkeypatch.setenv("SOPERATOR_CONTROLLER_LOST", "hpc")
    STAGE.begin(model.faults)
    state = model.engine.state[NAME]
    outs = provider("NodeDrain").update(NAME, state, state).outs
    assert outs is not None
    assert outs["namespace_uid"] == "uid-1"


@pytest.mark.parametrize("back", [True, False])
def test_a_node_whose_pod_was_deleted_is_back_after_an_abort_as_soon_as_its_pod_is(model: Model, *, back: bool) -> None:
    model.submit(10_000, required=frozenset({"gpu-2"}))
    model.submit(10 if back else 10_000, required=frozenset({"gpu-3"}))
    model.world.kubernetes.tell_to_go([model.pods["gpu-3"]])
    model.world.settle()
    assert model.drained() == {"gpu-3": str(Marker(OWNER, Operation.POD_STOP))}
    with pytest.raises(DrainError):
        model.up(2, policy=SHORT)
    assert set(model.drained().values()) == (set() if back else {str(Marker(OWNER, Operation.POD_STOP))})


# -- replacement of the StatefulSet ---------------------------------------------------------------------------------


def test_all_nodes_are_free_before_the_stateful_set_is_replaced(model: Model) -> None:
    job = model.submit(100, width=4)
    model.up(4, identity="2")
    assert job.state == "COMPLETED"
    assert not job.by_others
    assert model.drained() == {}
    assert len(model.pods) == 4


def test_a_replacement_that_was_cut_off_after_the_drain_drains_again(model: Model) -> None:
    """The resource has recorded the new identity; only the StatefulSet itself says that it is the old one."""
    job = model.submit(100, width=4)
    state = model.engine.state[NAME]
    model.engine.state[NAME] = {**state, "identity": "2"}
    model.up(4, identity="2")
    assert job.state == "COMPLETED"


def test_a_replacement_without_waiting_fails_and_says_to_run_again(model: Model) -> None:
    model.submit(100, width=4)
    with pytest.raises(DrainError, match=r"The StatefulSet is not replaced.*Run again"):
        model.up(4, identity="2", policy=WITHOUT_WAIT)
    assert len(model.pods) == 4


# -- deleting -------------------------------------------------------------------------------------------------------


def test_deleting_waits_until_the_pods_are_gone_and_removes_the_records(model: Model) -> None:
    model.world.slurm.drain([*model.records], marked(Operation.REMOVAL))
    model.world.kubernetes.delete_set("gpu")
    STAGE.begin(model.faults)
    provider("NodeDrain").delete(NAME, model.engine.state[NAME])
    assert model.records == {}


def test_deleting_says_what_stays_and_does_not_fail_when_slurmctld_is_down(model: Model) -> None:
    model.world.slurm.drain([*model.records], marked(Operation.REMOVAL))
    model.world.kubernetes.delete_set("gpu")
    model.world.slurm.crash(100_000)
    STAGE.begin(model.faults)
    provider("NodeDrain").delete(NAME, model.engine.state[NAME])
    assert any("its nodes may stay in Slurm" in line for line in model.world.reported)


def test_a_node_marked_for_what_is_over_whose_pod_is_not_there_is_put_back_when_it_has_joined(model: Model) -> None:
    pod = model.pods["gpu-1"]
    model.world.kubernetes.die(pod)
    model.world.slurm.drain(["gpu-1"], marked(Operation.SCALE_DOWN))
    model.again()
    assert model.drained() == {}
    assert model.pods["gpu-1"].ready
