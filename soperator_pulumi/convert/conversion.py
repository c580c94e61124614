"""A conversion at work: a stack that is being written, and an account of every value of the input."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from soperator_pulumi.convert.yaml_tree import Leaf, Section, joined

TO_ADD = "<add>"
"""Value of a required field that the input cannot fill. Our spec refuses it."""


class Fate(StrEnum):
    """Class of a value of the input, in the order of a reader's interest."""

    NOT_POSSIBLE = "not possible"
    UNKNOWN = "unknown"
    CHANGED = "changed"
    TAKEN = "taken over"
    NOT_NEEDED = "not needed"


@dataclass
class Placed:
    """A value of the stack with its origin."""

    value: Any
    origins: tuple[Leaf, ...] = ()
    how: str = ""
    """Difference from the origin; empty where the value is the same."""
    to_add: str = ""
    """Value that the user has to give; empty for all others."""


@dataclass(frozen=True)
class LeafAccount:
    """Account of one value of the input."""

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
    """Stack and accounts."""

    leaves: list[Leaf]
    """All values of the input."""
    stack: dict[str, Any] = field(default_factory=dict)
    """The cluster: mappings and lists with a `Placed` at each end."""
    remarks: list[str] = field(default_factory=list)
    """Sentences about the input as a whole."""
    to_correct: list[Addition] = field(default_factory=list)
    """Problems of the stack as a whole that remain."""
    _used: set[Leaf] = field(default_factory=set)
    """Values that were written into the stack."""
    _notes: dict[Leaf, tuple[Fate, str]] = field(default_factory=dict)
    _refused: dict[Leaf, str] = field(default_factory=dict)
    _parts: dict[Leaf, list[Leaf]] = field(default_factory=dict)

    # The stack --------------------------------------------------------------------------------------------------------

    def mapping(self, *keys: str, of: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the mapping at a path of the stack, or below `of`; it is made where it is missing."""
        found = self.stack if of is None else of
        for key in keys:
            found = found.setdefault(key, {})
        return found

    def listed(self, *keys: str, of: dict[str, Any] | None = None) -> list[Any]:
        """Return the list at a path of the stack, or below `of`; it is made where it is missing."""
        *above, last = keys
        found: list[Any] = self.mapping(*above, of=of).setdefault(last, [])
        return found

    def put(
        self, place: dict[str, Any], key: str, value: object, origin: Section | Iterable[Leaf] = (), how: str = ""
    ) -> None:
        """Write a value into the stack. A former value of the key is overruled, an equal one gets one origin more."""
        before = place.get(key)
        if isinstance(before, Placed) and before.value == value:
            self.extend(before, origin)
            return
        if isinstance(before, Placed):
            for leaf in before.origins:
                self._notes.setdefault(leaf, (Fate.NOT_NEEDED, "given again elsewhere in the input, which counts"))
        place[key] = self.value(value, origin, how)

    def value(self, value: object, origin: Section | Iterable[Leaf] = (), how: str = "") -> Placed:
        """Return a value to be placed in the stack by hand."""
        leaves = _leaves(origin)
        self._used.update(leaves)
        return Placed(value, leaves, how)

    def extend(self, placed: Placed, origin: Section | Iterable[Leaf]) -> None:
        """Add an origin to a value of the stack."""
        leaves = _leaves(origin)
        self._used.update(leaves)
        placed.origins = (*placed.origins, *leaves)

    def add(self, place: list[Any], value: object, origin: Section | Iterable[Leaf] = (), how: str = "") -> None:
        """Append a value to a list of the stack, once."""
        for each in place:
            if isinstance(each, Placed) and each.value == value:
                self.extend(each, origin)
                return
        place.append(self.value(value, origin, how))

    def require(self, place: dict[str, Any], key: str, what: str) -> None:
        """Write a placeholder that the user has to replace, unless there is a value."""
        if key not in place:
            place[key] = Placed(TO_ADD, to_add=what)

    # Accounts ---------------------------------------------------------------------------------------------------------

    def cannot(self, origin: Section | Iterable[Leaf], why: str) -> None:
        """Account for values without a counterpart, those among them that are not in the stack."""
        self._note(_leaves(origin), Fate.NOT_POSSIBLE, why)

    def needless(self, origin: Section | Iterable[Leaf], why: str) -> None:
        """Account for values without which nothing is missed, those among them that are not in the stack."""
        self._note(_leaves(origin), Fate.NOT_NEEDED, why)

    def refuse(self, placed: Placed, why: str) -> None:
        """Account for a value that was written, and that our spec refuses."""
        self._refused.update(dict.fromkeys(placed.origins, why))

    def split(self, leaf: Leaf, names: Sequence[str]) -> list[Leaf]:
        """Account for a text by its parts, and return a leaf for each."""
        seen: dict[str, int] = {}
        parts = []
        for name in names:
            seen[name] = seen.get(name, 0) + 1
            shown = name if seen[name] == 1 else f"{name}, again"
            parts.append(Leaf(f"{leaf.path} ({shown})", (*leaf.keys, name, seen[name]), name, leaf.line))
        if parts:
            self._parts[leaf] = parts
        return parts

    def is_accounted(self, leaf: Leaf) -> bool:
        """Return True for a value that was written into the stack, or has a note."""
        return leaf in self._used or leaf in self._notes or leaf in self._parts

    def _note(self, leaves: Iterable[Leaf], fate: Fate, text: str) -> None:
        """Account for values, the first time alone. Empty ones are never missed."""
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
        """Return the values that the user has to give or to correct."""
        return [Addition(path, each.to_add) for path, each in self.placed() if each.to_add] + self.to_correct

    def entries(self) -> list[LeafAccount]:
        """Return the account of each value of the input, and of each default that mattered, in their order."""
        targets: dict[Leaf, list[str]] = {}
        changes: dict[Leaf, list[str]] = {}
        for path, each in self.placed():
            for leaf in each.origins:
                targets.setdefault(leaf, []).append(path)
                if each.how:
                    changes.setdefault(leaf, []).append(each.how)
        whole = [part for leaf in self.leaves for part in self._parts.get(leaf, [leaf])]
        beside = [leaf for leaf in [*targets, *self._refused, *self._notes] if leaf.is_default]
        return [
            self._entry(leaf, tuple(targets.get(leaf, ())), changes.get(leaf, []))
            for leaf in dict.fromkeys([*whole, *beside])
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
            for key, each in tree.items():
                yield from _walk(each, joined(path, key))
        case list():
            for index, each in enumerate(tree):
                yield from _walk(each, joined(path, index))


def _plain(tree: Any) -> Any:  # noqa: ANN401 any tree of values
    match tree:
        case Placed():
            return tree.value
        case Mapping():
            return {key: _plain(each) for key, each in tree.items()}
        case list():
            return [_plain(each) for each in tree]
    return tree
