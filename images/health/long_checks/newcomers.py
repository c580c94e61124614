"""New nodes: drained from their registration on, until every single-node check has passed there.

The drain's reason lists the passed checks, and nothing else stores them: `health: not verified, passed
memory_bandwidth`. A failed check is appended, and all others are still due. A later node of the same name starts from
the beginning.
"""

import re
from collections.abc import Sequence

from node_health.state_machine import NodeState
from slurm_wire.drain_reasons import NOT_VERIFIED, SILENT

_REASON = re.compile(rf"{NOT_VERIFIED}(?:, passed (?P<passed>[a-z_ ]+?))?(?:, failed .+?)?{SILENT}")


def passed_by_newcomer(node: NodeState) -> list[str] | None:
    """Return the checks that a new node has passed; None for other nodes."""
    found = _REASON.fullmatch(node.reason) if node.drained else None
    return (found["passed"] or "").split() if found else None


def reason_after(passed: Sequence[str], first: Sequence[str]) -> str:
    """Return the drain reason of a new node that passed these checks; empty if it passed all."""
    return "" if {*first} <= {*passed} else _reason(passed)


def reason_of_failure(passed: Sequence[str], failed: str) -> str:
    """Return the drain reason of a new node that failed: the check, value and limit."""
    return f"{_reason(passed)}, failed {failed}"


def _reason(passed: Sequence[str]) -> str:
    return f"{NOT_VERIFIED}, passed {' '.join(passed)}" if passed else NOT_VERIFIED
