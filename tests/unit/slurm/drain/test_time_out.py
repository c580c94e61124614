"""Decisions when nodes are not free in time, by policy."""

from typing import Any

import pytest

from soperator_pulumi.slurm.drain.plan import Plan
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.drain.time_out import SETTLE_SECONDS, TREATED_SECONDS, longest_wait_seconds
from soperator_pulumi.slurm.models import Job
from soperator_pulumi.spec.drain import DrainSpec
from tests.unit.slurm.drain.situation import HOUR, RUN, job, leaving, node, planned

RUNNING = job(1, "gpu-1", ends_in=HOUR)
INTERACTIVE = job(2, "gpu-1", name="bash", requeueable=False)
WEEK = 7 * 24 * HOUR


def after(hours: float, jobs: Job | list[Job] = RUNNING, *, more_seconds: float = 0, **policy: Any) -> Plan:
    """Return the plan for gpu-1 with jobs and gpu-2 without, `hours` after both have been drained."""
    treated = policy.pop("treated", None)
    unrequeueable = policy.pop("unrequeueable", None)
    return planned(
        leaving(**policy),
        [node("gpu-1", "MIXED+DRAIN", RUN), node("gpu-2", "IDLE+DRAIN", RUN)],
        jobs if isinstance(jobs, list) else [jobs],
        elapsed=hours * HOUR + more_seconds,
        treated=treated,
        unrequeueable=unrequeueable,
    )


@pytest.mark.parametrize("on_timeout", ["abort", "requeue", "cancel", "wait"])
def test_before_the_time_is_up_jobs_continue(on_timeout: str) -> None:
    before = after(1.99, on_timeout=on_timeout)

    assert before.waiting.keys() == {"gpu-1"}
    assert (before.stop, before.requeue, before.cancel) == ((), (), ())


def test_abort_stops_and_touches_no_job() -> None:
    """Case 4: with the default, too, a drain ends."""
    over = after(2)

    assert over.stop == ("gpu: 1 of 2 nodes is not free after 2 h (drain.timeout)",)
    assert (over.drain, over.requeue, over.cancel) == ({}, (), ())


def test_wait_continues_to_its_limit_and_stops_then() -> None:
    """Case 5: also with a job that has no time limit."""
    assert not after(2, on_timeout="wait").stop
    assert not after(7 * 24 - 0.01, on_timeout="wait").stop
    assert after(7 * 24, on_timeout="wait").stop == ("gpu: 1 of 2 nodes is not free after 7 d (drain.max_wait)",)


def test_requeue_requeues_and_cancel_cancels_each_job_once() -> None:
    assert after(2, on_timeout="requeue").requeue == (1,)
    assert after(2, on_timeout="cancel").cancel == (1,)
    assert after(2, on_timeout="requeue", treated={1: 0.0}).requeue == ()
    assert after(2, on_timeout="cancel", treated={1: 0.0}).cancel == ()


def test_a_job_on_several_nodes_is_treated_once() -> None:
    """Case 16: no job is counted by node."""
    over = planned(
        leaving(on_timeout="requeue"),
        [node(name, "ALLOCATED+DRAIN", RUN) for name in ("gpu-1", "gpu-2")],
        [job(1, "gpu-1,gpu-2,gpu-0")],
        elapsed=2 * HOUR,
    )

    assert over.requeue == (1,)


def test_a_treated_job_that_does_not_go_stops_it_after_a_while() -> None:
    """Case 6: neither requeue nor cancel helps against a process that no one can kill."""
    assert not after(2, on_timeout="cancel", more_seconds=400, treated={1: TREATED_SECONDS - 1}).stop
    assert after(2, on_timeout="cancel", more_seconds=400, treated={1: TREATED_SECONDS}).stop == (
        "gpu: 1 of 2 nodes is not free 5 min after its jobs' time was up (drain.on_timeout: cancel)",
    )


@pytest.mark.parametrize("on_timeout", ["requeue", "cancel"])
def test_a_job_that_completes_is_not_treated_and_may_not_take_for_ever(on_timeout: str) -> None:
    """Cases 6 and 10."""
    completing = job(1, "gpu-1", state="COMPLETING+CANCELLED", requeueable=False)
    over = after(2, completing, on_timeout=on_timeout)

    assert (over.stop, over.requeue, over.cancel) == ((), (), ())
    assert after(2, completing, on_timeout=on_timeout, more_seconds=TREATED_SECONDS).stop


