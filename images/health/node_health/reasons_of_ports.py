"""Ports in the reason of a drain: all that is left of them when a new pod begins, as its memory is empty.

A port that an earlier pod has seen active is lost to a new one as well, and a port that was slower than before is not
good because the new pod knows no other rate.
"""

import re

from slurm_wire.drain_reasons import REPLACE

_END = rf"(?: and \d+ more)?(?: {re.escape(REPLACE)})?, allowed "
_LOST = re.compile(rf"health network_port_lost: down: (.*?){_END}")
_SLOWER = re.compile(rf"health network_rate: lower than before: (.*?){_END}")
_RATE = re.compile(r"(\S+) ([\d.e+]+) Gb/s")

_LEAST_GAIN_GBPS = 1.0
"""Gain over the rate in the reason by which a port is no longer that slow: no two rates of links are closer."""


def ports_before(reason: str) -> dict[str, float]:
    """Return rates in Gb/s that the ports in a reason had at least before it; empty for other reasons."""
    if lost := _LOST.match(reason):
        return dict.fromkeys(lost[1].split(", "), 0.0)
    if slower := _SLOWER.match(reason):
        found = [_RATE.fullmatch(word) for word in slower[1].split(", ")]
        return {item[1]: float(item[2]) + _LEAST_GAIN_GBPS for item in found if item}
    return {}
