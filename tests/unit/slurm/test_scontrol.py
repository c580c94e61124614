"""Commands of the client, and values of slurmctld's answers."""

import json
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import pytest

from soperator_pulumi.errors import (
    NodesNotDeletedError,
    NotRunningError,
    SlurmError,
    TransportError,
    UnknownNodeError,
)
from soperator_pulumi.slurm import parsing
from soperator_pulumi.slurm.client import SlurmClient
from soperator_pulumi.slurm.hostlist import expand
from soperator_pulumi.slurm.scontrol import ScontrolClient
from soperator_pulumi.slurm.transport import Answer

DONE = Answer(0, "", "")


class Canned:
    """Answers each command with what the test says, and writes down what was asked."""

    def __init__(self, **answers: Answer | Exception) -> None:
        self.answers = {command.replace("_", " "): answer for command, answer in answers.items()}
        self.asked: list[str] = []

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout_seconds: int = 30) -> Answer:
        assert not stdin
        assert 0 < timeout_seconds <= 60
        self.asked.append(" ".join(command))
        answer = next(answer for start, answer in self.answers.items() if " ".join(command).startswith(start))
        if isinstance(answer, Exception):
            raise answer
        return answer


def ok(**content: object) -> Answer:
    return Answer(0, json.dumps(content), "")


def patient(transport: Canned) -> SlurmClient:
    return ScontrolClient(transport, pause=lambda _: None)


def a_node(**fields: object) -> dict[str, object]:
    return {"name": "cpu-0", "state": ["IDLE", "DYNAMIC_NORM"], "active_features": ["cpu"], "reason": "", **fields}


def test_nodes_are_read_with_their_state_features_and_reason() -> None:
    answer = ok(nodes=[a_node(state=["IDLE", "DRAIN"], reason="disk", active_features=["cpu", "ib"])])
    (node,) = ScontrolClient(Canned(scontrol_show_nodes=answer)).nodes()
    assert node.name == "cpu-0"
    assert node.state == {"IDLE", "DRAIN"}
    assert node.features == {"cpu", "ib"}
    assert node.reason == "disk"
    assert node.condition == "idle+drain (disk)"


def test_features_as_one_text_are_read_as_well() -> None:
    (node,) = ScontrolClient(Canned(scontrol_show_nodes=ok(nodes=[a_node(active_features="cpu,ib")]))).nodes()
    assert node.features == {"cpu", "ib"}


def test_a_cluster_without_nodes_has_none() -> None:
    assert ScontrolClient(Canned(scontrol_show_nodes=ok(nodes=[]))).nodes() == ()


def a_job(*state: str, **fields: object) -> dict[str, object]:
    return {"job_id": 7, "user_name": "alice", "partition": "main", "job_state": list(state), "nodes": "", **fields}


@pytest.mark.parametrize(
    "state", [("RUNNING",), ("PENDING",), ("SUSPENDED",), ("COMPLETED", "COMPLETING"), ("PENDING", "REQUEUED")]
)
def test_jobs_that_have_not_ended_are_jobs(state: Sequence[str]) -> None:
    (job,) = ScontrolClient(Canned(squeue=ok(jobs=[a_job(*state)]))).jobs()
    assert job.job_id == 7


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"])
def test_jobs_that_slurmctld_still_remembers_are_none(state: str) -> None:
    assert ScontrolClient(Canned(squeue=ok(jobs=[a_job(state)]))).jobs() == ()


def test_a_waiting_job_may_be_of_several_partitions() -> None:
    (job,) = ScontrolClient(Canned(squeue=ok(jobs=[a_job("PENDING", partition="main,gpu")]))).jobs()
    assert job.partitions == {"main", "gpu"}
    assert str(job) == "7 (alice, waiting)"


def test_slurms_refusal_is_reported_in_its_own_words() -> None:
    refused = Answer(1, "", "slurm_reconfigure error: Unable to contact slurm controller (connect failure)\n")
    with pytest.raises(SlurmError, match=r"^slurm_reconfigure error: Unable to contact"):
        ScontrolClient(Canned(scontrol_reconfigure=refused)).reconfigure()


def test_a_silent_refusal_names_the_command() -> None:
    with pytest.raises(SlurmError, match="`scontrol reconfigure` ended with exit code 3"):
        ScontrolClient(Canned(scontrol_reconfigure=Answer(3, "", ""))).reconfigure()


@pytest.mark.parametrize("text", ["", "Unable to contact", '{"jobs": []}', '{"nodes": 3}', "[]", '{"nodes": [{}]}'])
def test_an_answer_that_is_not_what_was_asked_for_is_no_list_of_nodes(text: str) -> None:
    with pytest.raises(SlurmError, match="not Slurm's JSON"):
        ScontrolClient(Canned(scontrol_show_nodes=Answer(0, text, ""))).nodes()


