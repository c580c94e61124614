"""Slurm's refusals as exceptions, by the exact words of its client programs (24.11 and 26.05)."""

import re
from collections.abc import Mapping

from soperator_pulumi.errors import (
    JobEndedError,
    JobNotRequeueableError,
    NodeExistsError,
    NodesBusyError,
    NodesNotDeletedError,
    NodeTableFullError,
    NotRunningError,
    SlurmError,
    UnknownJobError,
    UnknownNodeError,
)
from soperator_pulumi.slurm.hostlist import expand

_WORDS: Mapping[str, type[SlurmError]] = {
    "Invalid node name specified": UnknownNodeError,
    "Requested nodes are busy": NodesBusyError,
    "Node already exists in the node table": NodeExistsError,
    "Unable to add node, node table is full": NodeTableFullError,
    "Unable to contact slurm controller": NotRunningError,
    "Invalid job id specified": UnknownJobError,
    "Job/step already completing or completed": JobEndedError,
    "Requested operation is presently disabled": JobNotRequeueableError,
}

_NOT_DELETED = re.compile(r"failed to delete nodes (?P<left>\S+)")


def refusal(words: str) -> SlurmError:
    """Return the exception for what a client program of Slurm printed as it failed."""
    partial = _NOT_DELETED.search(words)
    if partial:
        return NodesNotDeletedError(words, expand(partial["left"]))
    return next((kind for known, kind in _WORDS.items() if known in words), SlurmError)(words)
