"""Ports named in a drain's reason: the only record of them when a new pod begins.

A new pod has no memory of a port that an earlier pod saw active or faster, so without the reason it would take a lost
or slow port as normal.
"""

import re

from slurm_wire.drain_reasons import REPLACE

_END = rf"(?: and \d+ more)?(?: {re.escape(REPLACE)})?, allowed "
_LOST = re.compile(rf"health network_port_lost: down: (.*?){_END}")
_SLOWER = re.compile(rf"health network_rate: lower than before: (.*?){_END}")
_RATE = re.compile(r"(\S+) ([\d.e+]+) Gb/s")

_LEAST_GAIN_GBPS = 1.0
"""Gain over the rate in the reason from which a port no longer counts as slow. No two link rates are closer."""


def ports_before(reason: str) -> dict[str, float]:
    """Return the lowest rates in Gb/s that the ports in a reason had before it; empty for other reasons."""
    if lost := _LOST.match(reason):
        return dict.fromkeys(lost[1].split(", "), 0.0)
    if slower := _SLOWER.match(reason):
        found = [_RATE.fullmatch(word) for word in slower[1].split(", ")]
        return {item[1]: float(item[2]) + _LEAST_GAIN_GBPS for item in found if item}
    return {}
