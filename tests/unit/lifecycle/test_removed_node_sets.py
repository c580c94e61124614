"""Node sets that are taken out of the spec: free before their partitions go, and without a trace afterwards."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from pulumi.runtime.rpc import UNKNOWN

from soperator_pulumi.errors import ConfigRefusedError, DrainError
from soperator_pulumi.slurm.transport import Answer
from soperator_pulumi.spec.drain import DrainSpec
from tests.fakes.objects import CONFIG_MAPS
from tests.unit.faults.engine import NodeSet, Program
from tests.unit.faults.stage import STAGE, provider
from tests.unit.lifecycle.model import Model, a_model

NAME = "RemovedNodeSets"
CPU = NodeSet(2, DrainSpec())
GPU = NodeSet(2, DrainSpec.model_validate({"timeout": "60s"}))
BOTH = Program({"cpu": CPU, "gpu": GPU})
CPU_ALONE = Program({"cpu": CPU})


@pytest.fixture
def model() -> Iterator[Model]:
    """Two node sets of two nodes each."""
    with a_model() as model:
        up(model, BOTH)
        yield model


def up(model: Model, program: Program) -> list[str]:
    """Bring it about, and return what was said."""
    model.faults.begin_run()
    model.commands.clear()
    model.world.reported.clear()
    model.engine.up(program)
    model.world.advance(5)
    return [*model.world.reported]


def differs(model: Model) -> bool:
    """Return True if it sees something to do when nothing was changed in the program."""
    STAGE.begin(model.faults)
    model.commands.clear()
    model.world.reported.clear()
    state = model.engine.state[NAME]
    return bool(provider(NAME).diff(NAME, state, state).changes)


def test_no_change_asks_slurm_nothing_and_says_nothing(model: Model) -> None:
    assert not differs(model)
    assert model.commands == []
    assert model.world.reported == []


def test_what_is_not_known_yet_counts_as_changed(model: Model) -> None:
    state = model.engine.state[NAME]
    assert provider(NAME).diff(NAME, state, {**state, "namespace_uid": UNKNOWN}).changes


def test_a_preview_prints_the_plan_for_node_sets_that_go(model: Model) -> None:
    model.engine.preview(CPU_ALONE)
    assert "hpc/gpu: 2 -> 0 nodes. Leaving: gpu-[0-1]" in model.world.reported
    assert model.drained() == {}


PARTITIONS = {"slurm.conf": "PartitionName=main Nodes=cpu\nPartitionName=own Nodes=gpu\n"}
WITHOUT_OWN = {"slurm.conf": "PartitionName=main Nodes=cpu\n"}


def with_partitions(model: Model, after: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what is recorded, and what is wanted without gpu and with these files of Slurm."""
    STAGE.begin(model.faults)
    model.world.reported.clear()
    model.world.kubernetes.objects[f"{CONFIG_MAPS}/slurm-config"] = {"metadata": {}, "data": PARTITIONS}
    olds = model.engine.state[NAME]
    return olds, {**olds, "policies": {"cpu": olds["policies"]["cpu"]}, "slurm_files": {**after}}


def test_nothing_is_drained_for_files_that_slurm_would_be_refused_afterwards(model: Model) -> None:
    job = model.submit(100, required=frozenset({"gpu-0"}))
    waiting = model.submit(100, required=frozenset({"gpu-0", "gpu-1"}), partition="own", eligible_at=1e9)
    olds, news = with_partitions(model, WITHOUT_OWN)

    with pytest.raises(ConfigRefusedError, match=r"no node of gpu-\[0-1\] is drained") as refused:
        provider(NAME).update(NAME, olds, news)
    assert "PartitionName=own" in str(refused.value)
    assert f"{waiting.job_id} (" in str(refused.value)
    assert provider(NAME).diff(NAME, olds, news).changes
    assert any("would be refused now, before any node is drained" in line for line in model.world.reported)
    assert (model.drained(), job.state) == ({}, "RUNNING")


def test_jobs_that_run_on_leaving_nodes_are_waited_for_though_their_partition_goes(model: Model) -> None:
    job = model.submit(50, required=frozenset({"gpu-0"}), partition="own")
    provider(NAME).update(NAME, *with_partitions(model, WITHOUT_OWN))
    assert job.state == "COMPLETED"
    assert model.drained().keys() == {"gpu-0", "gpu-1"}


def test_what_slurm_could_never_take_is_refused_before_the_first_node_is_drained(model: Model) -> None:
    olds, news = with_partitions(model, {"slurm.conf": "ClusterName=other\n" + PARTITIONS["slurm.conf"]})
    with pytest.raises(ConfigRefusedError, match="A running cluster cannot take this change"):
        provider(NAME).update(NAME, olds, news)
    assert model.drained() == {}


def test_a_preview_without_slurmctld_says_which_go_and_that_it_knows_no_more(model: Model) -> None:
    model.world.slurm.crash(1000)
    model.engine.preview(CPU_ALONE)
    assert any("will be drained; their jobs are not known" in line for line in model.world.reported)


