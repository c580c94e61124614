"""Decisions at one look: nodes that are drained, that are free, and that wait for jobs."""

from soperator_pulumi.slurm.drain.plan import drained_for
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from tests.unit.slurm.drain.situation import (
    EARLIER,
    HOUR,
    NOW,
    OWNER,
    RUN,
    job,
    leaving,
    node,
    planned,
    reservation,
    snapshot,
)

OURS = "IDLE+DRAIN"


def test_leaving_nodes_are_drained_in_one_call() -> None:
    first = planned(leaving(), [node("gpu-0"), node("gpu-1"), node("gpu-2", "ALLOCATED")], [job(1, "gpu-2")])

    assert first.drain == {str(RUN): ("gpu-1", "gpu-2")}
    assert not first.free
    assert not first.done


def test_nodes_of_several_node_sets_are_drained_in_one_call() -> None:
    """Case 35: one pass for the cluster."""
    first = planned(
        [leaving("gpu-1", staying=""), leaving("cpu-0", staying="")], [node("gpu-1"), node("cpu-0", "MIXED")]
    )

    assert first.drain == {str(RUN): ("gpu-1", "cpu-0")}


def test_drained_nodes_without_jobs_are_free() -> None:
    later = planned(leaving(), [node("gpu-0"), node("gpu-1", OURS, RUN), node("gpu-2", OURS, RUN)])

    assert later.free == {"gpu-1", "gpu-2"}
    assert later.drain == {}
    assert later.done


def test_a_node_is_waited_for_until_its_last_job_ends() -> None:
    """Case 4."""
    jobs = [job(1, "gpu-1", ends_in=60), job(2, "gpu-1", ends_in=HOUR), job(3, "gpu-0")]
    later = planned(leaving(), [node("gpu-1", "MIXED+DRAIN", RUN), node("gpu-2", OURS, RUN)], jobs)

    assert later.free == {"gpu-2"}
    assert later.waiting["gpu-1"].jobs == (jobs[0], jobs[1])
    assert later.waiting["gpu-1"].until == NOW + HOUR


def test_a_job_without_a_time_limit_ends_no_one_knows_when() -> None:
    """Case 5."""
    jobs = [job(1, "gpu-1", ends_in=60), job(2, "gpu-1")]
    later = planned(leaving(), [node("gpu-1", "MIXED+DRAIN", RUN), node("gpu-2", OURS, RUN)], jobs)

    assert later.waiting["gpu-1"].until is None


def test_a_node_that_slurmctld_does_not_know_is_neither_drained_nor_free() -> None:
    """Cases 2 and 27."""
    later = planned(leaving(), [node("gpu-2")])

    assert later.drain == {str(RUN): ("gpu-2",)}
    assert later.waiting["gpu-1"].why == "unknown to slurmctld"


def test_a_pod_in_which_slurmd_never_ran_is_free_unless_slurmctld_knows_the_node() -> None:
    never = leaving(never_started="gpu-1,gpu-2")

    assert planned(never).done
    assert planned(never, [node("gpu-1")]).drain == {str(RUN): ("gpu-1",)}
    assert planned(never, [], [job(1, "gpu-2")]).waiting.keys() == {"gpu-2"}


def test_a_drain_of_someone_else_is_left_alone_and_counts() -> None:
    """Cases 12, 13 and 14: whatever the reason says, and also when it says nothing."""
    nodes = [node("gpu-1", OURS, "bad fan"), node("gpu-2", "ALLOCATED+DRAIN")]
    later = planned(leaving(), nodes, [job(1, "gpu-2")])

    assert later.drain == {}
    assert later.foreign == {"gpu-1": "bad fan", "gpu-2": ""}
    assert later.free == {"gpu-1"}


def test_a_node_that_an_admin_has_failed_is_as_good_as_drained() -> None:
    """To drain it would clear FAIL, and putting it back would bring a bad node into service."""
    nodes = [node("gpu-1", "IDLE+FAIL", "bad fan"), node("gpu-2", "IDLE+DRAIN+FAIL", RUN)]
    later = planned(leaving(), nodes)

    assert later.drain == {}
    assert later.foreign == {"gpu-1": "bad fan", "gpu-2": str(RUN)}
    assert later.done
    assert not drained_for({*Operation}, ["gpu-1", "gpu-2"], snapshot(nodes), OWNER)


def test_a_drain_that_someone_is_lifting_is_judged_at_the_next_look() -> None:
    later = planned(leaving("gpu-1"), [node("gpu-1", "IDLE+DRAIN+UNDRAIN", "bad fan")])

    assert later.drain == {}
    assert later.waiting["gpu-1"].why == "not drained yet"


def test_a_drain_of_another_cluster_s_run_is_someone_elses() -> None:
    other = Marker("dev", Operation.SCALE_DOWN, RUN.run)

    assert planned(leaving("gpu-1"), [node("gpu-1", OURS, other)]).foreign == {"gpu-1": str(other)}