@pytest.mark.parametrize(
    ("answer", "up"),
    [(Answer(0, "UP", ""), True), (Answer(1, "DOWN", ""), False), (TransportError("not reached"), False)],
)
def test_slurmctld_is_up_when_it_says_so(answer: Answer | Exception, *, up: bool) -> None:
    assert ScontrolClient(Canned(scontrol_ping=answer)).is_up() is up


@pytest.mark.parametrize(
    ("act", "command"),
    [
        (
            lambda slurm: slurm.drain(["gpu-10", "gpu-9"], "disk full"),
            "nodename=gpu-[9-10] state=drain reason=disk full",
        ),
        (lambda slurm: slurm.undrain(["gpu-1"]), "nodename=gpu-1 state=undrain reason=none"),
        (lambda slurm: slurm.undrain({"gpu-1", "gpu-0"}, "disk"), "nodename=gpu-[0-1] state=undrain reason=disk"),
    ],
)
def test_nodes_are_changed_by_one_call(act: Callable[[SlurmClient], None], command: str) -> None:
    slurmctld = Canned(scontrol_update=DONE)
    act(ScontrolClient(slurmctld))
    assert slurmctld.asked == [f"scontrol update {command}"]


def test_records_are_deleted_by_one_call() -> None:
    slurmctld = Canned(scontrol_delete=DONE)
    ScontrolClient(slurmctld).delete_nodes([f"gpu-{number}" for number in range(1000)])
    assert slurmctld.asked == ["scontrol delete nodename=gpu-[0-999]"]


def test_nothing_is_sent_for_no_nodes_and_no_jobs() -> None:
    slurmctld = Canned()
    slurm = ScontrolClient(slurmctld)
    slurm.drain([], "disk")
    slurm.undrain([])
    slurm.delete_nodes([])
    assert slurm.requeue([]) == slurm.cancel([]) == {}
    assert slurmctld.asked == []


def test_a_list_too_long_for_one_call_is_sent_in_parts() -> None:
    names = [f"gpu-{number}" for number in range(0, 8000, 3)]
    slurmctld = Canned(scontrol_update=DONE)
    ScontrolClient(slurmctld).drain(names, "disk")
    lists = [asked.split("nodename=")[1].split(" ")[0] for asked in slurmctld.asked]
    assert len(lists) > 1
    assert all(len(text) <= 4000 for text in lists)
    assert [name for text in lists for name in expand(text)] == names


def test_a_drain_of_an_unknown_node_says_so() -> None:
    refused = Answer(1, "", "slurm_update error: Invalid node name specified\n")
    with pytest.raises(UnknownNodeError):
        ScontrolClient(Canned(scontrol_update=refused)).drain(["gpu-0"], "disk")


def test_a_list_deleted_in_part_says_who_is_left() -> None:
    words = "scontrol: error: failed to delete nodes gpu-1\ndelete_node nodename=gpu-[0-1]: Requested nodes are busy"
    with pytest.raises(NodesNotDeletedError) as raised:
        ScontrolClient(Canned(scontrol_delete=Answer(1, "", words))).delete_nodes(["gpu-0", "gpu-1"])
    assert raised.value.left == {"gpu-1"}


def test_a_list_too_long_for_one_call_is_deleted_whole_though_some_of_it_is_refused() -> None:
    names = [f"gpu-{number}" for number in range(0, 8000, 3)]

    class Busy(Canned):
        def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout_seconds: int = 30) -> Answer:
            super().run(command, stdin=stdin, timeout_seconds=timeout_seconds)
            first = expand(command[2].removeprefix("nodename="))[0]
            return Answer(1, "", f"scontrol: error: failed to delete nodes {first}")

    slurmctld = Busy(scontrol_delete=DONE)
    with pytest.raises(NodesNotDeletedError) as raised:
        ScontrolClient(slurmctld).delete_nodes(names)
    assert len(raised.value.left) == len(slurmctld.asked) > 1


@pytest.mark.parametrize(
    "act",
    [
        lambda slurm: slurm.drain(["gpu-0"], "disk"),
        lambda slurm: slurm.undrain(["gpu-0"]),
        lambda slurm: slurm.delete_nodes(["gpu-0"]),
    ],
)
@pytest.mark.parametrize("lost", [TransportError("broke"), Answer(124, "", ""), Answer(137, "", "")])
def test_a_change_whose_answer_is_lost_is_not_made_again(
    act: Callable[[SlurmClient], None], lost: Answer | Exception
) -> None:
    slurmctld = Canned(scontrol_update=lost, scontrol_delete=lost)
    with pytest.raises(TransportError):
        act(patient(slurmctld))
    assert len(slurmctld.asked) == 1


