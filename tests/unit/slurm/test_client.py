"""What slurmctld answers, as values."""

import json
from collections.abc import Sequence

import pytest

from soperator_pulumi.errors import SlurmError, TransportError
from soperator_pulumi.slurm import Answer, SlurmClient


class Canned:
    """Answers each command with what the test says."""

    def __init__(self, **answers: Answer | Exception) -> None:
        self.answers = {command.replace("_", " "): answer for command, answer in answers.items()}

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout_seconds: int = 30) -> Answer:
        assert not stdin
        assert 0 < timeout_seconds <= 60
        answer = next(answer for start, answer in self.answers.items() if " ".join(command).startswith(start))
        if isinstance(answer, Exception):
            raise answer
        return answer


def ok(**content: object) -> Answer:
    return Answer(0, json.dumps(content), "")


def a_node(**fields: object) -> dict[str, object]:
    return {"name": "cpu-0", "state": ["IDLE", "DYNAMIC_NORM"], "active_features": ["cpu"], "reason": "", **fields}


def test_nodes_are_read_with_their_state_features_and_reason() -> None:
    answer = ok(nodes=[a_node(state=["IDLE", "DRAIN"], reason="disk", active_features=["cpu", "ib"])])
    (node,) = SlurmClient(Canned(scontrol_show_nodes=answer)).nodes()
    assert node.name == "cpu-0"
    assert node.state == {"IDLE", "DRAIN"}
    assert node.features == {"cpu", "ib"}
    assert node.reason == "disk"
    assert node.condition == "idle+drain (disk)"


def test_features_as_one_text_are_read_as_well() -> None:
    (node,) = SlurmClient(Canned(scontrol_show_nodes=ok(nodes=[a_node(active_features="cpu,ib")]))).nodes()
    assert node.features == {"cpu", "ib"}


def test_a_cluster_without_nodes_has_none() -> None:
    assert SlurmClient(Canned(scontrol_show_nodes=ok(nodes=[]))).nodes() == ()


def a_job(*state: str, **fields: object) -> dict[str, object]:
    return {"job_id": 7, "user_name": "alice", "partition": "main", "job_state": list(state), "nodes": "", **fields}


@pytest.mark.parametrize(
    "state", [("RUNNING",), ("PENDING",), ("SUSPENDED",), ("COMPLETED", "COMPLETING"), ("PENDING", "REQUEUED")]
)
def test_jobs_that_have_not_ended_are_jobs(state: Sequence[str]) -> None:
    (job,) = SlurmClient(Canned(squeue=ok(jobs=[a_job(*state)]))).jobs()
    assert job.job_id == 7


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"])
def test_jobs_that_slurmctld_still_remembers_are_none(state: str) -> None:
    assert SlurmClient(Canned(squeue=ok(jobs=[a_job(state)]))).jobs() == ()


def test_a_waiting_job_may_be_of_several_partitions() -> None:
    (job,) = SlurmClient(Canned(squeue=ok(jobs=[a_job("PENDING", partition="main,gpu")]))).jobs()
    assert job.partitions == {"main", "gpu"}
    assert str(job) == "7 (alice, waiting)"


def test_slurms_refusal_is_told_in_its_own_words() -> None:
    refused = Answer(1, "", "slurm_reconfigure error: Unable to contact slurm controller (connect failure)\n")
    with pytest.raises(SlurmError, match=r"^slurm_reconfigure error: Unable to contact"):
        SlurmClient(Canned(scontrol_reconfigure=refused)).reconfigure()


def test_a_silent_refusal_names_the_command() -> None:
    with pytest.raises(SlurmError, match="`scontrol reconfigure` ended with exit code 3"):
        SlurmClient(Canned(scontrol_reconfigure=Answer(3, "", ""))).reconfigure()


@pytest.mark.parametrize("text", ["", "Unable to contact", '{"jobs": []}', '{"nodes": 3}', "[]", '{"nodes": [{}]}'])
def test_an_answer_that_is_not_what_was_asked_for_is_no_list_of_nodes(text: str) -> None:
    with pytest.raises(SlurmError, match="not Slurm's JSON"):
        SlurmClient(Canned(scontrol_show_nodes=Answer(0, text, ""))).nodes()


@pytest.mark.parametrize(
    ("answer", "up"),
    [(Answer(0, "UP", ""), True), (Answer(1, "DOWN", ""), False), (TransportError("not reached"), False)],
)
def test_slurmctld_is_up_when_it_says_so(answer: Answer | Exception, *, up: bool) -> None:
    assert SlurmClient(Canned(scontrol_ping=answer)).is_up() is up