def test_a_job_that_came_late_is_treated_as_well() -> None:
    late = after(2, [RUNNING, job(9, "gpu-1")], on_timeout="cancel", treated={1: TREATED_SECONDS + 1})

    assert late.cancel == (9,)
    assert not late.stop


def test_one_job_that_can_not_be_requeued_stops_it_before_any_job_is_touched() -> None:
    over = after(2, [RUNNING, INTERACTIVE], on_timeout="requeue")

    assert (over.requeue, over.cancel) == ((), ())
    assert over.stop == (
        (
            "gpu: job 2 (alice, bash) can't be requeued (it is interactive or was submitted with --no-requeue), "
            "and drain.not_requeueable is abort"
        ),
    )


def test_jobs_that_can_not_be_requeued_are_cancelled_when_the_policy_says_so() -> None:
    over = after(2, [RUNNING, INTERACTIVE], on_timeout="requeue", not_requeueable="cancel")

    assert (over.requeue, over.cancel, over.stop) == ((1,), (2,), ())


def test_a_job_that_slurm_refused_to_requeue_counts_as_one_that_can_not_be() -> None:
    refused = {1: "Requested operation is presently disabled"}

    assert "presently disabled" in after(2, on_timeout="requeue", unrequeueable=refused).stop[0]
    assert after(2, on_timeout="requeue", not_requeueable="cancel", unrequeueable=refused).cancel == (1,)


def test_without_waiting_the_time_is_never_up() -> None:
    later = after(24 * 30, on_timeout="cancel", wait=False)

    assert (later.stop, later.cancel) == ((), ())
    assert later.free == {"gpu-2"}


def test_without_any_time_idle_nodes_are_drained_before_it_is_judged() -> None:
    first = planned(leaving(timeout="0s"), [node("gpu-1"), node("gpu-2", "ALLOCATED")], [job(1, "gpu-2")])

    assert first.drain
    assert not first.stop
    assert after(0, timeout="0s").stop


@pytest.mark.parametrize("on_timeout", ["requeue", "cancel"])
def test_a_job_on_a_node_that_was_not_known_a_moment_before_is_not_treated_before_the_node_is_drained(
    on_timeout: str,
) -> None:
    """The node registered after the nodes were asked for, and before the jobs were."""
    policy = leaving(timeout="0s", on_timeout=on_timeout)

    first = planned(policy, [node("gpu-2", "ALLOCATED+DRAIN", RUN)], [job(1, "gpu-1"), job(2, "gpu-2")], elapsed=HOUR)

    assert (*first.requeue, *first.cancel) == (2,)


def test_someone_who_resumes_nodes_again_and_again_does_not_make_it_endless() -> None:
    resumed = [node("gpu-1", "IDLE"), node("gpu-2", "IDLE+DRAIN", RUN)]

    assert not planned(leaving(), resumed, elapsed=2 * HOUR).stop
    assert planned(leaving(), resumed, elapsed=2 * HOUR + SETTLE_SECONDS).stop


@pytest.mark.parametrize("on_timeout", ["requeue", "cancel"])
def test_a_job_on_a_node_that_someone_has_resumed_is_not_treated_before_the_node_is_drained_again(
    on_timeout: str,
) -> None:
    """It could start there again."""
    resumed = [node("gpu-1", "MIXED"), node("gpu-2", "ALLOCATED+DRAIN", RUN)]
    jobs = [job(1, "gpu-1"), job(2, "gpu-2"), job(3, "gpu-1,gpu-2")]
    policy = leaving(on_timeout=on_timeout)

    later = planned(policy, resumed, jobs, elapsed=2 * HOUR + SETTLE_SECONDS)

    assert (*later.requeue, *later.cancel) == (2,)
    assert later.drain == {str(RUN): ("gpu-1",)}
    assert planned(policy, resumed[:1], jobs[:1], elapsed=2 * HOUR + TREATED_SECONDS).stop


