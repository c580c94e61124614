"""Destroying: the gate frees all node sets in one pass, or puts all back and fails."""

from collections.abc import Iterator

import pytest

from soperator_pulumi.errors import DrainError, KubernetesError, SpecError
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from soperator_pulumi.spec.drain import DrainSpec
from tests.fakes.slurmctld import Job
from tests.fakes.workers import OWNER
from tests.unit.faults.engine import NodeSet, Program
from tests.unit.faults.stage import STAGE, provider
from tests.unit.lifecycle.model import Model, a_model

SHORT = DrainSpec.model_validate({"timeout": "60s"})
PATIENT = DrainSpec.model_validate({"timeout": "60s", "on_timeout": "wait", "max_wait": "1h"})


@pytest.fixture
def model() -> Iterator[Model]:
    """Two node sets of two nodes each."""
    with a_model() as model:
        deploy(model, SHORT)
        yield model


def deploy(model: Model, policy: DrainSpec) -> None:
    model.faults.begin_run()
    model.engine.up(Program({"cpu": NodeSet(2, policy), "gpu": NodeSet(2, policy)}))
    model.world.advance(5)
    model.commands.clear()
    model.world.reported.clear()


def destroy(model: Model) -> None:
    model.faults.begin_run()
    model.engine.destroy()


def open_gate(model: Model) -> None:
    """Only delete the gate."""
    STAGE.begin(model.faults)
    provider("DrainGate").delete("DrainGate", model.engine.state["DrainGate"])


def a_job_on(model: Model, node: str, seconds: float) -> Job:
    return model.submit(seconds, required=frozenset({node}))


def test_nothing_is_left_of_a_cluster_that_is_destroyed(model: Model) -> None:
    destroy(model)
    assert model.engine.state == {}
    assert model.pods == {}
    assert model.records == {}


def test_all_node_sets_are_drained_in_one_pass_for_the_destruction(model: Model) -> None:
    open_gate(model)
    drains = [command for command in model.commands if "state=drain" in command]
    assert len(drains) == 1
    assert {Marker.read(reason, OWNER).operation for reason in model.drained().values()} == {  # type: ignore[union-attr] # a marker of ours
        Operation.DESTROY
    }
    assert len(model.drained()) == 4


def test_one_busy_node_set_puts_all_back_and_nothing_is_deleted(model: Model) -> None:
    job = a_job_on(model, "gpu-1", 10_000)
    before = {name for name in model.engine.state if not name.startswith("NodesReady")}  # these have nothing to delete
    with pytest.raises(DrainError, match=r"(?s)job 1 \(alice, job1\).*All nodes drained for this change are undrained"):
        destroy(model)
    assert model.drained() == {}
    assert model.engine.state.keys() >= before
    assert len(model.pods) == 4
    assert job.state == "RUNNING"


def test_a_policy_that_waits_lets_the_job_end_first(model: Model) -> None:
    deploy(model, PATIENT)
    job = a_job_on(model, "gpu-1", 1000)
    destroy(model)
    assert job.state == "COMPLETED"
    assert not job.by_others
    assert model.pods == {}


def test_a_policy_that_does_not_wait_drains_and_fails_until_the_jobs_have_ended(model: Model) -> None:
    deploy(model, DrainSpec.model_validate({"wait": False}))
    a_job_on(model, "gpu-1", 100)
    with pytest.raises(DrainError, match=r"(?s)gpu-1 .*Nothing was deleted, as drain.wait is false. Run again"):
        destroy(model)
    assert len(model.drained()) == 4
    model.world.advance(120)
    destroy(model)
    assert model.pods == {}


def test_an_up_after_a_destruction_that_failed_half_way_puts_the_nodes_back(model: Model) -> None:
    open_gate(model)
    del model.engine.state["DrainGate"]
    deploy(model, SHORT)
    assert model.drained() == {}


def test_an_admins_drain_is_in_force_as_before_after_a_destruction_that_failed(model: Model) -> None:
    a_job_on(model, "gpu-1", 10_000)
    model.world.slurm.drain(["cpu-0", "gpu-1"], "fan broken")
    with pytest.raises(DrainError):
        destroy(model)
    assert model.drained() == {"cpu-0": "fan broken", "gpu-1": "fan broken"}


