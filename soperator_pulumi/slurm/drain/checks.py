"""Checks before a node may lose its pod: slurmctld has just reported it drained and without a job.

Each rule checks one condition. Doubt counts as not free: an unknown node, an odd state and an answer from before our
own drain are no proof.
"""

from collections.abc import Callable
from dataclasses import dataclass

from soperator_pulumi.slurm.drain.reason import Marker, drain_of_ours
from soperator_pulumi.slurm.models import Job, Node


@dataclass(frozen=True)
class Evidence:
    """Knowledge of one node at one look."""

    name: str
    node: Node | None
    """Record of slurmctld; None where it has none."""
    jobs: tuple[Job, ...]
    """Jobs that hold the node: not ended, or completing."""
    marker: Marker
    """Marker of this run."""
    never_started: bool = False
    """True where no slurmd is and the pod cannot start: then no job is there, unless slurmctld knows the node."""
    starting: bool = False
    """True where the pod is starting: slurmd registers in a moment, and may get a job at once."""


Rule = Callable[[Evidence], str | None]
"""Returns the reason why a node is not free, to stand after its name; None where the rule has none."""


def _unknown(evidence: Evidence) -> str | None:
    if evidence.node is not None or evidence.never_started:
        return None
    return "slurmd is starting there, its registration is awaited" if evidence.starting else "unknown to slurmctld"


def _not_drained(evidence: Evidence) -> str | None:
    return "not drained yet" if evidence.node is not None and not evidence.node.drained else None


def _unconfirmed(evidence: Evidence) -> str | None:
    """Refuse a drain of an earlier run: the answer may be from before somebody undrained the node."""
    held = None if evidence.node is None else drain_of_ours(evidence.node, evidence.marker.owner)
    if held is None or (held.operation, held.run) == (evidence.marker.operation, evidence.marker.run):
        return None
    return f"drained by an earlier {held.operation}"


def _busy(evidence: Evidence) -> str | None:
    """Refuse by the node's own state, which shows jobs that the list of jobs may have missed."""
    if evidence.node is None or not evidence.node.busy_state:
        return None
    return f"Slurm reports {'+'.join(sorted(evidence.node.busy_state)).lower()}"


def _holds_jobs(evidence: Evidence) -> str | None:
    """Refuse by the list of jobs: a node with only suspended jobs is IDLE."""
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
"""All checks that a node must pass, by name. A test removes one at a time and sees an invariant broken."""


def why_not_free(evidence: Evidence) -> list[str]:
    """Return the reasons against the removal of the node's pod; empty when the node is free."""
    return [reason for rule in RULES.values() if (reason := rule(evidence)) is not None]