@pytest.mark.parametrize("on_timeout", ["abort", "requeue", "cancel", "wait"])
def test_whatever_jobs_do_there_is_an_end(on_timeout: str) -> None:
    policy = DrainSpec.model_validate({"on_timeout": on_timeout})
    hours = longest_wait_seconds(policy) / HOUR

    assert after(hours, [job(index, "gpu-1") for index in range(3)], on_timeout=on_timeout).stop


def two(*policies: DrainRequest, jobs: list[Job], hours: float) -> Plan:
    """Return the plan of node sets with one leaving node each, drained and with jobs."""
    return planned(
        policies,
        [node(name, "MIXED+DRAIN", RUN) for policy in policies for name in policy.names],
        jobs,
        elapsed=hours * HOUR,
    )


def test_what_stops_one_node_set_stops_all() -> None:
    sets = (leaving("gpu-1", timeout="1h"), leaving("cpu-1", timeout="30m", on_timeout="cancel"))
    over = two(*sets, jobs=[job(1, "gpu-1"), job(2, "cpu-1")], hours=1)

    assert [words.partition(":")[0] for words in over.stop] == ["gpu"]
    assert over.cancel == ()


def test_a_node_set_that_is_free_has_no_time_to_be_up() -> None:
    sets = [leaving("gpu-1", timeout="1m"), leaving("cpu-1")]
    nodes = [node("gpu-1", "IDLE+DRAIN", RUN), node("cpu-1", "MIXED+DRAIN", RUN)]

    assert not planned(sets, nodes, [job(1, "cpu-1")], elapsed=HOUR).stop


def test_each_node_set_has_its_own_time() -> None:
    sets = (leaving("gpu-1", on_timeout="requeue"), leaving("cpu-1", timeout="30m", on_timeout="cancel"))
    jobs = [job(1, "gpu-1"), job(2, "cpu-1")]

    assert (two(*sets, jobs=jobs, hours=1).requeue, two(*sets, jobs=jobs, hours=1).cancel) == ((), (2,))
    assert two(*sets, jobs=jobs, hours=2).requeue == (1,)


def test_the_most_patient_policy_protects_all_parts_of_a_heterogeneous_job() -> None:
    """An act on one part is an act on all."""
    parts = [job(10, "gpu-1", whole="10"), job(11, "cpu-1", whole="10")]
    sets = (leaving("gpu-1", timeout="10m", on_timeout="cancel"), leaving("cpu-1", on_timeout="wait"))

    assert two(*sets, jobs=parts, hours=1).cancel == ()


def test_a_heterogeneous_job_is_requeued_or_cancelled_as_a_whole() -> None:
    parts = [job(10, "gpu-1", whole="10"), job(11, "gpu-1", whole="10", requeueable=False)]
    over = after(2, parts, on_timeout="requeue", not_requeueable="cancel")

    assert (over.requeue, over.cancel) == ((), (10, 11))


def test_no_part_of_a_heterogeneous_job_is_treated_while_another_ones_node_is_not_drained() -> None:
    parts = [job(10, "gpu-1", whole="10"), job(11, "gpu-2", whole="10")]
    nodes = [node("gpu-1", "MIXED+DRAIN", RUN), node("gpu-2", "MIXED")]

    assert planned(leaving(on_timeout="cancel"), nodes, parts, elapsed=2 * HOUR + SETTLE_SECONDS).cancel == ()


def test_the_most_patient_policy_protects_a_job_that_holds_nodes_of_several_node_sets() -> None:
    impatient = leaving("cpu-1", timeout="10m", on_timeout="cancel")
    across = [job(1, "gpu-1,cpu-1")]

    assert two(impatient, leaving("gpu-1", on_timeout="wait"), jobs=across, hours=24).cancel == ()
    assert two(impatient, leaving("gpu-1", on_timeout="requeue"), jobs=across, hours=1).cancel == ()
    assert two(impatient, leaving("gpu-1", on_timeout="requeue"), jobs=across, hours=2).requeue == (1,)


