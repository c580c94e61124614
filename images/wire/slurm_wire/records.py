"""Records, as `scontrol show` prints them with `--oneliner`: one line of `Key=value` per record.

Only spaces part the fields and only newlines the records: people may write any other character into a text.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_FIELD = re.compile(r"(?:^| )([A-Za-z][\w/:]*)=(\S*)")
_REASON = re.compile(r"(?:^| )Reason=(.*?) \[([^\[\]]*)@(\d[\d:T-]*|Unknown|None|N/A)\](?= |$)")
"""Reason, and its user and time. The user's name may be `user@domain`. Comment and Extra follow, in that order."""


class Reason(NamedTuple):
    """Reason of a node's state.

    Attributes:
        text: The reason.
        user: Name of the user who gave it.
        time: Its time, as the command prints times.
    """

    text: str
    user: str
    time: str


def lines(shown: str) -> Iterator[str]:
    """Yield the lines of the records."""
    return (line for line in shown.split("\n") if line.strip())


def fields(line: str) -> dict[str, str]:
    """Return the values of a record up to their first space, by key.

    The first of equal keys counts: scontrol prints texts that people may write (Reason, Comment, Extra) last, so that
    none of them takes the place of a value. A reason that is complete has its own function.
    """
    return dict(reversed(_FIELD.findall(_REASON.sub(" Reason=", line))))


def reason(line: str) -> Reason | None:
    """Return the reason in a node's record, or None if it has none that is complete."""
    found = _REASON.search(line)
    return Reason(*found.groups()) if found else None


def words(value: str) -> tuple[str, ...]:
    """Return the words of a list, such as a node's partitions."""
    return () if value == "(null)" else tuple(filter(None, value.split(",")))
