"""Names in a host list of Slurm, such as `gpu-[0-3,7],cpu-0`."""

import re
from collections.abc import Iterator
from itertools import islice, product

MOST_NAMES = 65_536
"""Names of a list: Slurm itself takes no more of a range (MAX_RANGE in its hostlist.c)."""

_PART = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_PIECE = re.compile(r"\[(?P<ranges>[^\[\]]*)\]|(?P<text>[^\[\]]+)")
_RANGE = re.compile(r"(?P<first>\d+)(?:-(?P<last>\d+))?", re.ASCII)


def names(hostlist: str) -> list[str]:
    """Return the names in the order of the expression, at most `MOST_NAMES`.

    Raises:
        ValueError: The text is not a host list, or a range in it is longer than Slurm's own.
    """
    parts: list[str] = _PART.findall(hostlist)
    if ",".join(parts) != hostlist:
        raise ValueError(f"{hostlist[:80]!r} is not a host list such as 'gpu-[0-3,7],cpu-0'")
    return [*islice((name for part in parts for name in _names(part)), MOST_NAMES)]


def _names(part: str) -> Iterator[str]:
    pieces = [[piece["text"]] if piece["text"] else _numbers(piece["ranges"]) for piece in _PIECE.finditer(part)]
    return map("".join, product(*pieces))


def _numbers(ranges: str) -> list[str]:
    """Return the numbers in brackets, with as many digits as the first number of their range."""
    found: list[str] = []
    for text in ranges.split(","):
        ends = _RANGE.fullmatch(text)
        first, last = (ends["first"], ends["last"] or ends["first"]) if ends else ("1", "0")
        if len(last) > len(str(MOST_NAMES)) + len(first) or not 0 <= int(last) - int(first) < MOST_NAMES:
            raise ValueError(f"{text[:80]!r} is not a range of at most {MOST_NAMES} numbers")
        found += [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]
        if len(found) > MOST_NAMES:
            break  # no more names are returned
    return found
