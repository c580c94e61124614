"""Output of Slurm's client programs as they fail, word for word from 24.11.5 and 26.05.5, as exceptions."""

import pytest

from soperator_pulumi.errors import (
    JobEndedError,
    NodesNotDeletedError,
    NotRunningError,
    SlurmError,
    SoperatorError,
    TransportError,
    UnknownJobError,
    UnknownNodeError,
)
from soperator_pulumi.slurm.refusals import job_refusals, refusal
from soperator_pulumi.slurm.transport import Answer

IDS = {"6": 6, "8": 8, "10_9": 19, "10_2": 12}


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("slurm_update error: Invalid node name specified", UnknownNodeError),
        ("slurm_load_node error: Unable to contact slurm controller (connect failure)", NotRunningError),
        ("slurm_reconfigure error:Unable to contact slurm controller (connect failure)", NotRunningError),
        ("slurm_load_jobs error: Socket timed out on send/recv operation", TransportError),
        ("slurm_load_jobs error: Zero Bytes were transmitted or received", TransportError),
        (
            (
                "scontrol: error: Node already exists in the node table (c-0)\n"
                "Error creating node(s): Node already exists in the node table"
            ),
            SlurmError,
        ),
        (
            (
                "scontrol: error: Unable to add node, node table is full (d-1094)\n"
                "Error creating node(s): Unable to add node, node table is full"
            ),
            SlurmError,
        ),
        ("delete_node nodename=n: Requested nodes are busy", SlurmError),
        ("Invalid job id specified for job 999999", UnknownJobError),
        ("Job is pending execution for job 11", JobEndedError),
        ("delete_node nodename=cpu-0: Invalid user id", SlurmError),
        ("You must specify a reason when DOWNING or DRAINING a node. Request denied", SlurmError),
    ],
)
def test_known_words_are_an_exception_of_their_own(words: str, kind: type[SoperatorError]) -> None:
    error = refusal(words)
    assert type(error) is kind
    assert str(error) == words


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (
            (
                "scontrol: error: failed to delete nodes cpu-0\n"
                "delete_node nodename=cpu-0,e-[1-2]: Requested nodes are busy"
            ),
            {"cpu-0"},
        ),
        (
            (
                "scontrol: error: failed to delete nodes cpu-[0-1],nosuch\n"
                "delete_node nodename=nosuch,cpu-[0-1]: Invalid node name specified"
            ),
            {"cpu-0", "cpu-1", "nosuch"},
        ),
    ],
)
def test_of_a_list_that_was_deleted_in_part_those_that_are_left_are_known(words: str, left: set[str]) -> None:
    error = refusal(words)
    assert isinstance(error, NodesNotDeletedError)
    assert error.left == left


def test_a_list_that_did_not_come_whole_says_nothing_of_who_is_left() -> None:
    assert type(refusal("scontrol: error: failed to delete nodes cpu-[0-")) is SlurmError


def test_each_job_that_is_refused_is_reported_with_slurms_words() -> None:
    words = "Requested operation is presently disabled for job 8\n10_[9]: Requested operation is presently disabled\n"
    assert job_refusals(Answer(1, "", words), IDS) == {
        8: "Requested operation is presently disabled",
        19: "Requested operation is presently disabled",
    }


def test_what_scancel_refuses_is_reported_as_well() -> None:
    words = "scancel: error: Kill job error on job id 10_2: Access/permission denied"
    assert job_refusals(Answer(210, "", words), IDS) == {12: "Access/permission denied"}


def test_jobs_that_have_ended_in_between_are_no_refusals() -> None:
    words = """Invalid job id specified for job 6
10_9: Invalid job id specified
scancel: error: Kill job error on job id 8: Job/step already completing or completed"""
    assert job_refusals(Answer(1, "", words), IDS) == {}


@pytest.mark.parametrize(
    "words",
    [
        "Unexpected message received for job 6",
        "scancel: error: Kill job error on job id 6: Unable to contact slurm controller (connect failure)",
    ],
)
def test_no_one_listening_is_no_refusal_of_a_job(words: str) -> None:
    with pytest.raises(NotRunningError):
        job_refusals(Answer(1, "", words), IDS)


@pytest.mark.parametrize(
    "words", ["scancel: error: Invalid job id abc", "Requested operation disabled for job 77", "?"]
)
def test_what_is_not_about_one_of_the_jobs_is_an_error_of_the_command(words: str) -> None:
    with pytest.raises(SlurmError):
        job_refusals(Answer(1, "", words), IDS)


def test_a_command_that_succeeded_refused_nothing() -> None:
    assert job_refusals(Answer(0, "", "slurm: warning: a new version is out"), IDS) == {}
