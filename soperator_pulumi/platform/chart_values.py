"""Values of charts: merged over the defaults here, with keys that the chart knows.

Charts accept unknown keys silently: `driver.enbled: false` would install a driver. Lists of known keys are in
`keys/`, one file per chart: one key per line, indented by its level, and `*` where any key below is accepted.
`tools/chart_keys.py` writes them from the default values and the templates of a chart.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.validation.messages import shown
from soperator_pulumi.wording import listed

FREE = "*"

_KEYS_SHOWN = 12


@dataclass
class KnownKeys:
    """Known keys at one level of a chart's values."""

    free: bool = False
    """True if any key is accepted, as in node selectors and annotations."""
    below: dict[str, "KnownKeys"] = field(default_factory=dict)
    """Known keys with the keys below them. If empty, the value is a list or has no keys."""

    def paths(self, above: str = "") -> Iterator[str]:
        """Yield the paths of all known keys."""
        for name, keys in self.below.items():
            path = f"{above}{name}"
            yield path
            yield from keys.paths(f"{path}.")


@cache
def known_keys(name: str) -> KnownKeys:
    """Return the known keys of a chart and its version, such as `cilium-1.20.2`."""
    return parse_keys((files(__package__) / "keys" / f"{name}.txt").read_text())


def parse_keys(text: str) -> KnownKeys:
    """Return the known keys listed in a text."""
    levels = [KnownKeys()]
    for line in text.splitlines():
        name = line.lstrip(" ")
        depth = len(line) - len(name)
        key, _, free = name.partition(" ")
        found = levels[depth].below.setdefault(key, KnownKeys(free=free == FREE))
        del levels[depth + 1 :]
        levels.append(found)
    return levels[0]


def unknown_keys(values: Mapping[str, Any], known: KnownKeys, chart: str, path: str = "") -> Iterator[Problem]:
    """Yield a problem for every key that a chart does not know, with the closest key that it knows.

    Args:
        values: Values for the chart.
        known: Keys that the chart knows.
        chart: Name and version of the chart, for messages.
        path: Path of the values within those of the chart.
    """
    for key, value in values.items():
        here = f"{path}.{key}" if path else str(key)
        keys = known.below.get(str(key))
        if keys is None:
            if not known.free:
                yield Problem(here, _unknown(str(key), known, chart, path))
        elif isinstance(value, Mapping):
            yield from unknown_keys(value, keys, chart, here)
        elif keys.below and not keys.free and isinstance(value, (bool, int, float, str, list, tuple)):  # no Output
            yield Problem(
                here, f"got {shown(value, ('values',))}, needs a mapping with {listed(keys.below, _KEYS_SHOWN)}."
            )


def merged_values(ours: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return `given` merged over `ours`: mappings by key, everything else as a whole; null removes a key."""
    found = dict(ours)
    for key, value in given.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, Mapping):
            before = found.get(key)
            found[key] = merged_values(before if isinstance(before, Mapping) else {}, value)
        else:
            found[key] = value
    return found


def _unknown(key: str, known: KnownKeys, chart: str, path: str) -> str:
    """Return the sentence about an unknown key, with the closest known key next to it or anywhere in the chart."""
    near = get_close_matches(key, known.below, n=1)
    if near:
        meant = f"{path}.{near[0]}" if path else near[0]
        return f'the chart {chart} has no such key. Did you mean "{meant}"?'
    if not known.below:
        return f'the chart {chart} has no such key: "{path}" takes no mapping.'
    return f"the chart {chart} has no such key. Allowed here: {listed(known.below, _KEYS_SHOWN)}."
