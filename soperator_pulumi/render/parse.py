"""Reading slurm.conf back: as much of Slurm's own syntax as rendered files have."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from soperator_pulumi.spec.slurm_parameters import PARAMETERS

_PAIR = re.compile(r'\s*(?P<key>\w+)\s*=\s*(?:"(?P<quoted>[^"]*)"|(?P<plain>\S+))')
"""Slurm's `keyvalue_pattern` (src/common/parse_config.c), without its operators."""

_ROWS = ("NodeSet", "PartitionName", "NodeName", "DownNodes")
_SPELLING = {name.lower(): name for name in PARAMETERS}

Row = Mapping[str, str]
"""The pairs of one line, without the first."""


@dataclass(frozen=True)
class SlurmConf:
    """What a slurm.conf says."""

    parameters: Mapping[str, str]
    """Parameters of which there is one, in Slurm's spelling. Of a parameter that comes twice the last counts."""
    lines: Mapping[str, Mapping[str, Row]]
    """Lines of which there are several: kind, then name."""

    def rows(self, kind: str) -> Mapping[str, Row]:
        """Return the lines that begin with a key, by the name they give."""
        return self.lines.get(kind, {})


def parse_conf(text: str) -> SlurmConf:
    """Return what a slurm.conf says.

    Raises:
        ValueError: a line is no list of `key=value`.
    """
    parameters: dict[str, str] = {}
    lines: dict[str, dict[str, Row]] = {}
    for line in text.splitlines():
        content = line.partition("#")[0].strip()
        if not content:
            continue
        pairs = _pairs(content)
        (key, value), *rest = pairs
        if key in _ROWS:
            lines.setdefault(key, {})[value] = dict(rest)
        else:
            parameters.update(pairs)
    return SlurmConf(parameters, lines)


def _pairs(content: str) -> list[tuple[str, str]]:
    pairs, position = [], 0
    while position < len(content):
        match = _PAIR.match(content, position)
        if match is None:
            raise ValueError(f"not key=value: {content[position:]!r}")
        key = match["key"]
        value = match["plain"] if match["quoted"] is None else match["quoted"]
        pairs.append((_SPELLING.get(key.lower(), key), value))
        position = match.end()
    return pairs