@pytest.mark.parametrize("lost", [TransportError("broke"), Answer(1, "", "Socket timed out on send/recv operation")])
def test_reading_is_attempted_three_times(lost: Answer | Exception) -> None:
    slurmctld = Canned(scontrol_show_nodes=lost)
    with pytest.raises(TransportError):
        patient(slurmctld).nodes()
    assert len(slurmctld.asked) == 3


def test_reading_from_a_slurmctld_that_is_down_is_attempted_once() -> None:
    down = Answer(1, "", "slurm_load_node error: Unable to contact slurm controller (connect failure)")
    slurmctld = Canned(scontrol_show_nodes=down)
    with pytest.raises(NotRunningError):
        patient(slurmctld).nodes()
    assert len(slurmctld.asked) == 1


def a_cluster(*jobs: dict[str, object], **more: Answer | Exception) -> Canned:
    update = {"set": True, "infinite": False, "number": 1795282154}
    return Canned(
        scontrol_show_nodes=ok(nodes=[a_node()], last_update=update),
        scontrol_show_reservations=ok(reservations=[]),
        squeue=ok(jobs=[*jobs], last_update=update),
        **more,
    )


def test_a_snapshot_asks_for_the_nodes_first_and_for_the_jobs_after_them() -> None:
    slurmctld = a_cluster(a_job("RUNNING", nodes="cpu-0"))
    snapshot = ScontrolClient(slurmctld).snapshot()
    assert slurmctld.asked == [
        "scontrol show nodes --json",
        "squeue --json --all",
        "scontrol show reservations --json",
    ]
    assert [*snapshot.nodes] == ["cpu-0"]
    assert [job.job_id for job in snapshot.jobs] == [7]
    assert (snapshot.node_table_time, snapshot.job_table_time) == (1795282154, 1795282154)


def test_a_snapshot_parses_every_answer_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of 4,096 nodes with a job on every one have 33 MB."""
    parsed: list[str] = []

    def loads(text: str) -> object:
        parsed.append(text)
        return json.loads(text)

    monkeypatch.setattr(parsing, "json", SimpleNamespace(loads=loads))

    ScontrolClient(a_cluster(a_job("RUNNING", nodes="cpu-0"))).snapshot()

    assert len(parsed) == 3


def test_reservations_are_asked_for_when_they_are_wanted() -> None:
    slurmctld = a_cluster()
    ScontrolClient(slurmctld).snapshot(reservations=False)
    assert len(slurmctld.asked) == 2


def a_task(number: int, of: int, raw: int) -> dict[str, object]:
    task = {"set": True, "infinite": False, "number": number}
    return a_job("RUNNING", nodes="cpu-0", job_id=raw, array_job_id={**task, "number": of}, array_task_id=task)


def test_the_last_task_of_an_array_is_requeued_and_not_the_array_whose_number_it_has() -> None:
    slurmctld = a_cluster(a_task(3, of=12, raw=12), scontrol_requeue=DONE)
    assert ScontrolClient(slurmctld).requeue([12]) == {}
    assert slurmctld.asked[-1] == "scontrol requeue Incomplete 12_3"


def test_jobs_are_cancelled_by_one_call() -> None:
    jobs = [a_job("RUNNING", nodes="cpu-0", job_id=number) for number in (4, 5)]
    slurmctld = a_cluster(*jobs, a_task(2, of=9, raw=8), scancel=DONE)
    assert ScontrolClient(slurmctld).cancel([4, 5, 8]) == {}
    assert slurmctld.asked[-1] == "scancel 4 5 9_2"


def test_more_jobs_than_fit_one_call_are_cancelled_in_parts() -> None:
    jobs = [a_job("RUNNING", nodes="cpu-0", job_id=number) for number in range(1000, 2000)]
    slurmctld = a_cluster(*jobs, scancel=DONE)
    ScontrolClient(slurmctld).cancel(range(1000, 2000))
    parts = [asked.split()[1:] for asked in slurmctld.asked if asked.startswith("scancel")]
    assert len(parts) > 1
    assert [int(text) for part in parts for text in part] == [*range(1000, 2000)]


@pytest.mark.parametrize("state", [("COMPLETED",), ("PENDING",)])
def test_a_job_that_holds_no_node_any_more_is_left_alone(state: Sequence[str]) -> None:
    slurmctld = a_cluster(a_job(*state))
    assert ScontrolClient(slurmctld).cancel([7, 8]) == {}
    assert slurmctld.asked == ["squeue --json --all"]


def test_what_slurm_refuses_of_a_job_is_returned() -> None:
    refused = Answer(1, "", "Only batch jobs are accepted or processed for job 7\n")
    slurmctld = a_cluster(a_job("RUNNING", nodes="cpu-0"), scontrol_requeue=refused)
    assert ScontrolClient(slurmctld).requeue([7]) == {7: "Only batch jobs are accepted or processed"}
