"""Three-way merge of keyed records: accounts by name, packages by name.

`base` is the common start. If only one side changed a record, its version counts; so does a change that both sides
made. Different changes are a conflict, unless `settle` resolves it. A missing record counts as a value, so additions
and removals are changes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from jail_tools.accounts.tables import Record, members

Value = TypeVar("Value")

Settle = Callable[[Value | None, Value | None, Value | None], Value | None]
"""Function that gets base, ours and theirs of a conflict. It returns the agreed value, or None if there is none."""


@dataclass(frozen=True)
class Conflict(Generic[Value]):
    """A record that both sides changed differently. None: the record is missing there."""

    key: str
    base: Value | None
    ours: Value | None
    theirs: Value | None


@dataclass(frozen=True)
class Merged(Generic[Value]):
    """The merged records, and the conflicts."""

    records: dict[str, Value]
    conflicts: tuple[Conflict[Value], ...]


def three_way(
    base: Mapping[str, Value],
    ours: Mapping[str, Value],
    theirs: Mapping[str, Value],
    *,
    settle: Settle[Value] | None = None,
) -> Merged[Value]:
    """Merge three ways. The order is that of `theirs`, followed by records that only `ours` has."""
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
    """Merge a group that differs in members only: members added on either side are in, and removed ones are out.

    A member cannot be added on one side and removed on the other, as `base` has them or does not.
    """
    if ours is None or theirs is None or ours[:3] != theirs[:3]:
        return None
    was = members(base) if base else set[str]()
    added = (members(ours) | members(theirs)) - was
    stayed = was & members(ours) & members(theirs)
    return (*ours[:3], ",".join(sorted(added | stayed)))
