"""Results of single checks, and the errors that no check can judge."""

import errno
from dataclasses import dataclass
from enum import StrEnum


class FindingLevel(StrEnum):
    """Severity of a finding."""

    OK = "ok"
    """As needed."""
    NOTED = "noted"
    """Different from a local file system, without a consequence for sessions and jobs."""
    WARNING = "warning"
    """Some programs fail or are slow."""
    REFUSED = "refused"
    """A jail cannot live there."""


@dataclass(frozen=True)
class Seen:
    """Observation of one property of a volume."""

    found: str
    level: FindingLevel | None = FindingLevel.OK
    """None: the level that the property has if it is missing."""


def missing(found: str) -> Seen:
    """Return the observation of a property that is not as needed."""
    return Seen(found, None)


FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors of a full volume."""

PASSING = frozenset({errno.ENOMEM, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN, errno.EINTR})
"""Errors of a server or a network that may pass, and that say nothing about the volume."""