def test_a_drain_of_an_earlier_run_is_marked_again_and_keeps_the_reason_of_before() -> None:
    """Case 18 among them: a scale-down takes over the nodes that a rolling update has drained."""
    earlier = Marker(OWNER, Operation.ROLLING_UPDATE, "0f0f0f", "ECC errors")
    nodes = [node("gpu-1", OURS, EARLIER), node("gpu-2", OURS, earlier)]
    first = planned(leaving(), nodes)

    assert first.drain == {str(RUN): ("gpu-1",), f"{RUN} (was: ECC errors)": ("gpu-2",)}
    assert not first.free


def test_a_drain_that_a_stopping_pod_has_set_is_marked_again() -> None:
    """Case 24."""
    assert planned(leaving("gpu-1"), [node("gpu-1", OURS, Marker(OWNER, Operation.POD_STOP))]).drain


def test_the_reason_of_a_node_that_is_not_drained_is_kept_in_ours() -> None:
    nodes = [node("gpu-1", "DOWN", "Not responding"), node("gpu-2", "IDLE", EARLIER)]

    assert planned(leaving(), nodes).drain == {f"{RUN} (was: Not responding)": ("gpu-1",), str(RUN): ("gpu-2",)}


def test_a_node_that_someone_has_put_in_service_meanwhile_is_drained_again() -> None:
    later = planned(leaving(), [node("gpu-1", "IDLE", RUN), node("gpu-2", OURS, RUN)], elapsed=HOUR)

    assert later.drain == {str(RUN): ("gpu-1",)}


def test_reservations_and_pending_jobs_that_name_a_node_are_reported() -> None:
    """Case 21."""
    named, ended = reservation("maint", "gpu-2,gpu-3"), reservation("over", "gpu-1", ends_in=-1)
    asks = job(8, state="PENDING", required_nodes=frozenset({"gpu-1", "gpu-0"}))
    first = planned(leaving(), [node("gpu-1"), node("gpu-2")], [asks], [named, ended])

    assert first.reserved == {"gpu-2": (named,)}
    assert first.pending == {"gpu-1": (asks,)}
    assert first.drain
    assert not first.stop


def test_a_reservation_stops_everything_before_anything_is_drained_when_the_policy_says_so() -> None:
    sets = [leaving("gpu-1,gpu-2", reservations="refuse"), leaving("cpu-1", staying="cpu-0")]
    nodes = [node("gpu-1"), node("gpu-2"), node("cpu-1")]
    first = planned(sets, nodes, (), [reservation("maint", "gpu-1,gpu-2", starts_in=HOUR, ends_in=2 * HOUR)])

    assert first.drain == {}
    assert first.stop == (
        (
            "gpu: reservation maint names gpu-[1-2], and drain.reservations is refuse. "
            "Wait for its end, remove the nodes from it, or set the policy to report."
        ),
    )


def test_a_pending_job_that_asks_for_a_node_stops_everything_when_the_policy_says_so() -> None:
    asks = job(8, state="PENDING", required_nodes=frozenset({"gpu-1"}))
    first = planned(leaving(pending_jobs="refuse"), [node("gpu-1"), node("gpu-2")], [asks])

    assert first.stop == (
        (
            "gpu: pending job 8 (alice, train.sh) asks for gpu-1, and drain.pending_jobs is refuse. "
            "Cancel it, change its nodes, or set the policy to report."
        ),
    )


def test_a_job_that_this_run_has_put_back_into_the_queue_refuses_nothing() -> None:
    """It was submitted for the very node that it ran on."""
    ours = job(7, state="PENDING", required_nodes=frozenset({"gpu-1"}))
    policy = leaving(pending_jobs="refuse", on_timeout="requeue")
    nodes = [node("gpu-1", "IDLE+DRAIN", RUN), node("gpu-2", "IDLE+DRAIN", RUN)]

    assert planned(policy, nodes, [ours]).stop
    assert planned(policy, nodes, [ours], treated={7: 2.0}).stop == ()


def test_nodes_that_are_renewed_are_there_again_for_reservations_and_pending_jobs() -> None:
    renewed = leaving("gpu-1", renewed=True, reservations="refuse")
    marker = Marker(OWNER, Operation.ROLLING_UPDATE, "1a2b3c")

    assert not planned(renewed, [node("gpu-1")], (), [reservation("maint", "gpu-1")], marker=marker).stop


def test_only_what_we_drained_for_the_operation_is_put_back() -> None:
    """Case 34, and cases 28 and 32: nothing is done to a node that is not drained by us."""
    nodes: dict[str, tuple[str, str | Marker]] = {
        "ours": ("IDLE+DRAIN", RUN),
        "down": ("DOWN+DRAIN", RUN),
        "of-a-stopping-pod": ("IDLE+DRAIN", Marker(OWNER, Operation.POD_STOP)),
        "an-admin's": ("IDLE+DRAIN", "bad fan"),
        "an-admin's-without-a-reason": ("IDLE+DRAIN", ""),
        "of-another-cluster": ("IDLE+DRAIN", Marker("dev", Operation.SCALE_DOWN, RUN.run)),
        "in-service-again": ("DOWN", RUN),
    }
    said = snapshot(node(name, state, reason) for name, (state, reason) in nodes.items())

    assert drained_for({Operation.SCALE_DOWN}, [*nodes, "unknown"], said, OWNER) == {"ours", "down"}
