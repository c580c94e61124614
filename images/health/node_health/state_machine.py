"""Consecutive results, and the changes of the node that follow from them, as pure functions."""

from collections.abc import Mapping
from typing import NamedTuple

from node_health.check_settings import CheckSettings
from slurm_wire import drain_reasons

_STRICTER = ("auto", "verify", "never")
"""Ways to end a drain, the strictest last. A stricter check replaces the reason, which decides the way."""


class Tally(NamedTuple):
    """Consecutive rounds with the same result: one of both counts is 0."""

    failures: int = 0
    passes: int = 0

    def counted(self, *, passed: bool) -> "Tally":
        """Return the counts after one more round."""
        return Tally(0, self.passes + 1) if passed else Tally(self.failures + 1, 0)


class NodeState(NamedTuple):
    """State of the node in slurmctld."""

    state: str
    """Base state and flags: `IDLE+DRAIN+DYNAMIC_NORM`."""
    reason: str
    extra: str = ""
    """Text `Extra` of the node's record: findings that drain nothing."""

    @property
    def drained(self) -> bool:
        """Return True if slurmctld starts no further job on the node."""
        return "DRAIN" in self.state.split("+")

    @property
    def taken_out(self) -> bool:
        """Return True if an admin or slurmctld took the node out of service without a drain."""
        flags = self.state.rstrip("*$~#!%@^-").split("+")
        return "FAIL" in flags or flags[0].startswith("DOWN")


class NodeChange(NamedTuple):
    """Change of the node: a drain with a reason, the end of a health drain, or none."""

    drain: str = ""
    undrain: bool = False


def check_of(node: NodeState) -> str | None:
    """Return the check that has drained a node; None if no check has."""
    return drain_reasons.check_that_drains(node.reason) if node.drained else None


def failing(settings: Mapping[str, CheckSettings], tallies: Mapping[str, Tally]) -> list[str]:
    """Return the checks that have failed often enough, in the order of the settings."""
    return [name for name, check in settings.items() if tallies.get(name, Tally()).failures >= check.failures]


def findings(settings: Mapping[str, CheckSettings], tallies: Mapping[str, Tally]) -> str:
    """Return the text of the failing checks that drain nothing; empty if there are none."""
    return drain_reasons.findings_text(name for name in failing(settings, tallies) if not settings[name].drains)


def may_show(node: NodeState) -> bool:
    """Return True if the node's `Extra` is free or holds findings: texts of admins stay."""
    return not node.extra or drain_reasons.holds_findings(node.extra)


def decide(
    settings: Mapping[str, CheckSettings],
    tallies: Mapping[str, Tally],
    reasons: Mapping[str, str],
    node: NodeState,
) -> NodeChange:
    """Return the change of a node after a round.

    A drain of another origin stays, whatever the checks find. So does the drain of a check that is not in the settings.

    Args:
        settings: Checks of the node.
        tallies: Rounds in a row, by check.
        reasons: Reasons for a drain by failing check.
        node: State of the node just now.
    """
    wanted = [name for name in failing(settings, tallies) if settings[name].drains and name in reasons]
    if not node.drained:
        return NodeChange(drain=reasons[wanted[0]]) if wanted and not node.taken_out else NodeChange()
    ours = check_of(node)
    if ours is None or ours not in settings:
        return NodeChange()
    own_rank = _STRICTER.index(settings[ours].undrain)
    stricter = [name for name in wanted if _STRICTER.index(settings[name].undrain) > own_rank]
    if stricter:
        return NodeChange(drain=reasons[stricter[0]])
    if own_rank or not recovered(settings[ours], tallies.get(ours, Tally())):
        return NodeChange()
    return NodeChange(drain=reasons[wanted[0]]) if wanted else NodeChange(undrain=True)


def recovered(check: CheckSettings, tally: Tally) -> bool:
    """Return True for a check that has passed often enough to end its drain."""
    return tally.passes >= check.passes
