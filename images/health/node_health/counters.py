"""Increase of counters in the last hour, from snapshots that the rounds keep."""

from collections.abc import Mapping
from typing import Any

WINDOW_SECONDS = 3600
_SPACING_SECONDS = 600


def increases(snapshots: list[Any], now: float, values: Mapping[str, float]) -> dict[str, float]:
    """Return the increase of each counter since the oldest snapshot of the last hour, and keep a snapshot.

    A counter that is lower than before was reset: all of it is new. The first round has no increase.

    Args:
        snapshots: Times and counters above 0, the oldest first; changed in place. Another boot's are in the future.
        now: Time in seconds.
        values: Counters by name.
    """
    snapshots[:] = [snapshot for snapshot in snapshots if 0 <= now - snapshot[0] <= WINDOW_SECONDS + _SPACING_SECONDS]
    counted = {name: value for name, value in values.items() if value}
    if not snapshots or now - snapshots[-1][0] >= _SPACING_SECONDS:
        snapshots.append([now, counted])
    before = snapshots[0][1]
    return {name: _increase(before.get(name, 0), value) for name, value in values.items()}


def _increase(before: float, now: float) -> float:
    return now - before if now >= before else now
