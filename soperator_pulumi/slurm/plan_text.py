"""What a plan says to people: before it is made true, while it runs, and when it stops."""

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from types import MappingProxyType

from soperator_pulumi.slurm.leaving import Leaving
from soperator_pulumi.slurm.plan import Plan
from soperator_pulumi.slurm.states import Snapshot

_ALL: Mapping[str, str] = MappingProxyType({})


def preview(
    plan: Plan, leaving: Sequence[Leaving], snapshot: Snapshot, now: float, *, cluster: str, zone: tzinfo | None = None
) -> list[str]:
    """Return what will happen, in lines: which nodes leave, what is on them and until when.

    Args:
        plan: Of this moment, with nothing elapsed.
        leaving: What it is made for.
        snapshot: What it is made from.
        now: In seconds since 1970.
        cluster: The cluster's name.
        zone: Of the times that are shown; None for the machine's own.
    """
    raise NotImplementedError


def progress(
    plan: Plan,
    leaving: Sequence[Leaving],
    now: float,
    *,
    cluster: str,
    elapsed_seconds: float,
    zone: tzinfo | None = None,
) -> str:
    """Return how far it is, in one line: nodes free, jobs left, time left."""
    raise NotImplementedError


def aborted(
    plan: Plan,
    leaving: Sequence[Leaving],
    now: float,
    *,
    cluster: str,
    kept: Mapping[str, str] = _ALL,
    zone: tzinfo | None = None,
) -> str:
    """Return the error of a plan that stopped: why, the jobs with users and end times, and what to do.

    Args:
        plan: With `stop`.
        leaving: What it is made for.
        now: In seconds since 1970.
        cluster: The cluster's name.
        kept: The nodes that could not be put in service again, with why; without any, the text says that all are.
        zone: Of the times that are shown; None for the machine's own.
    """
    raise NotImplementedError