def test_no_job_is_requeued_while_another_policy_protects_one_that_would_stop_it() -> None:
    sets = (leaving("gpu-1", timeout="0s", on_timeout="requeue"), leaving("cpu-1", timeout="5m", on_timeout="cancel"))
    jobs = [job(1, "gpu-1"), job(2, "gpu-1,cpu-1", requeueable=False)]

    assert two(*sets, jobs=jobs, hours=0.01).requeue == ()
    assert not two(*sets, jobs=jobs, hours=0.01).stop
    assert two(*sets, jobs=jobs[:1], hours=0.01).requeue == (1,)
    assert two(*sets, jobs=jobs, hours=0.1).stop


def across(hours: float, others: dict[str, Any], *jobs: Job, **policy: Any) -> Plan:
    """Return the plan where gpu-1 leaves, and jobs on it are on nodes of cpu too, all of which stay."""
    return planned(
        leaving("gpu-1", **policy),
        [node("gpu-1", "MIXED+DRAIN", RUN), node("cpu-0", "MIXED")],
        jobs or [job(1, "gpu-1,cpu-0")],
        elapsed=hours * HOUR,
        others={"cpu": others},
    )


def test_the_policy_of_a_node_set_that_keeps_its_nodes_protects_a_job_as_well() -> None:
    patient = {"on_timeout": "cancel", "timeout": "8h"}

    assert across(2, patient, on_timeout="cancel").cancel == ()
    assert across(7.9, patient, on_timeout="cancel").stop == ()
    assert across(8, patient, on_timeout="cancel").cancel == (1,)


def test_a_job_is_requeued_where_either_of_its_node_sets_says_so() -> None:
    assert across(2, {"on_timeout": "requeue"}, on_timeout="cancel").requeue == (1,)
    assert across(2, {"on_timeout": "cancel"}, on_timeout="requeue").requeue == (1,)


def test_a_node_set_that_keeps_its_nodes_stops_what_its_policy_does_not_allow() -> None:
    told = "gpu: job 1 (alice, train.sh) is also on nodes of cpu, whose drain."

    assert across(2, {}, on_timeout="cancel").stop == (f"{told}on_timeout is abort",)
    assert across(2, {"wait": False}, on_timeout="cancel").stop == (f"{told}wait is false",)
    assert not across(2, {"on_timeout": "wait"}, on_timeout="cancel").stop
    assert across(7 * 24, {"on_timeout": "wait"}, on_timeout="cancel").stop == (f"{told}on_timeout is wait",)


def test_it_has_no_say_before_the_time_of_the_node_set_that_loses_nodes_is_up() -> None:
    assert not across(1.9, {"timeout": "0s"}, on_timeout="cancel").stop


def test_a_job_that_can_not_be_requeued_is_not_cancelled_where_one_of_its_node_sets_aborts_for_it() -> None:
    rigid = job(1, "gpu-1,cpu-0", requeueable=False)
    over = across(2, {"on_timeout": "requeue"}, rigid, on_timeout="cancel")

    assert over.cancel == ()
    assert over.stop == (
        (
            "gpu: job 1 (alice, train.sh) can't be requeued, and is also on nodes of cpu, whose drain.on_timeout is "
            "requeue and drain.not_requeueable abort"
        ),
    )


def test_it_protects_all_parts_of_a_heterogeneous_job() -> None:
    parts = [job(10, "gpu-1", whole="10"), job(11, "cpu-0", whole="10")]

    assert across(2, {"on_timeout": "cancel", "timeout": "8h"}, *parts, on_timeout="cancel").cancel == ()


def test_jobs_on_nodes_of_which_no_policy_is_known_are_left_alone() -> None:
    unknown = job(1, "gpu-1,elsewhere-0")

    assert across(2, {"on_timeout": "cancel"}, unknown, on_timeout="cancel").stop
    assert across(2, {"on_timeout": "cancel"}, unknown, job(2, "gpu-1"), on_timeout="cancel").cancel == ()


def test_a_job_only_on_staying_nodes_protects_nothing() -> None:
    assert across(2, {}, job(1, "gpu-1"), job(2, "cpu-0"), on_timeout="cancel").cancel == (1,)


def test_a_node_set_whose_other_nodes_leave_protects_a_job_on_those_that_stay() -> None:
    sets = (leaving("gpu-1", timeout="10m", on_timeout="cancel"), leaving("cpu-1", on_timeout="wait"))

    assert two(*sets, jobs=[job(1, "gpu-1,cpu-0")], hours=1).cancel == ()