def test_the_policy_of_one_run_counts_when_it_is_destroyed(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    job = a_job_on(model, "gpu-1", 1000)
    monkeypatch.setenv("SOPERATOR_DRAIN", "hpc: {timeout: 1h}")
    destroy(model)
    assert job.state == "COMPLETED"


def test_a_policy_of_one_run_for_a_misspelt_cluster_is_reported_before_anything_is_drained(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOPERATOR_DRAIN", "hcp: {on_timeout: abort}")
    destroy(model)
    assert model.world.reported[0] == "hpc: SOPERATOR_DRAIN names hcp, and applies to no other cluster"


def test_a_bad_policy_of_one_run_is_refused_before_anything_is_drained(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOPERATOR_DRAIN", "hpc: {timeout: never}")
    with pytest.raises(SpecError, match="SOPERATOR_DRAIN has 1 problem"):
        destroy(model)
    assert model.drained() == {}


def test_the_gate_asks_no_one_when_nothing_has_changed(model: Model) -> None:
    STAGE.begin(None)
    state = model.engine.state["DrainGate"]
    assert not provider("DrainGate").diff("", state, state).changes
    assert provider("DrainGate").diff("", state, {**state, "kubeconfig": "other"}).changes, "it is recorded"
    assert provider("DrainGate").diff("", state, {**state, "policies": {}}).changes


def test_it_records_which_namespace_it_is(model: Model) -> None:
    assert model.engine.state["DrainGate"]["namespace_uid"] == "uid-0"


# -- a controller that is gone -----------------------------------------------------------------------------------------


def test_a_controller_that_restarts_is_waited_for(model: Model) -> None:
    model.world.slurm.crash(60)
    open_gate(model)
    assert any("slurmctld does not answer, waits for it 300 s at most" in line for line in model.world.reported)
    assert len(model.drained()) == 4


def test_without_a_controller_nothing_is_deleted_where_jobs_may_run(model: Model) -> None:
    model.world.kubernetes.controller = False
    before = model.world.time
    with pytest.raises(DrainError) as raised:
        destroy(model)
    assert "jobs may run on cpu-[0-1],gpu-[0-1]" in str(raised.value)
    assert "SOPERATOR_CONTROLLER_LOST=hpc" in str(raised.value)
    assert len(model.pods) == 4
    assert model.world.time - before < 60, "there is no use in waiting for what does not exist"


def test_a_controller_that_does_not_come_back_is_given_five_minutes(model: Model) -> None:
    model.world.slurm.crash(100_000)
    before = model.world.time
    with pytest.raises(DrainError, match="nothing is deleted: slurmctld does not answer"):
        destroy(model)
    assert 290 < model.world.time - before < 360


def test_a_controller_that_the_user_gave_up_does_not_keep_a_cluster(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.world.kubernetes.controller = False
    monkeypatch.setenv("SOPERATOR_CONTROLLER_LOST", "hpc")
    open_gate(model)
    assert any(
        "Continues without asking for jobs because of SOPERATOR_CONTROLLER_LOST" in text
        for text in model.world.reported
    )


@pytest.mark.parametrize("others", ["red", "red,blue"])
def test_a_controller_of_another_cluster_that_the_user_gave_up_says_nothing_of_this_one(
    model: Model, monkeypatch: pytest.MonkeyPatch, others: str
) -> None:
    model.world.kubernetes.controller = False
    monkeypatch.setenv("SOPERATOR_CONTROLLER_LOST", others)
    with pytest.raises(DrainError, match="nothing is deleted"):
        open_gate(model)
    monkeypatch.setenv("SOPERATOR_CONTROLLER_LOST", f"{others}, hpc")
    open_gate(model)


def test_a_controller_is_not_given_up_without_the_name_of_its_cluster(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.world.kubernetes.controller = False
    monkeypatch.setenv("SOPERATOR_CONTROLLER_LOST", "true")
    with pytest.raises(SpecError, match="For this one: SOPERATOR_CONTROLLER_LOST=hpc"):
        open_gate(model)
    assert len(model.pods) == 4


def test_what_the_user_says_skips_nothing_while_the_controller_answers(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_job_on(model, "gpu-1", 10_000)
    monkeypatch.setenv("SOPERATOR_CONTROLLER_LOST", "hpc")
    with pytest.raises(DrainError, match="All nodes drained for this change are undrained"):
        destroy(model)
    assert len(model.pods) == 4


def test_a_deployment_that_never_came_up_is_destroyed_without_any_setting() -> None:
    with a_model() as model:
        model.world.kubernetes.controller = False
        model.world.kubernetes.new_pods_fit = False
        model.faults.begin_run()
        node_set = NodeSet(2, SHORT, wait_until_ready=False)
        model.engine.up(Program({"gpu": node_set}))
        destroy(model)
        assert model.pods == {}
        assert any("slurmd has never run in any pod" in line for line in model.world.reported)


def test_a_namespace_that_is_gone_is_not_taken_for_a_cluster_that_is_gone(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.world.kubernetes.namespace_uid = None
    model.world.kubernetes.sets.clear()
    model.world.kubernetes.pods.clear()
    with pytest.raises(KubernetesError, match=r"(?s)There is no namespace hpc.*SOPERATOR_CONTROLLER_LOST=hpc"):
        destroy(model)
    monkeypatch.setenv("SOPERATOR_CONTROLLER_LOST", "hpc")
    destroy(model)
    assert model.engine.state == {}


def test_another_namespace_of_the_same_name_is_not_touched(model: Model) -> None:
    model.world.kubernetes.namespace_uid = "uid-1"
    with pytest.raises(KubernetesError, match="not the one that this stack has recorded"):
        destroy(model)
    assert model.drained() == {}
