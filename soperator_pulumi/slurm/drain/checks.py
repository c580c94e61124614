"""When a node may lose its pod: slurmctld itself, just now, said that it is drained and that no job is on it.

Each rule looks for one thing that speaks against it. Whoever is not sure says no: an unknown node, an odd state and an
answer from before our own drain are no proof.
"""

from collections.abc import Callable
from dataclasses import dataclass

from soperator_pulumi.slurm.drain.reason import Marker, drain_of_ours
from soperator_pulumi.slurm.models import Job, Node


@dataclass(frozen=True)
class Evidence:
    """What is known of one node at one look."""

    name: str
    node: Node | None
    """What slurmctld says of it; None when it does not know it."""
    jobs: tuple[Job, ...]
    """The jobs that hold it: not ended, or still completing."""
    marker: Marker
    """Of this run."""
    never_started: bool = False
    """Whether slurmd has never run in its pod: no job can be there unless slurmctld knows the node."""


Rule = Callable[[Evidence], str | None]
"""Says why a node is not free, in words that follow its name; None when this rule has nothing against it."""


def _unknown(evidence: Evidence) -> str | None:
    return "slurmctld does not know it" if evidence.node is None and not evidence.never_started else None


def _not_drained(evidence: Evidence) -> str | None:
    return "not drained yet" if evidence.node is not None and not evidence.node.drained else None


def _unconfirmed(evidence: Evidence) -> str | None:
    """Refuse a drain that an earlier run set: the answer may be from before somebody lifted it."""
    held = None if evidence.node is None else drain_of_ours(evidence.node, evidence.marker.owner)
    if held is None or (held.operation, held.run) == (evidence.marker.operation, evidence.marker.run):
        return None
    return f"drained by an earlier {held.operation}"


def _busy(evidence: Evidence) -> str | None:
    """Refuse by the node's own state, which knows of jobs that the list of jobs may have missed."""
    if evidence.node is None or not evidence.node.busy_state:
        return None
    return f"Slurm says {'+'.join(sorted(evidence.node.busy_state)).lower()}"


def _holds_jobs(evidence: Evidence) -> str | None:
    """Refuse by the list of jobs: a node with only suspended jobs says IDLE."""
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
"""All that a node must pass, by name. A test takes one out and sees that something goes wrong."""


def why_not_free(evidence: Evidence) -> list[str]:
    """Return what speaks against taking the node's pod away; empty when it is free."""
    return [words for rule in RULES.values() if (words := rule(evidence)) is not None]
