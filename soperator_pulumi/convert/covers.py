"""The fewest places of an input that hold exactly a given set of its values."""

from collections.abc import Iterable, Sequence

from soperator_pulumi.convert.yaml_tree import Leaf, joined

_Place = tuple[str | int, ...]


class Covers:
    """Finds places that hold exactly given values of an input."""

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self.leaves = leaves
        self._below: dict[tuple[str, _Place], set[Leaf]] = {}
        for leaf in leaves:
            for depth in range(len(leaf.keys) + 1):
                self._below.setdefault((_document(leaf), leaf.keys[:depth]), set()).add(leaf)

    def of(self, leaves: Iterable[Leaf], absorbing: set[Leaf] | None = None) -> str:
        """Return the places that hold exactly these values, in words, with the number of values if there are several.

        Args:
            leaves: The values.
            absorbing: Values that a place may hold besides. Those that the result covers are removed from the set.
        """
        wanted = dict.fromkeys(leaves)
        spare = absorbing if absorbing is not None else set()
        places: dict[str, list[str]] = {}
        while wanted:
            leaf = next(iter(wanted))
            document, keys = self._widest(leaf, wanted.keys() | spare)
            held = self._below[document, keys]
            spare -= held
            for word in held:
                wanted.pop(word, None)
            whole = f"{_path(keys) or 'all'} ({len(held)})"
            place = leaf.path.removeprefix(f"{document}: ") if len(held) == 1 else whole
            places.setdefault(document, []).append(place)
        return "; ".join(f"{name}: {', '.join(words)}" if name else ", ".join(words) for name, words in places.items())

    def _widest(self, leaf: Leaf, allowed: set[Leaf]) -> tuple[str, _Place]:
        """Return the widest place around a value that holds only allowed values."""
        document, found = _document(leaf), leaf.keys
        for depth in range(len(leaf.keys) - 1, -1 if document else 0, -1):
            if not self._below[document, leaf.keys[:depth]] <= allowed:
                break
            found = leaf.keys[:depth]
        return document, found


def _document(leaf: Leaf) -> str:
    """Return the file and the resource of a value, if there are several."""
    return leaf.path.rpartition(": ")[0]


def _path(keys: _Place) -> str:
    path = ""
    for key in keys:
        path = joined(path, key)
    return path
