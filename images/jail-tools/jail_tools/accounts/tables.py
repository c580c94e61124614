"""Account files passwd(5), group(5) and shadow(5), read and written without losing a line.

A record is the tuple of a line's fields; its key is the name. A line that is not a record stays in its place: a
comment, NIS's `+` line, a damaged line, or a second line for a name, which no lookup finds.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

Record = tuple[str, ...]

FIRST_USER_ID = 1000
"""Lowest id of a user. Distributions of the last ten years keep lower ids for the system (`useradd`, `adduser`)."""

NOBODY_ID = 65534

_HIGHEST_ID = 2**32 - 2
"""The kernel's: (uid_t)-1 means "no change"."""

_DAEMONS = {64030: "slurm", 64031: "munge"}
"""Ids of the cluster's daemons in every image. The specification refuses the same ones."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,30}\$?")
_NUMBER = re.compile(r"[0-9]{1,10}")


class AccountFile(Enum):
    """One of the three files: its name, and the number of fields in its lines."""

    PASSWD = ("passwd", 7)
    GROUP = ("group", 4)
    SHADOW = ("shadow", 9)

    def __init__(self, file_name: str, fields: int) -> None:
        self.file_name = file_name
        self.fields = fields


@dataclass(frozen=True)
class Table:
    """The content of one file."""

    kind: AccountFile
    lines: tuple[str, ...]

    @property
    def records(self) -> dict[str, Record]:
        """The records by name, in the order of the file."""
        found: dict[str, Record] = {}
        for line in self.lines:
            record = _record(self.kind, line)
            if record is not None:
                found.setdefault(record[0], record)
        return found

    def with_records(self, records: Mapping[str, Record]) -> "Table":
        """Return the table with exactly these records, known ones in place and new ones last, and all other lines."""
        left, seen = dict(records), set[str]()
        lines = []
        for line in self.lines:
            record = _record(self.kind, line)
            if record is None or record[0] in seen:
                lines.append(line)
                continue
            seen.add(record[0])
            if record[0] in left:
                lines.append(":".join(left.pop(record[0])))
        added = sorted(left.values(), key=lambda record: (identity(self.kind, record) or 0, record[0]))
        return Table(self.kind, (*lines, *(":".join(record) for record in added)))

    def format(self) -> bytes:
        """Return the file's bytes."""
        return "".join(f"{line}\n" for line in self.lines).encode("utf-8", "surrogateescape")


def parse(kind: AccountFile, content: bytes) -> Table:
    """Parse a file's bytes. A line that is not a record is kept."""
    text = content.decode("utf-8", "surrogateescape")
    lines = text.removesuffix("\n").split("\n") if text else []
    return Table(kind, tuple(lines))


def identity(kind: AccountFile, record: Record) -> int | None:
    """Return the uid or gid of a record; None in shadow, which has none."""
    return None if kind is AccountFile.SHADOW else int(record[2])


def members(record: Record) -> set[str]:
    """Return the members that a record of group names."""
    return {name for name in record[3].split(",") if name}


def problem(kind: AccountFile, record: Record) -> str | None:
    """Return why Slurm and sshd cannot use an account; None if they can."""
    if not _NAME.fullmatch(record[0]):
        return f'the name "{_printable(record[0])}" is not made of letters, digits, "_", "." and "-" (32 at most)'
    if any(character < " " or character == "\x7f" for field in record for character in field):
        return f"{record[0]}: has control characters"
    if kind is AccountFile.SHADOW:
        return None
    for number in map(int, record[2:4] if kind is AccountFile.PASSWD else record[2:3]):
        if number > _HIGHEST_ID:
            return f"{record[0]}: {number} is not an id; the highest is {_HIGHEST_ID}"
        if number in _DAEMONS:
            return f"{record[0]}: {number} is the id of {_DAEMONS[number]} on every node"
    if kind is AccountFile.PASSWD and not is_user(int(record[3])):
        return (
            f"{record[0]}: the primary group has the id {int(record[3])}, which is the system's. "
            f"Give the user a group of {FIRST_USER_ID} or more: usermod --gid GROUP {record[0]}"
        )
    if kind is AccountFile.PASSWD and not record[5].startswith("/"):
        return f'{record[0]}: the home "{_printable(record[5])}" is not an absolute path'
    return None


def is_user(number: int) -> bool:
    """Return True if the id of a user or group belongs to people, not to the system."""
    return number >= FIRST_USER_ID and number != NOBODY_ID


def _record(kind: AccountFile, line: str) -> Record | None:
    fields = tuple(line.split(":"))
    if len(fields) != kind.fields or not fields[0] or fields[0][0] in "#+-" or fields[0] != fields[0].strip():
        return None
    numbers = {AccountFile.PASSWD: fields[2:4], AccountFile.GROUP: fields[2:3]}.get(kind, ())
    return fields if all(_NUMBER.fullmatch(number) for number in numbers) else None


def _printable(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()
