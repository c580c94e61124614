"""Best values of a node's parts, such as the lanes of a GPU: earlier ones, and those of most similar parts.

The maximum that a part itself reports is no measure: a slot may have half of a card's lanes for good.
"""

from collections.abc import Mapping, MutableMapping

_FEWEST_ALIKE = 4
"""Number of similar parts from which the majority counts: of two or three, any may be in an unusual slot."""


def keep(best: MutableMapping[str, float], now: Mapping[str, float]) -> dict[str, float]:
    """Return the best values of earlier rounds, and store the better of old and new ones.

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
