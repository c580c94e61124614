"""Values of metrics, before they are written down."""

from collections import defaultdict

Samples = dict[str, list[tuple[tuple[str, ...], float]]]
"""By a metric's name: the values of its labels, and its value."""


class Sums:
    """Values that are summed up by their labels."""

    def __init__(self) -> None:
        self._of: dict[str, dict[tuple[str, ...], float]] = defaultdict(lambda: defaultdict(float))

    def add(self, name: str, labels: tuple[str, ...] = (), value: float = 1) -> None:
        """Add to a value, which begins with 0."""
        self._of[name][labels] += value

    def samples(self) -> Samples:
        """Return the sums."""
        return {name: [*values.items()] for name, values in self._of.items()}
