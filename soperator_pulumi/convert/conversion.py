"""A conversion in progress: the stack as written so far, and the outcome for every value of the input."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from soperator_pulumi.convert.yaml_tree import Leaf, Section, joined

TO_ADD = "<add>"
"""Placeholder for a required value that the input does not have. The spec refuses it."""


class Fate(StrEnum):
    """Outcome for a value of the input, in the order of a reader's interest."""

    NOT_POSSIBLE = "not possible"
    UNKNOWN = "unknown"
    CHANGED = "changed"
    TAKEN = "taken over"
    NOT_NEEDED = "not needed"


@dataclass
class Placed:
    """A value of the stack, with the values of the input that it comes from."""

    value: Any
    origins: tuple[Leaf, ...] = ()
    how: str = ""
    """Difference from the origin; empty if the values are the same."""
    to_add: str = ""
    """Value that the user has to give; empty for all other values."""


@dataclass(frozen=True)
class LeafAccount:
    """Outcome for one value of the input."""

    leaf: Leaf
    fate: Fate
    targets: tuple[str, ...] = ()
    """Paths in the stack, below `soperator:cluster`."""
    text: str = ""
    """Change, or reason."""


@dataclass(frozen=True)
class Addition:
    """A value that the user has to give or correct before the first deployment."""

    path: str
    text: str


