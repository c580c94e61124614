"""Values of metrics, before they are written out."""

from collections import Counter, defaultdict

Samples = dict[str, list[tuple[tuple[str, ...], float]]]
"""Values by the metric's name: label values, and the value itself."""

_MOST_DIGITS = 18
"""Digits of Slurm's largest numbers, which have 64 bits."""

_EXAMPLE = 60
"""Characters of an unknown value that a log shows."""


def printable(text: str) -> str:
    """Return text from users without control characters, which could change the terminal of a reader."""
    return "".join(character if character.isprintable() else "?" for character in text)


def whole_number(text: str) -> int | None:
    """Return the number that a text of digits means; None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


class Unread:
    """Values of an unknown form in an answer, counted by field, with the first one of every field."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, str] = {}

    def add(self, field: str, value: object) -> None:
        """Count a value that no metric has."""
        self.counts[field] += 1
        self.examples.setdefault(field, printable(str(value))[:_EXAMPLE])


class Sums:
    """Values that are summed up by their labels."""

    def __init__(self) -> None:
        self._of: dict[str, dict[tuple[str, ...], float]] = defaultdict(lambda: defaultdict(float))

    def add(self, name: str, labels: tuple[str, ...] = (), value: float = 1) -> None:
        """Add to the value for these labels, initially 0."""
        self._of[name][labels] += value

    def samples(self) -> Samples:
        """Return the sums."""
        return {name: [*values.items()] for name, values in self._of.items()}
