"""Checks before a node may lose its pod: slurmctld has just reported it drained and without jobs.

Every rule checks one condition. Doubt counts as not free: an unknown node, an unexpected state, and an answer from
before this run's drain prove nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass

from soperator_pulumi.slurm.drain.reason import Marker, drain_of_ours
from soperator_pulumi.slurm.models import Job, Node


@dataclass(frozen=True)
class Evidence:
    """Facts about one node at one time."""

    name: str
    node: Node | None
    """Record of slurmctld; None if there is none."""
    jobs: tuple[Job, ...]
    """Jobs that hold the node: not ended, or completing."""
    marker: Marker
    """Marker of this run."""
    never_started: bool = False
    """True if slurmd does not run and the pod cannot start: then no job is there, unless slurmctld knows the node."""
    starting: bool = False
    """True if the pod is starting: slurmd is about to register, and may get a job at once."""


Rule = Callable[[Evidence], str | None]
"""Returns why a node is not free, worded to follow its name; None if the rule finds no reason."""


def _unknown(evidence: Evidence) -> str | None:
    if evidence.node is not None or evidence.never_started:
        return None
    return "slurmd is starting there, waiting for its registration" if evidence.starting else "unknown to slurmctld"


def _not_drained(evidence: Evidence) -> str | None:
    return "not drained yet" if evidence.node is not None and not evidence.node.drained else None


def _unconfirmed(evidence: Evidence) -> str | None:
    """Refuse a drain of an earlier run: the answer may be older than an undrain of the node."""
    held = None if evidence.node is None else drain_of_ours(evidence.node, evidence.marker.owner)
    if held is None or (held.operation, held.run) == (evidence.marker.operation, evidence.marker.run):
        return None
    return f"drained by an earlier {held.operation}"


def _busy(evidence: Evidence) -> str | None:
    """Refuse a node whose state shows jobs that the list of jobs may have missed."""
    if evidence.node is None or not evidence.node.busy_state:
        return None
    return f"Slurm reports {'+'.join(sorted(evidence.node.busy_state)).lower()}"


def _holds_jobs(evidence: Evidence) -> str | None:
    """Refuse a node that holds jobs according to the list of jobs: with only suspended jobs, its state is IDLE."""
    if not evidence.jobs:
        return None
    return f"held by job{'s' if len(evidence.jobs) > 1 else ''} {', '.join(job.reference for job in evidence.jobs)}"


RULES: dict[str, Rule] = {
    "known": _unknown,
    "drained": _not_drained,
    "confirmed": _unconfirmed,
    "idle": _busy,
    "no job": _holds_jobs,
}
"""All checks that a node must pass, by name. Tests remove them one by one, and see an invariant broken."""


def why_not_free(evidence: Evidence) -> list[str]:
    """Return the reasons against removing the node's pod; empty if the node is free."""
    return [reason for rule in RULES.values() if (reason := rule(evidence)) is not None]
