"""Slurm's records of nodes whose pods are gone: which go, and which stay for whom."""

from collections.abc import Iterator, Sequence

import pytest

from soperator_pulumi.errors import TransportError
from soperator_pulumi.operations.nodes.node_cleanup import NodeCleanup
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from soperator_pulumi.slurm.scontrol import ScontrolClient
from soperator_pulumi.slurm.transport import Answer
from tests.fakes.objects import NAMESPACE
from tests.fakes.workers import OWNER
from tests.unit.faults.faults import FaultyKube
from tests.unit.lifecycle.model import Model, a_model

NAMES = ("gpu-1", "gpu-2")


@pytest.fixture
def model() -> Iterator[Model]:
    """Three workers, of which the last two have lost their pods without anybody telling Slurm."""
    with a_model() as model:
        model.up(3)
        model.world.kubernetes.sets["gpu"].replicas = 1
        for name in NAMES:
            model.world.kubernetes.die(model.pods[name])
        model.commands.clear()
        yield model


def cleanup(model: Model) -> NodeCleanup:
    kube = FaultyKube(model.faults)
    slurm = ScontrolClient(kube.transport(NAMESPACE, "controller-0", "slurmctld"), pause=model.world.sleep)
    return NodeCleanup(kube, slurm, NAMESPACE, OWNER)


def test_records_without_pods_are_removed_with_one_delete(model: Model) -> None:
    removal = cleanup(model).remove(NAMES)
    assert removal.removed == {*NAMES}
    assert removal.kept == {}
    assert sorted(model.records) == ["gpu-0"]
    assert removal.lines() == ["gpu-[1-2]: removed from Slurm"]
    assert [command for command in model.commands if "delete" in command] == ["scontrol delete nodename=gpu-[1-2]"]
    assert len(model.commands) == 4


def test_names_that_slurm_does_not_have_are_nothing(model: Model) -> None:
    removal = cleanup(model).remove(["gpu-7"])
    assert removal.removed == set()
    assert removal.lines() == []


def test_no_names_ask_no_one(model: Model) -> None:
    cleanup(model).remove([])
    assert model.commands == []


def test_a_record_whose_pod_is_there_stays_also_when_the_pod_has_lost_its_labels(model: Model) -> None:
    pod = model.pods["gpu-0"]
    pod.node_set = "renamed"
    assert cleanup(model).remove(["gpu-0"]).kept == {"gpu-0": "its pod is there"}
    assert "gpu-0" in model.records


def test_a_record_that_a_reservation_names_stays(model: Model) -> None:
    model.world.slurm.reservations["maint-7"] = frozenset({"gpu-2"})
    removal = cleanup(model).remove(NAMES)
    assert removal.kept == {"gpu-2": "reservation maint-7 names it"}
    assert removal.lines()[1] == "gpu-2: stays in Slurm: reservation maint-7 names it"


def test_a_record_that_a_waiting_job_asks_for_stays(model: Model) -> None:
    model.world.slurm.drain(["gpu-1"], str(Marker(OWNER, Operation.SCALE_DOWN, "0f0f0f")))
    model.submit(required=frozenset({"gpu-1"}))
    assert "asks for it by name" in cleanup(model).remove(NAMES).kept["gpu-1"]
    assert sorted(model.records) == ["gpu-0", "gpu-1"]


def test_a_record_on_which_a_job_is_for_slurm_stays_until_slurm_gives_the_node_up(model: Model) -> None:
    model.submit(required=frozenset({"gpu-1"}))  # Slurm does not know yet that no one is there
    assert "has not ended for Slurm" in cleanup(model).remove(NAMES).kept["gpu-1"]


@pytest.mark.parametrize("reason", ["disk", "soperator-pulumi other: scale-down 0f0f0f"])
def test_a_record_that_someone_else_drained_stays_with_its_drain(model: Model, reason: str) -> None:
    model.world.slurm.drain(["gpu-1"], reason)
    removal = cleanup(model).remove(NAMES)
    assert removal.kept == {"gpu-1": f"someone else drained it ({reason}), and it must be drained when it is back"}
    assert model.drained() == {"gpu-1": reason}


def test_a_record_that_we_drained_goes(model: Model) -> None:
    model.world.slurm.drain(["gpu-1"], str(Marker(OWNER, Operation.SCALE_DOWN, "0f0f0f")))
    assert cleanup(model).remove(NAMES).kept == {}


def test_of_a_list_that_slurm_deletes_in_part_each_name_is_looked_at(model: Model) -> None:
    usual = model.world.slurm.delete
    model.world.slurm.delete = (  # type: ignore[method-assign] # a job came to it a moment ago
        lambda name: "Requested nodes are busy" if name == "gpu-1" else usual(name)
    )
    removal = cleanup(model).remove(NAMES)
    assert removal.removed == {"gpu-2"}
    assert "failed to delete nodes gpu-1" in removal.kept["gpu-1"]


def test_when_the_answer_is_lost_it_looks_again_instead_of_deleting_again(model: Model) -> None:
    lose(model, after=True)
    removal = cleanup(model).remove(NAMES)
    assert removal.removed == {*NAMES}
    assert sum("delete" in command for command in model.commands) == 1


def test_when_nothing_was_done_it_is_done_at_the_next_look(model: Model) -> None:
    lose(model, after=False)
    assert cleanup(model).remove(NAMES).removed == {*NAMES}
    assert sorted(model.records) == ["gpu-0"]


def test_what_slurm_has_just_said_is_not_asked_again(model: Model) -> None:
    known = cleanup(model)
    nodes = {node.name: node for node in known.slurm.nodes()}
    model.commands.clear()
    assert known.remove(NAMES, nodes).removed == {*NAMES}
    assert model.commands == [
        "squeue --json --all",
        "scontrol show reservations --json",
        "scontrol delete nodename=gpu-[1-2]",
    ]


def test_when_no_answer_ever_comes_nothing_is_said_to_be_removed(model: Model) -> None:
    lose(model, after=False, times=3)
    removal = cleanup(model).remove(NAMES)
    assert removal.removed == set()
    assert removal.kept == dict.fromkeys(NAMES, "unknown if it is removed")


def test_without_an_answer_nothing_is_deleted(model: Model) -> None:
    model.world.kubernetes.controller = False
    with pytest.raises(TransportError):
        cleanup(model).remove(NAMES)
    assert len(model.records) == 3


def lose(model: Model, *, after: bool, times: int = 1) -> None:
    """Lose the answers of the first deletes, after they were done or before."""
    usual, lost = model.world.programs.run, list[str]()

    def run(command: Sequence[str]) -> Answer:
        if "delete" not in command or len(lost) == times:
            return usual(command)
        lost.append("once")
        if after:
            usual(command)
        raise TransportError("the connection broke.")

    model.world.programs.run = run  # type: ignore[method-assign] # the model has no other place to lose it
