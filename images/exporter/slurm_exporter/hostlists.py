"""Names in a host list of Slurm, such as `gpu-[0-3,7],cpu-0`."""

import re
from collections.abc import Iterator

_PART = re.compile(r"([^,\[]*)(?:\[([^\]]*)\])?([^,\[]*)(?:,|$)")


def names(hostlist: str) -> Iterator[str]:
    """Yield the names. One bracket a part is what slurmctld writes for our nodes."""
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
        for number in range(int(first), int(last) + 1):
            yield str(number).zfill(len(first))
