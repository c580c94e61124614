"""Comparison with earlier rounds: best values of a node's parts, increases of counters, and ports of an earlier pod."""

import re
from collections.abc import Mapping, MutableMapping
from typing import Any

from node_health.patterns import pattern
from slurm_wire.drain_reasons import REPLACE

_FEWEST_ALIKE = 4
"""Number of similar parts from which the majority counts: of two or three, any may be in an unusual slot."""

WINDOW_SECONDS = 3600
_SPACING_SECONDS = 600

_END = rf"(?: and \d+ more)?(?: {re.escape(REPLACE)})?, allowed "
_LOST = pattern(rf"health network_port_lost: down: (.*?){_END}")
_SLOWER = pattern(rf"health network_rate: lower than before: (.*?){_END}")
_RATE = pattern(r"(\S+) ([\d.e+]+) Gb/s")

_LEAST_GAIN_GBPS = 1.0
"""Gain over the rate in the reason from which a port no longer counts as slow. No two link rates are closer."""


def keep(best: MutableMapping[str, float], now: Mapping[str, float]) -> dict[str, float]:
    """Return the best values of earlier rounds, and store the better of old and new ones.

    The maximum that a part itself reports is no measure: a slot may have half of a card's lanes for good.

    Args:
        best: Best values so far, changed in place.
        now: Values of this round, by their places.
    """
    before = {place: best.get(place, 0) for place in now}
    best.update({place: max(best.get(place, 0), value) for place, value in now.items()})
    return before


def of_most(now: Mapping[str, float], kinds: Mapping[str, str]) -> dict[str, float]:
    """Return the largest value that more than half of similar parts have, by place; 0 for fewer than four parts.

    Args:
        now: Values by their places.
        kinds: Kinds of the places, such as the product of a GPU.
    """
    alike: dict[str, list[float]] = {}
    for place, value in now.items():
        alike.setdefault(kinds.get(place, ""), []).append(value)
    most = {
        kind: sorted(values)[(len(values) - 1) // 2] if len(values) >= _FEWEST_ALIKE else 0.0
        for kind, values in alike.items()
    }
    return {place: most[kinds.get(place, "")] for place in now}


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


def ports_before(reason: str) -> dict[str, float]:
    """Return the lowest rates in Gb/s that the ports in a reason had before it; empty for other reasons.

    The reason is the only record of them when a new pod begins. Without it, a lost or slow port would count as normal.
    """
    if lost := _LOST.match(reason):
        return dict.fromkeys(lost[1].split(", "), 0.0)
    if slower := _SLOWER.match(reason):
        found = [_RATE.fullmatch(word) for word in slower[1].split(", ")]
        return {item[1]: float(item[2]) + _LEAST_GAIN_GBPS for item in found if item}
    return {}
