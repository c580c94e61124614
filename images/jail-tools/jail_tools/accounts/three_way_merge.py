"""Three-way merge of keyed records: accounts by name, packages by name.

`base` is what both sides began with. A record that one side left alone is as the other side has it; one that both
changed alike is so. One that they changed differently is a conflict, unless `settle` knows better. A record that is not
there counts as a value like any other: adding and removing are changes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from jail_tools.accounts.tables import Record, members

Value = TypeVar("Value")

Settle = Callable[[Value | None, Value | None, Value | None], Value | None]
"""Gets base, ours and theirs of a conflict; returns what both agree on, None when there is no such thing."""


@dataclass(frozen=True)
class Conflict(Generic[Value]):
    """One record that both sides changed, each in its own way. None: not there."""

    key: str
    base: Value | None
    ours: Value | None
    theirs: Value | None


@dataclass(frozen=True)
class Merged(Generic[Value]):
    """All records on which there is agreement, and the others."""

    records: dict[str, Value]
    conflicts: tuple[Conflict[Value], ...]


def three_way(
    base: Mapping[str, Value],
    ours: Mapping[str, Value],
    theirs: Mapping[str, Value],
    *,
    settle: Settle[Value] | None = None,
) -> Merged[Value]:
    """Merge; the order is that of `theirs`, then what is only in `ours`."""
    records: dict[str, Value] = {}
    conflicts = []
    for key in dict.fromkeys((*theirs, *ours)):
        was, our, their = base.get(key), ours.get(key), theirs.get(key)
        if our in (their, was):
            value = their
        elif was == their:
            value = our
        else:
            value = settle(was, our, their) if settle else None
            if value is None:
                conflicts.append(Conflict(key, was, our, their))
        if value is not None:
            records[key] = value
    return Merged(records, tuple(conflicts))


def settle_group(base: Record | None, ours: Record | None, theirs: Record | None) -> Record | None:
    """Settle a group of which only the members differ: who was added on a side is in, who was removed on a side is out.

    A member who is new on one side and gone on the other can't be: `base` either had them or not.
    """
    if ours is None or theirs is None or ours[:3] != theirs[:3]:
        return None
    was = members(base) if base else set[str]()
    added = (members(ours) | members(theirs)) - was
    stayed = was & members(ours) & members(theirs)
    return (*ours[:3], ",".join(sorted(added | stayed)))
