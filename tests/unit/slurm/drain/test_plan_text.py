"""Text for people: the preview, the line while it runs, and the error when it stops."""

from dataclasses import replace
from datetime import UTC
from typing import Any

from soperator_pulumi.slurm.drain.plan import plan
from soperator_pulumi.slurm.drain.plan_text import aborted, preview, progress
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.models import Job, Node, Snapshot
from tests.unit.slurm.drain.situation import EARLIER, HOUR, NOW, RUN, job, leaving, node, reservation, snapshot

TO_1420 = 80 * 60


def gpu(*names: int, **more: Any) -> DrainRequest:
    return leaving(
        ",".join(f"gpu-{name}" for name in names), staying=",".join(f"gpu-{index}" for index in range(names[0])), **more
    )


def previewed(node_sets: DrainRequest, said: Snapshot) -> list[str]:
    now = plan([node_sets], said, RUN, elapsed_seconds=0, now=NOW)
    return preview(now, [node_sets], said, NOW, cluster="hpc", zone=UTC)


def test_a_preview_says_which_nodes_leave_what_is_on_them_and_until_when() -> None:
    node_set = gpu(60, 61, 62, 63)
    said = snapshot(
        [
            *(node(f"gpu-{index}", "ALLOCATED") for index in range(57)),
            *(node(f"gpu-{number}") for number in (57, 58, 59, 60, 62, 63)),
            node("gpu-61", "MIXED"),
        ],
        [job(4711, "gpu-61", ends_in=TO_1420)],
        [reservation("maint-7", "gpu-62,gpu-63", ends_in=5 * HOUR)],
    )

    assert previewed(node_set, said) == [
        "hpc/gpu: 64 -> 60 nodes. Leaving: gpu-[60-63]",
        "  gpu-60       idle",
        "  gpu-61       job 4711 (alice, train.sh), ends by 14:20",
        "  gpu-[62-63]  reservation maint-7 until 18:00",
        "Idle nodes with lower ordinals: 3 (a StatefulSet can only give up the highest).",
        "Drains now, waits up to 2 h, then abort: all nodes are undrained.",
    ]


def test_a_preview_names_pending_jobs_whose_lists_of_nodes_cannot_be_read() -> None:
    asks = job(9, state="PENDING", user="bob", name="big", unreadable_nodes="gpu-[9-8]" + "," * 90)
    started = job(8, "gpu-1", unreadable_nodes="gpu-[1-0]")
    line = (
        "Pending jobs that may ask for these nodes, by lists that can't be read: job 9 (bob, big): "
        f"'gpu-[9-8]{',' * 31}'. See `scontrol show job`."
    )
    assert previewed(gpu(8), snapshot([node("gpu-8")], [started, asks]))[-1] == line
    assert line not in previewed(gpu(8), snapshot([node("gpu-8")], [started]))


def test_a_preview_says_of_each_node_what_it_is_in() -> None:
    """Cases 2, 5, 6, 7, 12 and 27."""
    asks = job(9, state="PENDING", user="bob", name="big", required_nodes=frozenset({"gpu-8"}))
    jobs = [
        job(1, "gpu-1", ends_in=30 * HOUR),
        job(2, "gpu-2", name="", user="bob"),
        job(3, "gpu-3", state="COMPLETING+CANCELLED"),
        job(4, "gpu-4", state="SUSPENDED"),
    ]
    nodes = [
        *(node(f"gpu-{number}", "MIXED") for number in (1, 2, 3, 4)),
        node("gpu-5", "IDLE+DRAIN", "bad fan"),
        node("gpu-6", "DOWN+NOT_RESPONDING", "Not responding"),
        node("gpu-7", "IDLE+DRAIN", EARLIER),
        node("gpu-8"),
    ]
    lines = previewed(gpu(*range(1, 11), never_started="gpu-10"), snapshot(nodes, jobs))

    assert previewed(gpu(8), snapshot(nodes, [asks]))[1] == "  gpu-8  pending job 9 (bob, big) asks for it"
    assert lines[1:11] == [
        "  gpu-1   job 1 (alice, train.sh), ends by 2026-11-25 19:00",
        "  gpu-2   job 2 (bob), no time limit",
        "  gpu-3   job 3 (alice, train.sh), completing",
        "  gpu-4   job 4 (alice, train.sh), suspended",
        "  gpu-5   drained by someone else (bad fan), stays drained",
        "  gpu-6   down+not_responding (Not responding)",
        "  gpu-7   drained by an earlier run",
        "  gpu-8   idle",
        "  gpu-9   unknown to slurmctld",
        "  gpu-10  slurmd has not started there, and its pod cannot start",
    ]


