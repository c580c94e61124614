"""New nodes: drained from their registration on, until each check of one node has passed there.

The reason of the drain has the checks that have passed, so nothing else remembers them: `health: not verified, passed
memory_bandwidth`. One that fails stands behind them, and all others are still due. A node of the same name that comes
later begins anew.
"""

import re
from collections.abc import Sequence

from node_health.state_machine import NodeState
from slurm_wire.drain_reasons import NOT_VERIFIED, SILENT

_REASON = re.compile(rf"{NOT_VERIFIED}(?:, passed (?P<passed>[a-z_ ]+?))?(?:, failed .+?)?{SILENT}")


def passed_by_newcomer(node: NodeState) -> list[str] | None:
    """Return the checks that a new node has passed; None for a node that is none."""
    found = _REASON.fullmatch(node.reason) if node.drained else None
    return (found["passed"] or "").split() if found else None


def reason_after(passed: Sequence[str], first: Sequence[str]) -> str:
    """Return the reason of a new node's drain after these checks; an empty text for one that has passed all."""
    return "" if {*first} <= {*passed} else _reason(passed)


def reason_of_failure(passed: Sequence[str], failed: str) -> str:
    """Return the reason of a new node's drain after a failure: the check, value and limit."""
    return f"{_reason(passed)}, failed {failed}"


def _reason(passed: Sequence[str]) -> str:
    return f"{NOT_VERIFIED}, passed {' '.join(passed)}" if passed else NOT_VERIFIED
