"""Nodes that are not freed in time: what is put back into service, and what is left as it is."""

from collections.abc import Sequence

import pytest

from soperator_pulumi.errors import DrainError
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from soperator_pulumi.slurm.transport import Answer
from tests.unit.operations.nodes.bench import NAMES, OWNER, Bench, a_policy, leaving, lost, ours


def test_nodes_that_are_not_free_in_time_are_all_back_in_service(bench: Bench) -> None:
    job = bench.submit(width=4, seconds=1000)
    with pytest.raises(
        DrainError, match=r"job 1 \(alice, job1\).*\n.*\n.*\n  All nodes drained for this change are undrained"
    ):
        bench.free("gpu-2", "gpu-3", policy=a_policy(timeout="90s"))
    assert bench.reasons() == {}
    assert job.state == "RUNNING"


def test_what_an_earlier_run_of_ours_left_drained_is_put_back_as_well(bench: Bench) -> None:
    bench.world.slurm.drain(["gpu-3"], ours(Operation.SCALE_DOWN))
    bench.submit(width=3, seconds=1000)
    with pytest.raises(DrainError):
        bench.free("gpu-2", "gpu-3", policy=a_policy(timeout="0s"))
    assert bench.reasons() == {}


def test_a_drain_of_someone_else_is_in_force_as_before_after_an_abort(bench: Bench) -> None:
    bench.submit(width=4, seconds=1000)
    bench.world.slurm.drain(["gpu-3"], "fan broken")
    with pytest.raises(DrainError):
        bench.free("gpu-2", "gpu-3", policy=a_policy(timeout="90s"))
    assert bench.reasons() == {"gpu-3": "fan broken"}


def test_a_node_that_its_stopping_pod_had_drained_is_left_to_that_pod_after_an_abort(bench: Bench) -> None:
    bench.submit(width=4, seconds=1000)
    bench.world.slurm.drain(["gpu-3"], ours(Operation.POD_STOP))
    with pytest.raises(DrainError):
        bench.free("gpu-2", "gpu-3", policy=a_policy(timeout="90s"))
    assert bench.reasons() == {"gpu-3": ours(Operation.POD_STOP)}


def test_when_nothing_can_be_put_back_it_says_what_stays_drained_and_how_to_undo_it(bench: Bench) -> None:
    bench.submit(width=4, seconds=1000)
    bench.before = lambda command: lost() if "state=undrain" in command else None
    with pytest.raises(DrainError) as raised:
        bench.free("gpu-2", "gpu-3", policy=a_policy(timeout="90s"))
    assert "Still drained: gpu-[2-3] (pod hpc/controller-0: the connection broke)" in str(raised.value)
    assert "scontrol update nodename=gpu-[2-3]" in str(raised.value)
    assert "All nodes drained for this change are undrained" not in str(raised.value)


def test_putting_back_continues_when_slurmctld_is_back(bench: Bench) -> None:
    bench.submit(width=4, seconds=1000)

    def crashes(command: Sequence[str]) -> None:
        if "state=undrain" in command and bench.world.slurm.up and bench.world.time < 100:
            bench.world.slurm.crash(40)

    bench.before = crashes
    with pytest.raises(DrainError, match="All nodes drained for this change are undrained"):
        bench.free("gpu-2", "gpu-3", policy=a_policy(timeout="90s"))
    assert bench.reasons() == {}


def test_a_node_that_an_admin_drains_during_an_abort_keeps_that_drain(bench: Bench) -> None:
    bench.submit(width=4, seconds=1000)

    def admin(command: Sequence[str]) -> Answer | None:
        if "state=undrain" in command and "mine" not in bench.reasons().values():
            bench.world.slurm.drain(["gpu-3"], "mine")
            return lost()
        return None

    bench.before = admin
    with pytest.raises(DrainError, match="All nodes drained for this change are undrained"):
        bench.free("gpu-2", "gpu-3", policy=a_policy(timeout="90s"))
    assert bench.reasons() == {"gpu-3": "mine"}


def test_only_drains_of_ours_for_the_named_operations_are_put_back(bench: Bench) -> None:
    reasons = {
        "gpu-0": ours(Operation.SCALE_DOWN),
        "gpu-1": ours(Operation.ROLLING_UPDATE),
        "gpu-2": "soperator-pulumi other: scale-down abcdef",
        "gpu-3": ours(Operation.SCALE_DOWN) + " and more",
    }
    for name, reason in reasons.items():
        bench.world.slurm.drain([name], reason)
    assert bench.draining().undrain(NAMES, {Operation.SCALE_DOWN}) == {"gpu-0"}
    assert bench.reasons().keys() == {"gpu-1", "gpu-2", "gpu-3"}


def test_a_node_gets_back_the_reason_that_it_had_before(bench: Bench) -> None:
    bench.world.slurm.nodes["gpu-3"].reason = "watch the fan"
    bench.submit(width=4, seconds=1000)
    with pytest.raises(DrainError):
        bench.free("gpu-3", policy=a_policy(timeout="60s"))
    assert bench.world.slurm.nodes["gpu-3"].reason == "watch the fan"


def test_a_drain_with_another_purpose_keeps_the_reason_that_the_node_had_before(bench: Bench) -> None:
    node = bench.world.slurm.nodes["gpu-3"]
    node.reason = "fan was replaced"
    bench.draining().free([leaving("gpu-3", policy=a_policy(wait=False))], Operation.SCALE_DOWN)
    bench.draining().mark(["gpu-3"], bench.draining().nodes(), Operation.REPLACEMENT)
    marker = Marker.read(bench.reasons()["gpu-3"], OWNER)
    assert marker is not None
    assert (marker.operation, marker.before) == (Operation.REPLACEMENT, "fan was replaced")
