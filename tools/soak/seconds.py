"""`python -m tools.soak.seconds`: writes the table of seconds by file from the last passes of all parts."""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence

from tools import console
from tools.console import UserError, say
from tools.soak import passes
from tools.soak.parts import LANES, LONGEST_PART_SECONDS, TABLE, SoakPart, all_parts, files_of
from tools.soak.passes import Pass

_LABEL = re.compile(r"(?P<file>\S+)(?: (?P<share>\d+)/(?P<shares>\d+))?")
_NEAR_SECONDS = 5
"""Difference from the lane's default up to which a file needs no row in the table."""


def measured(recorded: Iterable[Pass]) -> dict[str, float]:
    """Return the seconds of whole files in their last passes, the longest if several lanes have a file.

    Shares of a file that have not passed count as much as the others.
    """
    last: dict[tuple[str, str], tuple[int, dict[int, float]]] = {}
    for item in recorded:
        for label, seconds in item.measured.items():
            if found := _LABEL.fullmatch(label):
                key, shares = (item.lane, found["file"]), int(found["shares"] or 1)
                if key not in last or last[key][0] != shares:  # the file was split otherwise
                    last[key] = shares, {}
                last[key][1][int(found["share"] or 1)] = seconds
    whole: dict[str, float] = {}
    for (_, file), (shares, by_share) in last.items():
        seconds = shares * sum(by_share.values()) / len(by_share)
        whole[file] = max(seconds, whole.get(file, 0))
    return whole


def updated(table: Mapping[str, float], found: Mapping[str, float]) -> dict[str, int]:
    """Return a table updated with measured seconds, without files that are gone or close to their lane's default."""
    rows = {}
    for lane in LANES:
        for file in files_of(lane):
            seconds = found.get(file, table.get(file, lane.default_seconds))
            if abs(seconds - lane.default_seconds) > _NEAR_SECONDS:
                rows[file] = round(seconds)
    return dict(sorted(rows.items()))


def too_long(parts: Sequence[SoakPart]) -> list[str]:
    """Return a message for every part that takes longer than allowed, by the table."""
    return [
        f"Part {part.name} takes {part.seconds:.0f} s by the table, and may take {LONGEST_PART_SECONDS} s. Raise the "
        f'number of parts of the lane "{part.lane.name}" in tools/soak/parts.py, or split its longest test.'
        for part in parts
        if part.seconds > LONGEST_PART_SECONDS
    ]


def main() -> None:
    """Write the table."""
    found = measured(passes.recorded())
    if not found:
        name = all_parts()[0].name
        raise UserError(f"{passes.file()} has no pass to take seconds from. Run a part first: make soak PART={name}")
    rows = updated(json.loads(TABLE.read_text()), found)
    TABLE.write_text(json.dumps(rows, indent=1) + "\n")
    say(f"{TABLE.name} has {len(rows)} files. Commit it.")
    for message in too_long(all_parts()):
        say(message)


if __name__ == "__main__":
    sys.exit(console.run(main))