def test_a_record_that_goes_between_two_looks_is_nothing(model: Model) -> None:
    model.world.slurm.drain(["gpu-0"], "disk")
    up(model, CPU_ALONE)
    assert "gpu-0" in model.world.slurm.nodes
    run = model.world.programs.run

    def deleted_meanwhile(command: Sequence[str]) -> Answer:
        answer = run(command)
        if "nodes" in command:
            model.world.slurm.nodes.pop("gpu-0", None)
        return answer

    model.world.programs.run = deleted_meanwhile  # type: ignore[method-assign] # there is no other place to do it
    assert not differs(model)


def test_nothing_is_left_of_a_node_set_that_was_removed(model: Model) -> None:
    up(model, CPU_ALONE)
    assert sorted(model.pods) == sorted(model.records) == ["cpu-0", "cpu-1"]
    up(model, CPU_ALONE)
    assert not differs(model)


def test_a_busy_node_set_is_not_removed_and_all_is_as_before(model: Model) -> None:
    model.submit(10_000, required=frozenset({"gpu-1"}))
    before = {**model.engine.state}
    with pytest.raises(DrainError, match=r"(?s)gpu-1  job 1.*All nodes drained for this change are undrained"):
        up(model, CPU_ALONE)
    assert model.drained() == {}
    assert model.engine.state == before


def test_it_goes_by_the_policy_that_the_node_set_had(model: Model) -> None:
    job = model.submit(10_000, required=frozenset({"gpu-1"}))
    up(model, Program({"cpu": CPU, "gpu": NodeSet(2, DrainSpec.model_validate({"timeout": "4h"}))}))
    up(model, CPU_ALONE)
    assert job.state == "COMPLETED"


def test_it_goes_by_that_policy_also_when_the_run_that_removes_it_was_killed(model: Model) -> None:
    up(model, Program({"cpu": CPU, "gpu": NodeSet(2, DrainSpec.model_validate({"timeout": "4h"}))}))
    STAGE.begin(model.faults)
    state = model.engine.state[NAME]
    news = {**state, "policies": {"cpu": state["policies"]["cpu"]}}
    model.engine.state[NAME] = provider(NAME).update(NAME, state, news).outs or {}
    job = model.submit(10_000, required=frozenset({"gpu-1"}))
    model.world.slurm.resume(["gpu-0", "gpu-1"])
    model.world.slurm.schedule()
    assert job.state == "RUNNING"
    up(model, CPU_ALONE)
    assert job.state == "COMPLETED"


def test_a_node_set_that_is_renamed_is_a_new_one_and_the_old_one_is_freed_first(model: Model) -> None:
    job = model.submit(30, required=frozenset({"gpu-1"}))
    up(model, Program({"cpu": CPU, "big": GPU}))
    assert job.state == "COMPLETED"
    assert sorted(model.pods) == sorted(model.records) == ["big-0", "big-1", "cpu-0", "cpu-1"]


def test_a_node_set_that_is_wanted_again_after_a_removal_that_failed_is_in_service(model: Model) -> None:
    """The removal had freed it, and something later failed."""
    STAGE.begin(model.faults)
    state = model.engine.state[NAME]
    news = {**state, "policies": {"cpu": state["policies"]["cpu"]}}
    model.engine.state[NAME] = provider(NAME).update(NAME, state, news).outs or {}
    assert model.drained().keys() == {"gpu-0", "gpu-1"}
    up(model, BOTH)
    assert model.drained() == {}


def test_a_record_that_could_not_be_removed_goes_with_a_later_run(model: Model) -> None:
    model.world.slurm.reservations["maint"] = frozenset({"gpu-1"})
    up(model, CPU_ALONE)
    assert "gpu-1" in model.records
    assert not differs(model), "a reservation names it: nothing can be done"
    del model.world.slurm.reservations["maint"]
    assert differs(model)
    assert model.world.reported == ["hpc: in Slurm without a pod, is removed: gpu-1"]
    up(model, CPU_ALONE)
    assert "gpu-1" not in model.records


def test_a_bad_policy_for_one_run_is_refused_once_and_before_all_else(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOPERATOR_DRAIN", "[timeout]")
    (failure,) = provider(NAME).check({}, model.engine.state[NAME]).failures
    assert failure.reason.startswith("SOPERATOR_DRAIN has 1 problem:\n  needs the name of a cluster")


def test_a_lost_controller_without_a_name_is_refused_before_all_else(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOPERATOR_CONTROLLER_LOST", "true")
    (failure,) = provider(NAME).check({}, model.engine.state[NAME]).failures
    assert "needs the name of the cluster whose controller is gone for good" in failure.reason


def test_a_policy_for_one_run_that_does_not_fit_to_one_node_set_is_refused_as_well(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = DrainSpec.model_validate({"timeout": "10d", "max_wait": "11d"}).model_dump(mode="json")
    monkeypatch.setenv("SOPERATOR_DRAIN", "hpc: {on_timeout: wait, max_wait: 9d}")
    props = {**model.engine.state[NAME], "policies": {"gpu": policy}}
    (failure,) = provider(NAME).check({}, props).failures
    assert "max_wait" in failure.reason
