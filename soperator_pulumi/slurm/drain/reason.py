"""Reason of a drain, which alone identifies it as this package's."""

import re
from dataclasses import dataclass
from enum import StrEnum

from soperator_pulumi.slurm.models import Node

_RUN = re.compile(r"[0-9a-f]{6}")
_APPENDED = r"(?: : Not responding)*"  # by slurmctld, to a drained node whose slurmd has been silent for SlurmdTimeout


class Operation(StrEnum):
    """Purpose of a drain. Drains with any other purpose, of an older or newer release, are left alone."""

    SCALE_DOWN = "scale-down"
    REMOVAL = "removal"
    REPLACEMENT = "replacement"
    DESTROY = "destroy"
    ROLLING_UPDATE = "rolling-update"
    POD_STOP = "pod-stop"
    """Set by a worker's own pod when it stops, whoever deleted it."""
    POD_START = "pod-start"
    """Set by a node when it registers and slurmctld does not know it yet."""

    @property
    def of_a_pod(self) -> bool:
        """Return True for a drain that a pod sets itself, outside of any run."""
        return self in {Operation.POD_STOP, Operation.POD_START}


SET_BY_RUNS = frozenset(
    {Operation.SCALE_DOWN, Operation.REMOVAL, Operation.REPLACEMENT, Operation.DESTROY, Operation.ROLLING_UPDATE}
)
"""Drains that a run undoes when it is stopped."""

OVER_WHEN_WANTED = frozenset({Operation.SCALE_DOWN, Operation.REMOVAL, Operation.DESTROY})
"""Drains that end when the spec wants their nodes again."""

OVER_WHEN_JOINED = frozenset(
    {
        Operation.REMOVAL,
        Operation.REPLACEMENT,
        Operation.DESTROY,
        Operation.ROLLING_UPDATE,
        Operation.POD_STOP,
        Operation.POD_START,
    }
)
"""Drains that end when their nodes have joined with new pods. A scale-down is not among them: its node may be one that
leaves as soon as its jobs have ended (`drain.wait: false`)."""

RECREATES_PODS = frozenset({Operation.REPLACEMENT, Operation.ROLLING_UPDATE})
"""Drains after which the same nodes exist again: jobs and reservations may rely on them."""


@dataclass(frozen=True)
class Marker:
    """Owner and purpose of a drain: `soperator-pulumi hpc: scale-down 1a2b3c (was: disk)`."""

    owner: str
    """Owner of the cluster: a drain with another owner is left alone."""
    operation: Operation
    run: str = ""
    """Six hexadecimal digits, different for every run, which mark the run's own drains; empty for a pod's drain."""
    before: str = ""
    """Reason that the node had before the drain."""

    def __post_init__(self) -> None:
        """Refuse a marker that could not be parsed again."""
        if self.operation.of_a_pod:
            if self.run or self.before:
                raise ValueError("the marker of a pod has neither a run nor an earlier reason")
        elif not _RUN.fullmatch(self.run):
            raise ValueError(f"run: got {self.run!r}, needs six hexadecimal digits")

    def __str__(self) -> str:
        """Return the reason as given to Slurm."""
        run = f" {self.run}" if self.run else ""
        before = f" (was: {self.before})" if self.before else ""
        return f"soperator-pulumi {self.owner}: {self.operation}{run}{before}"

    @classmethod
    def read(cls, reason: str, owner: str) -> "Marker | None":
        """Return the marker in a reason; None if the reason is not exactly that of a marker."""
        found = re.fullmatch(
            re.escape(f"soperator-pulumi {owner}: ")
            + rf"(?P<operation>[a-z-]+)(?: (?P<run>{_RUN.pattern}))?(?: \(was: (?P<before>.+)\))?{_APPENDED}",
            reason,
            re.DOTALL,
        )
        if not found:
            return None
        try:
            return cls(owner, Operation(found["operation"]), found["run"] or "", found["before"] or "")
        except ValueError:
            return None


def drain_of_ours(node: Node, owner: str) -> Marker | None:
    """Return the marker of this owner's drain that holds a node; None if there is no such drain.

    A reason alone proves nothing: Slurm 24.11 keeps it after the drain. No run of this package sets FAIL.
    """
    return Marker.read(node.reason, owner) if node.drained and "FAIL" not in node.state else None


def drained_by_another(node: Node, owner: str) -> bool:
    """Return True if someone else has drained a node: no run may undrain it or overwrite its reason."""
    return node.drained and drain_of_ours(node, owner) is None
