"""Carries the accounts of the previous tree into the next one.

A tree's account changes are what differs from its content as populated. If the next tree was in use before, the changes
that users had made by the time they left it belong to the common base. So a user removed since then is not taken for a
new one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from jail_tools.accounts.account_resolution import Accounts
from jail_tools.accounts.tables import AccountFile, Record, identity, is_user
from jail_tools.accounts.three_way_merge import Conflict, settle_group, three_way

FOLLOWING = ("gshadow", "subuid", "subgid")
"""Files of /etc with lines for users or groups. A line comes over with its user or group."""


@dataclass(frozen=True)
class Inherited:
    """The accounts of the next tree, and the conflicts in them."""

    accounts: dict[AccountFile, dict[str, Record]]
    added: frozenset[str]
    """Names of users and groups that come over."""
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Sides:
    """Accounts of both trees, without those that this package manages."""

    old_populated: Accounts
    old: Accounts
    new_populated: Accounts
    new_left: Accounts | None
    """Accounts as users left the new tree, if it was in use before; None if it never was."""
    new: Accounts


def inherit(sides: Sides, *, system_accounts: bool) -> Inherited:
    """Merge three ways.

    Args:
        sides: all that is known.
        system_accounts: accounts below 1000 that users added come too: their packages are carried over.
    """
    records: dict[AccountFile, dict[str, Record]] = {}
    reasons: list[str] = []
    dropped: set[str] = set()
    for kind in AccountFile:
        base, ours = dict(_base(kind, sides)), dict(sides.old[kind])
        for name, record in sides.old[kind].items():
            if kind is AccountFile.SHADOW:
                dropping = name in dropped
            else:
                dropping = not system_accounts and name not in base and not is_user(identity(kind, record) or 0)
                dropped |= {name} if dropping and kind is AccountFile.PASSWD else set()
            if dropping:
                del ours[name]
        merged = three_way(base, ours, sides.new[kind], settle=settle_group if kind is AccountFile.GROUP else None)
        reasons += (_reason(kind, conflict) for conflict in merged.conflicts)
        records[kind] = merged.records
    for kind in (AccountFile.PASSWD, AccountFile.GROUP):
        reasons += _shared_ids(kind, records[kind], sides)
    added = {
        name
        for kind in (AccountFile.PASSWD, AccountFile.GROUP)
        for name in records[kind]
        if name not in sides.new[kind]
    }
    return Inherited(records, frozenset(added), tuple(reasons))


def follow(names: frozenset[str], old: bytes, new: bytes) -> bytes:
    """Return a file of FOLLOWING with the old tree's lines for these names, unless it already has such lines."""
    there = {line.partition(b":")[0] for line in new.splitlines()}
    wanted = {name.encode("utf-8", "surrogateescape") for name in names} - there
    lines = [line for line in old.splitlines() if line.partition(b":")[0] in wanted]
    if not lines:
        return new
    end = b"" if not new or new.endswith(b"\n") else b"\n"
    return new + end + b"".join(line + b"\n" for line in lines)


def _base(kind: AccountFile, sides: Sides) -> Mapping[str, Record]:
    if sides.new_left is None:
        return sides.old_populated[kind]
    populated, left = sides.new_populated[kind], sides.new_left[kind]
    changed = {name for name in populated.keys() | left.keys() if populated.get(name) != left.get(name)}
    kept = {name: record for name, record in sides.old_populated[kind].items() if name not in changed}
    return {**kept, **{name: left[name] for name in changed if name in left}}


def _shared_ids(kind: AccountFile, records: Mapping[str, Record], sides: Sides) -> list[str]:
    """Return the ids that two names would share because they have them in different trees."""
    names: dict[int | None, list[str]] = {}
    for name, record in records.items():
        names.setdefault(identity(kind, record), []).append(name)
    return [
        f"/etc/{kind.file_name}: {' and '.join(shared)} would both have the id {number}"
        for number, shared in names.items()
        if len(shared) > 1 and not any(set(shared) <= side[kind].keys() for side in (sides.old, sides.new))
    ]


def _reason(kind: AccountFile, conflict: Conflict[Record]) -> str:
    name = f"/etc/{kind.file_name}: {conflict.key}"
    if kind is AccountFile.SHADOW:
        return f"{name} was changed by users, and differently in the new tree"
    ours, theirs = (_shown(record) for record in (conflict.ours, conflict.theirs))
    return f"{name}: users made it {ours}, the new tree has {theirs}"


def _shown(record: Record | None) -> str:
    """Return a record without its password, which old systems keep in it."""
    return f'"{":".join((record[0], "x", *record[2:]))}"' if record else "none"