def test_a_job_on_many_nodes_is_reported_once() -> None:
    """Case 16."""
    nodes = [node(f"gpu-{number}", "ALLOCATED") for number in (1, 2, 3)]
    jobs = [job(1, "gpu-1,gpu-2,gpu-3", ends_in=HOUR), job(2, "gpu-3", ends_in=HOUR)]
    node_set = gpu(1, 2, 3)

    assert previewed(node_set, snapshot(nodes, jobs))[1:3] == [
        "  gpu-[1-2]  job 1 (alice, train.sh), ends by 14:00",
        "  gpu-3      job 1; job 2 (alice, train.sh), ends by 14:00",
    ]
    assert stopped(node_set, nodes, jobs).count("job 1 (alice") == 1


def test_a_thousand_busy_nodes_are_no_thousand_lines() -> None:
    node_set = gpu(*range(1000))
    nodes = [node(name, "ALLOCATED") for name in node_set.names]
    jobs = [job(ordinal, name, ends_in=HOUR) for ordinal, name in enumerate(node_set.names)]

    lines = previewed(node_set, snapshot(nodes, jobs))

    assert len(lines) < 30
    assert "  and 980 more nodes" in lines
    assert stopped(node_set, nodes, jobs).count("\n") < 30


def test_a_preview_says_what_follows_when_the_time_is_up() -> None:
    said = snapshot([node("gpu-1", "MIXED")], [job(7, "gpu-1", name="bash", requeueable=False)])
    texts = {
        ("abort", "abort"): ["Drains now, waits up to 1 h 30 min, then abort: all nodes are undrained."],
        ("cancel", "abort"): ["Drains now, waits up to 1 h 30 min, then cancel: the remaining jobs are cancelled."],
        ("wait", "abort"): [
            "Drains now, waits up to 1 h 30 min, then wait: up to 7 d in all, then all nodes are undrained."
        ],
        ("requeue", "cancel"): [
            "Drains now, waits up to 1 h 30 min, then requeue: the remaining jobs are requeued.",
            "Can't be requeued, so each of them then is cancelled: job 7 (alice, bash).",
        ],
        ("requeue", "abort"): [
            "Drains now, waits up to 1 h 30 min, then requeue: the remaining jobs are requeued.",
            "Can't be requeued, so each of them then aborts the run instead: job 7 (alice, bash).",
        ],
    }
    for (on_timeout, not_requeueable), last in texts.items():
        node_set = gpu(1, timeout="90m", on_timeout=on_timeout, not_requeueable=not_requeueable)
        assert previewed(node_set, said)[3:] == last
    assert previewed(gpu(1, wait=False), said)[3:] == [
        "Drains now and does not wait: free nodes leave now, the others in a later run, after their jobs have ended."
    ]


def test_a_preview_says_which_jobs_could_not_start_again_once_requeued() -> None:
    said = snapshot([node("gpu-1", "MIXED")], [job(7, "gpu-1", required_nodes=frozenset({"gpu-1"}))])
    line = "Can't start again once requeued, as they ask for leaving nodes: job 7 (alice, train.sh)."

    assert previewed(gpu(1, on_timeout="requeue"), said)[-1] == line
    assert line not in previewed(gpu(1, on_timeout="cancel"), said)
    assert line not in previewed(gpu(1, on_timeout="requeue", renewed=True), said)


def test_a_task_of_an_array_is_named_as_its_user_names_it() -> None:
    """The last task has the array's own id: to cancel that would end all of them."""
    nodes, jobs = [node("gpu-1", "MIXED")], [job(9, "gpu-1", whole="7_3")]

    assert "job 7_3 (alice, train.sh)" in stopped(gpu(1), nodes, jobs)
    assert "scancel 7_3)" in stopped(gpu(1), nodes, jobs)


def test_a_preview_of_renewed_nodes_says_so() -> None:
    assert previewed(gpu(1, 2, renewed=True), snapshot([node("gpu-1"), node("gpu-2")])) == [
        "hpc/gpu: 2 nodes to be recreated: gpu-[1-2]",
        "  gpu-[1-2]  idle",
        "Drains now, waits up to 2 h, then abort: all nodes are undrained.",
    ]


def test_a_preview_says_what_would_stop_it() -> None:
    said = snapshot([node("gpu-1")], (), [reservation("maint-7", "gpu-1")])

    assert previewed(gpu(1, reservations="refuse"), said)[-1].startswith("Stops here: gpu: reservation maint-7 names")


def running(elapsed_seconds: float, **policy: Any) -> str:
    """Return the line while two of four nodes are not free."""
    node_set = gpu(60, 61, 62, 63, **policy)
    said = snapshot(
        [
            *(node(f"gpu-{number}", "IDLE+DRAIN", RUN) for number in (60, 63)),
            *(node(f"gpu-{number}", "MIXED+DRAIN", RUN) for number in (61, 62)),
        ],
        [job(4711, "gpu-61", ends_in=TO_1420)],
    )
    now = plan([node_set], said, RUN, elapsed_seconds=elapsed_seconds, now=NOW)
    return progress(now, [node_set], NOW, cluster="hpc", elapsed_seconds=elapsed_seconds, zone=UTC)


