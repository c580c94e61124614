"""Names in a host list of Slurm, such as `gpu-[0-3,7],cpu-0`."""

import re
from collections.abc import Iterator
from itertools import islice

MOST_NAMES = 65_536
"""Names of a list: Slurm itself takes no more of a range (MAX_RANGE in its hostlist.c)."""

_PART = re.compile(r"([^,\[]*)(?:\[([^\]]*)\])?([^,\[]*)(?:,|$)")


def names(hostlist: str) -> Iterator[str]:
    """Yield the names, at most `MOST_NAMES`. One bracket a part is what slurmctld writes for our nodes.

    Raises:
        ValueError: A range is none of numbers, or a longer one.
    """
    return islice(_names(hostlist), MOST_NAMES)


def _names(hostlist: str) -> Iterator[str]:
    for before, numbers, after in _PART.findall(hostlist):
        if not before and not numbers:
            continue
        for number in _numbers(numbers) if numbers else [""]:
            yield f"{before}{number}{after}"


def _numbers(text: str) -> Iterator[str]:
    for item in text.split(","):
        first, dash, last = item.partition("-")
        if not dash:
            yield first
            continue
        numbers = range(int(first), int(last) + 1)
        if len(numbers) > MOST_NAMES:
            raise ValueError(f"{item} has {len(numbers)} numbers, at most {MOST_NAMES} are in a list of Slurm")
        for number in numbers:
            yield str(number).zfill(len(first))