@dataclass
class Conversion:
    """The stack as written so far, and accounts of the input's values."""

    leaves: list[Leaf]
    """All values of the input."""
    stack: dict[str, Any] = field(default_factory=dict)
    """The cluster, as mappings and lists whose leaves are `Placed`."""
    remarks: list[str] = field(default_factory=list)
    """Sentences about the input as a whole."""
    to_correct: list[Addition] = field(default_factory=list)
    """Remaining problems of the stack as a whole."""
    _used: set[Leaf] = field(default_factory=set)
    """Values that were written into the stack."""
    _notes: dict[Leaf, tuple[Fate, str]] = field(default_factory=dict)
    _refused: dict[Leaf, str] = field(default_factory=dict)
    _parts: dict[Leaf, list[Leaf]] = field(default_factory=dict)

    # The stack --------------------------------------------------------------------------------------------------------

    def mapping(self, *keys: str, of: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the mapping at a path of the stack, or below `of`, creating it if it is missing."""
        found = self.stack if of is None else of
        for key in keys:
            found = found.setdefault(key, {})
        return found

    def listed(self, *keys: str, of: dict[str, Any] | None = None) -> list[Any]:
        """Return the list at a path of the stack, or below `of`, creating it if it is missing."""
        *above, last = keys
        found: list[Any] = self.mapping(*above, of=of).setdefault(last, [])
        return found

    def put(
        self, place: dict[str, Any], key: str, value: object, origin: Section | Iterable[Leaf] = (), how: str = ""
    ) -> None:
        """Write a value into the stack. It replaces another value of the key; an equal value gains an origin."""
        before = place.get(key)
        if isinstance(before, Placed) and before.value == value:
            self.extend(before, origin)
            return
        if isinstance(before, Placed):
            self.withdraw(before, "another value elsewhere in the input counts")
        place[key] = self.value(value, origin, how)

    def value(self, value: object, origin: Section | Iterable[Leaf] = (), how: str = "") -> Placed:
        """Return a value that the caller places in the stack."""
        leaves = _leaves(origin)
        self._used.update(leaves)
        return Placed(value, leaves, how)

    def extend(self, placed: Placed, origin: Section | Iterable[Leaf]) -> None:
        """Add an origin to a value that is in the stack."""
        leaves = _leaves(origin)
        self._used.update(leaves)
        placed.origins = (*placed.origins, *leaves)

    def add(self, place: list[Any], value: object, origin: Section | Iterable[Leaf] = (), how: str = "") -> None:
        """Append a value to a list of the stack, unless it is in the list."""
        for item in place:
            if isinstance(item, Placed) and item.value == value:
                self.extend(item, origin)
                return
        place.append(self.value(value, origin, how))

    def require(self, place: dict[str, Any], key: str, what: str) -> None:
        """Write a placeholder that the user has to replace, unless the key has a value."""
        if key not in place:
            place[key] = Placed(TO_ADD, to_add=what)

    # Accounts ---------------------------------------------------------------------------------------------------------

    def cannot(self, origin: Section | Iterable[Leaf], why: str) -> None:
        """Note that values have no counterpart, except those that are in the stack."""
        self._note(_leaves(origin), Fate.NOT_POSSIBLE, why)

    def needless(self, origin: Section | Iterable[Leaf], why: str) -> None:
        """Note that values are not needed, except those that are in the stack."""
        self._note(_leaves(origin), Fate.NOT_NEEDED, why)

    def withdraw(self, placed: Placed, why: str) -> None:
        """Note that a value that was in the stack is not needed."""
        for leaf in placed.origins:
            self._notes.setdefault(leaf, (Fate.NOT_NEEDED, why))

    def refuse(self, placed: Placed, why: str) -> None:
        """Note that the spec refuses a value that is in the stack."""
        self._refused.update(dict.fromkeys(placed.origins, why))

    def split(self, leaf: Leaf, names: Sequence[str]) -> list[Leaf]:
        """Divide a text into the pieces `names`, which the report lists one by one, and return their leaves."""
        seen: dict[str, int] = {}
        parts = []
        for name in names:
            seen[name] = seen.get(name, 0) + 1
            shown = name if seen[name] == 1 else f"{name}, again"
            path = f"{leaf.path[:-1]} {shown})" if leaf.path.endswith(")") else f"{leaf.path} ({shown})"
            parts.append(Leaf(path, (*leaf.keys, name, seen[name]), name, leaf.line))
        if parts:
            self._parts[leaf] = parts
        return parts

    def _smallest(self, leaf: Leaf) -> Iterator[Leaf]:
        """Yield the parts of a value that have no parts themselves."""
        if leaf not in self._parts:
            yield leaf
        for part in self._parts.get(leaf, ()):
            yield from self._smallest(part)

    def is_accounted(self, leaf: Leaf) -> bool:
        """Return True if a value is in the stack, or has a note."""
        return leaf in self._used or leaf in self._notes or leaf in self._parts

    def _note(self, leaves: Iterable[Leaf], fate: Fate, text: str) -> None:
        """Note what became of values, unless they have a note. Empty values are never needed."""
        for leaf in leaves:
            if leaf not in self._used:
                self._notes.setdefault(leaf, (Fate.NOT_NEEDED, "empty") if leaf.is_empty else (fate, text))

    # Results ----------------------------------------------------------------------------------------------------------

    def placed(self) -> Iterator[tuple[str, Placed]]:
        """Yield the values of the stack with their paths."""
        yield from _walk(self.stack, "")

    def plain(self) -> dict[str, Any]:
        """Return the stack's cluster as plain data."""
        found: dict[str, Any] = _plain(self.stack)
        return found

    def additions(self) -> list[Addition]:
        """Return the values that the user has to give or correct."""
        return [Addition(path, placed.to_add) for path, placed in self.placed() if placed.to_add] + self.to_correct

    def entries(self) -> list[LeafAccount]:
        """Return what became of every input value, and of the defaults that mattered, in the order of the input."""
        targets: dict[Leaf, list[str]] = {}
        changes: dict[Leaf, list[str]] = {}
        for path, placed in self.placed():
            for leaf in placed.origins:
                targets.setdefault(leaf, []).append(path)
                if placed.how:
                    changes.setdefault(leaf, []).append(placed.how)
        whole = [part for leaf in self.leaves for part in self._smallest(leaf)]
        defaults = [leaf for leaf in [*targets, *self._refused, *self._notes] if leaf.is_default]
        return [
            self._entry(leaf, tuple(targets.get(leaf, ())), changes.get(leaf, []))
            for leaf in dict.fromkeys([*whole, *defaults])
        ]

    def _entry(self, leaf: Leaf, targets: tuple[str, ...], changes: list[str]) -> LeafAccount:
        if leaf in self._refused:
            return LeafAccount(leaf, Fate.NOT_POSSIBLE, targets, self._refused[leaf])
        if targets:
            return LeafAccount(
                leaf, Fate.CHANGED if changes else Fate.TAKEN, targets, "; ".join(dict.fromkeys(changes))
            )
        fate, text = self._notes.get(leaf, (Fate.UNKNOWN, ""))
        return LeafAccount(leaf, fate, (), text)


def _leaves(origin: Section | Iterable[Leaf]) -> tuple[Leaf, ...]:
    return tuple(origin.leaves() if isinstance(origin, Section) else origin)


def _walk(tree: object, path: str) -> Iterator[tuple[str, Placed]]:
    match tree:
        case Placed():
            yield path, tree
        case Mapping():
            for key, item in tree.items():
                yield from _walk(item, joined(path, key))
        case list():
            for index, item in enumerate(tree):
                yield from _walk(item, joined(path, index))


def _plain(tree: Any) -> Any:  # noqa: ANN401 any tree of values
    match tree:
        case Placed():
            return tree.value
        case Mapping():
            return {key: _plain(item) for key, item in tree.items()}
        case list():
            return [_plain(item) for item in tree]
    return tree