def test_while_it_runs_a_line_says_what_is_left_and_how_long_it_may_take() -> None:
    waited = 48 * 60

    assert running(waited) == (
        "hpc/gpu: 2 of 4 nodes free; gpu-61 job 4711 (alice, train.sh) ends by 14:20; "
        "gpu-62 Slurm reports mixed; 1 h 12 min left"
    )
    assert running(waited, wait=False).endswith("Slurm reports mixed")
    assert running(3 * HOUR, on_timeout="wait").endswith("; 6 d 21 h left")
    assert running(2 * HOUR + 60, on_timeout="cancel").endswith("; the time is up (cancel): 4 min left")


def test_of_many_jobs_the_line_names_those_that_end_last() -> None:
    node_set = gpu(1)
    jobs = [job(index, "gpu-1", ends_in=index * 60) for index in range(1, 10)]
    now = plan([node_set], snapshot([node("gpu-1", "MIXED+DRAIN", RUN)], jobs), RUN, elapsed_seconds=0, now=NOW)

    line = progress(now, [node_set], NOW, cluster="hpc", elapsed_seconds=0, zone=UTC)

    assert line.startswith("hpc/gpu: 0 of 1 node free; gpu-1 job 9 (alice, train.sh) ends by 13:09, gpu-1 job 8")
    assert " and 6 more; 2 h left" in line


def stopped(
    node_set: DrainRequest,
    nodes: list[Node],
    jobs: list[Job],
    *,
    kept: dict[str, str] | None = None,
    elapsed: float = HOUR,
) -> str:
    """Return the error after the time is up and all nodes have been drained."""
    drained = [replace(item, state=item.state | {"DRAIN"}, reason=str(RUN)) for item in nodes]
    late = elapsed + node_set.policy.timeout.total_seconds()
    over = plan([node_set], snapshot(drained, jobs), RUN, elapsed_seconds=late, now=NOW)
    return aborted(over, [node_set], NOW, cluster="hpc", kept=kept or {}, zone=UTC)


def test_the_error_names_jobs_users_and_end_times_and_what_to_do() -> None:
    """Case 4."""
    nodes = [node("gpu-60"), node("gpu-61", "MIXED"), node("gpu-62", "MIXED")]
    jobs = [job(4711, "gpu-61", ends_in=TO_1420), job(4712, "gpu-62", user="bob", name="bash", requeueable=False)]

    assert stopped(gpu(60, 61, 62), nodes, jobs).splitlines() == [
        "hpc: no node is removed.",
        "  gpu: 2 of 3 nodes are not free after 2 h (drain.timeout)",
        "    gpu-61  job 4711 (alice, train.sh), ends by 14:20",
        "    gpu-62  job 4712 (bob, bash), no time limit",
        (
            "  Wait for the jobs and run again; or cancel them (scancel 4711 4712) or requeue them "
            "(scontrol requeue 4711,4712); or raise the node set's drain.timeout."
        ),
        (
            "  For one run only: SOPERATOR_DRAIN='hpc: {timeout: 1d}' before the command, "
            "or SOPERATOR_DRAIN='hpc: {on_timeout: requeue}' ({on_timeout: cancel} cancels the jobs)."
        ),
        "  All nodes drained for this change are undrained.",
    ]


def test_the_error_says_what_can_be_done_about_a_job_that_does_not_end() -> None:
    """Case 6."""
    text = stopped(gpu(1), [node("gpu-1", "COMPLETING")], [job(3, "gpu-1", state="COMPLETING+CANCELLED")])

    assert "Still completing: job 3 (alice, train.sh). Their processes or the epilog do not end: look at gpu-1" in text
    assert "scontrol update nodename=gpu-1 state=down" in text
    assert "scancel" not in text


def test_the_error_says_what_can_be_done_about_a_node_that_slurm_has_lost() -> None:
    """Case 27."""
    text = stopped(gpu(1), [], [])

    assert "    gpu-1  unknown to slurmctld" in text
    assert "delete its pod if nothing runs in it" in text


def test_the_error_names_what_could_not_be_put_back() -> None:
    text = stopped(gpu(1), [node("gpu-1", "MIXED")], [job(3, "gpu-1")], kept={"gpu-1": "slurmctld does not answer"})

    assert "All nodes drained for this change are undrained" not in text
    assert text.endswith(
        "  Still drained: gpu-1 (slurmctld does not answer). Run again, or: "
        "scontrol update nodename=gpu-1 state=undrain reason=none"
    )


def test_a_preview_says_which_jobs_another_node_set_protects_as_well() -> None:
    node_set = gpu(1, on_timeout="cancel")
    said = snapshot([node("gpu-1", "ALLOCATED"), node("cpu-0", "ALLOCATED")], [job(7, "gpu-1,cpu-0")])

    assert previewed(node_set, said)[-2:] == [
        "Drains now, waits up to 2 h, then cancel: the remaining jobs are cancelled.",
        "Also on nodes of cpu, whose drain protects them as well (abort after 2 h): job 7 (alice, train.sh).",
    ]
