"""Slurm's refusals as exceptions, recognized by the exact words of its client programs (24.11 and 26.05)."""

import re
from collections.abc import Mapping

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
from soperator_pulumi.slurm.hostlist import expand
from soperator_pulumi.slurm.transport import Answer

_WORDS: Mapping[str, type[SoperatorError]] = {
    "Invalid node name specified": UnknownNodeError,
    "Unable to contact slurm controller": NotRunningError,
    "Invalid job id specified": UnknownJobError,
    "Job/step already completing or completed": JobEndedError,
    "Job is pending execution": JobEndedError,
    # `scontrol requeue` prints this for every job if slurmctld does not listen.
    "Unexpected message received": NotRunningError,
    # The request was sent: slurmctld may still carry it out.
    "Socket timed out on send/recv operation": TransportError,
    "Zero Bytes were transmitted or received": TransportError,
}

# Slurm names all remaining nodes here, and below only the reason for the last one.
_NOT_DELETED = re.compile(r"failed to delete nodes (?P<left>\S+)")

_OF_A_JOB = (
    re.compile(r"(?P<words>.+) for job (?P<job>\S+)"),  # scontrol requeue
    re.compile(r"(?P<job>\d+_\S+): (?P<words>.+)"),  # the same for a task of an array
    re.compile(r"scancel: error: Kill job error on job id (?P<job>\S+): (?P<words>.+)"),
)


def refusal(words: str) -> SoperatorError:
    """Return the exception for the output of a failed client program of Slurm.

    The exception is a `SlurmError`, or a `TransportError` if the effect is unknown.
    """
    if partial := _NOT_DELETED.search(words):
        try:
            return NodesNotDeletedError(words, expand(partial["left"]))
        except ValueError:  # the answer is cut off
            return SlurmError(words)
    return next((kind for known, kind in _WORDS.items() if known in words), SlurmError)(words)


def job_refusals(answer: Answer, job_ids: Mapping[str, int]) -> dict[int, str]:
    """Return why jobs were neither requeued nor cancelled, by job id; jobs that have ended are left out.

    Args:
        answer: Answer of `scontrol requeue` or `scancel`.
        job_ids: Ids of the jobs, by the names in the command.

    Raises:
        SlurmError: the whole command failed.
        TransportError: the effect is unknown.
    """
    refused = {}
    for line in answer.message.splitlines() if answer.returncode else ():
        found = next((match for form in _OF_A_JOB if (match := form.fullmatch(line.strip()))), None)
        error = refusal(line)
        if found is None or isinstance(error, (NotRunningError, TransportError)):
            raise error
        if not isinstance(error, (UnknownJobError, JobEndedError)):
            refused[_known(found["job"], job_ids, answer)] = found["words"]
    return refused


def _known(name: str, job_ids: Mapping[str, int], answer: Answer) -> int:
    try:
        return job_ids[name.replace("[", "").replace("]", "")]  # 26.05 writes 10_[9] where 24.11 writes 10_9
    except KeyError:
        raise SlurmError(answer.message) from None
