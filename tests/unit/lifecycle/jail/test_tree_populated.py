"""Waiting for a tree of the jail."""

import pytest

from soperator_pulumi.errors import JailError, NotReadyError
from soperator_pulumi.lifecycle.tree_populated import TreePopulatedProvider
from tests.fakes.jail import JOB, NEW, OLD, REFUSED, JailWorld, Printed, Run
from tests.fakes.objects import NAMESPACE, SELECTOR, KilledError

FILLED = {
    "namespace": NAMESPACE,
    "owner": "project.dev.hpc",
    "selector": SELECTOR,
    "job": JOB,
    "tree": NEW,
    "source": "debian:13",
    "claim": "jail",
    "kubeconfig": None,
    "context": None,
}

TOLD = f"/api/v1/namespaces/{NAMESPACE}/configmaps/jail-filled"


def populates(world: JailWorld, *runs: Run) -> None:
    """Let the populate Job's pods do one after the other."""
    remaining = list(runs)
    world.programs["populate"] = lambda _arguments: remaining.pop(0)
    world.add_job(JOB, "populate", container="populate")


def test_a_tree_is_waited_for_and_its_size_is_reported(world: JailWorld, printed: Printed) -> None:
    populates(world, Run(0, 'populate: 3 of 3 files\n{"files": 30000, "bytes": 943718400, "seconds": 12.3}'))
    assert TreePopulatedProvider().create(dict(FILLED)).outs == FILLED
    assert printed.lines()[-1] == f"jail: debian:13 is tree {NEW}: 30,000 files, 900 MiB, in 12 s"


def test_a_tree_that_was_whole_once_is_not_looked_at_again(world: JailWorld) -> None:
    world.unreachable = True
    news = {**FILLED, "kubeconfig": "other"}
    assert TreePopulatedProvider().diff("", dict(FILLED), dict(FILLED)).changes is False
    assert TreePopulatedProvider().update("", dict(FILLED), news).outs == news
    assert TreePopulatedProvider().read("hpc/x", dict(FILLED)).outs == FILLED


@pytest.mark.parametrize("changed", [{"tree": OLD, "job": f"jail-populate-{OLD}"}, {"claim": "another"}], ids=str)
def test_another_tree_and_another_claim_are_waited_for(changed: dict[str, str]) -> None:
    result = TreePopulatedProvider().diff("", dict(FILLED), {**FILLED, **changed})
    assert (result.changes, result.replaces or []) == (True, [])


def test_a_tree_that_cannot_be_filled_fails_with_tree_source_reason_and_what_to_do(world: JailWorld) -> None:
    populates(world, Run(REFUSED, message="the checksum is another one"))
    with pytest.raises(JailError) as raised:
        TreePopulatedProvider().create(dict(FILLED))
    assert f"the tree {NEW} was not filled from debian:13: the checksum is another one\n" in str(raised.value)
    assert "run again" in str(raised.value)


def test_a_job_that_had_failed_is_started_again_by_the_next_run(world: JailWorld, printed: Printed) -> None:
    populates(world, Run(REFUSED, message="the disk is full"), Run(0, "{}"))
    with pytest.raises(JailError, match="the disk is full"):
        TreePopulatedProvider().create(dict(FILLED))
    assert TreePopulatedProvider().create(dict(FILLED)).outs == FILLED
    assert f"jail: recreates the Job {JOB}, which failed before" in printed.lines()


def test_a_job_that_fails_again_is_not_started_a_third_time_in_one_run(world: JailWorld) -> None:
    populates(world, Run(REFUSED), Run(REFUSED, message="still full"))
    world.clock.sleep(5)
    with pytest.raises(JailError, match="still full"):
        TreePopulatedProvider().update("", dict(FILLED), dict(FILLED))


def test_a_job_that_an_interrupted_run_left_running_is_followed(world: JailWorld) -> None:
    populates(world, Run(0, "{}", seconds=60))
    world.calls_left = 3
    with pytest.raises(KilledError):
        TreePopulatedProvider().create(dict(FILLED))
    world.calls_left = None
    TreePopulatedProvider().create(dict(FILLED))
    assert len(world.ran) == 1


def test_a_machine_that_never_comes_ends_the_wait_at_the_time_of_the_spec(world: JailWorld, printed: Printed) -> None:
    populates(world, Run())
    world.clock.later.clear()
    condition = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available: 1 Insufficient cpu."}
    world.job_pods()[-1]["status"] = {"phase": "Pending", "conditions": [condition]}
    with pytest.raises(NotReadyError, match=r"raise ready_timeout_seconds; .* lower jail\.populate\.pod_resources"):
        TreePopulatedProvider().create({**FILLED, "timeout_seconds": 1200.0})
    assert 1200 <= world.clock.time < 1202
    first, second, *_ = printed.lines()
    assert first == "jail: its pod waits for a machine: 0/1 nodes are available: 1 Insufficient cpu.; 1200 s left"
    assert second.endswith("1 Insufficient cpu.; 1170 s left")


def test_a_filled_tree_is_told_to_later_fillings(world: JailWorld) -> None:
    populates(world, Run(0, "{}"))
    TreePopulatedProvider().create(dict(FILLED))
    told = world.objects[TOLD]["data"]["jail-filled"]
    assert told.startswith(f"tree {NEW} from debian:13, on the claim jail, 20")


def test_a_tree_that_was_not_filled_is_not_told(world: JailWorld) -> None:
    populates(world, Run(REFUSED))
    with pytest.raises(JailError):
        TreePopulatedProvider().create(dict(FILLED))
    assert TOLD not in world.objects


@pytest.mark.parametrize("changed", [{"keep": True}, {"accepted": "a trial"}], ids=str)
def test_the_tree_of_an_older_state_and_one_that_is_filled_anew_are_waited_for(changed: dict[str, object]) -> None:
    assert TreePopulatedProvider().diff("", dict(FILLED), {**FILLED, **changed}).changes is True


@pytest.mark.parametrize(("keep", "stays"), [(True, True), (False, False), (None, True)])
def test_a_filling_is_forgotten_with_its_claim_alone(world: JailWorld, keep: bool | None, stays: bool) -> None:
    populates(world, Run(0, "{}"))
    TreePopulatedProvider().create({**FILLED, "keep": keep})
    TreePopulatedProvider().delete("", {**FILLED, "keep": keep})
    assert (TOLD in world.objects) is stays


def test_removing_the_cluster_removes_no_tree(world: JailWorld) -> None:
    world.unreachable = True
    TreePopulatedProvider().delete("", dict(FILLED))
