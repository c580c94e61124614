"""`make soak-report`: prints where and when parts last passed, and files for which the table of seconds is wrong."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from soperator_pulumi.wording import counted
from tools import console
from tools.soak import passes, seconds
from tools.soak.part_run import minutes
from tools.soak.parts import Piece, SoakPart, all_parts
from tools.soak.passes import Pass, Revision

_MUCH_SECONDS = 60
"""Smallest difference that counts, if it is also more than half of the table's seconds."""


def lines(
    parts: Sequence[SoakPart], recorded: Sequence[Pass], now: Revision, commits_since: Callable[[str], int | None]
) -> Iterator[str]:
    """Yield the report: one line per part, then the parts without a pass at the present commit, by reason.

    Args:
        parts: All parts.
        recorded: Passes, the last one last.
        now: State of the tree.
        commits_since: Returns the number of commits since one, None for one that the checkout does not have.
    """
    yield f"The tree is at {now}."
    never, changed, older = [], [], []
    for part in parts:
        head = f"{part.name:>6}  {part.lane.name}, {counted(len(part.files), 'file')}"
        last = last_pass(part, recorded)
        if last is None:
            never.append(part.name)
            yield f"{head}: never passed"
            continue
        ended = datetime.fromisoformat(last.ended)
        age = _age(last.revision, now, commits_since)
        yield f"{head}: passed at {last.revision}{age}, {ended:%Y-%m-%d %H:%M} UTC, in {minutes(last.seconds)}"
        if last.revision.changed:
            changed.append(part.name)
        elif last.revision.commit != now.commit:
            older.append(part.name)
    for what, names in (
        ("Never passed", never),
        ("Passed with uncommitted changes alone, which counts for no commit", changed),
        ("Passed at an older commit", older),
    ):
        if names:
            yield f"{what}: {', '.join(names)}."
    if not never + changed + older:
        yield f"All parts passed at {now.commit[:10]}."


def last_pass(part: SoakPart, recorded: Iterable[Pass]) -> Pass | None:
    """Return the last pass of a part. One with uncommitted changes counts only if there is no other."""
    found = [item for item in recorded if (item.part, item.lane) == (part.name, part.lane.name)]
    return next((item for item in reversed(found) if not item.revision.changed), found[-1] if found else None)


def differences(pieces: Iterable[Piece], measured: Mapping[str, float]) -> Iterator[str]:
    """Yield a line for every file whose measured seconds differ much from the table's."""
    expected: dict[str, float] = {}
    for piece in pieces:
        expected[piece.file] = piece.seconds * piece.shares
    for file in sorted(expected.keys() & measured.keys()):
        difference = abs(measured[file] - expected[file])
        if difference > max(_MUCH_SECONDS, expected[file] / 2):
            yield f"{file}: {measured[file]:.0f} s, {expected[file]:.0f} s by the table"


def main() -> None:
    """Print the report."""
    parts, recorded = all_parts(), passes.recorded()
    print(*lines(parts, recorded, passes.revision(), passes.commits_since), sep="\n")
    pieces = [piece for part in parts for piece in part.pieces]
    if found := [*differences(pieces, seconds.measured(recorded))]:
        print("Files that differ much from the table, which `.venv/bin/python -m tools.soak.seconds` writes:")
        print(*found, sep="\n")


def _age(revision: Revision, now: Revision, commits_since: Callable[[str], int | None]) -> str:
    if revision.commit == now.commit:
        return ""
    number = commits_since(revision.commit)
    if number is None:
        return ", a commit that this checkout does not have"
    return f", {counted(number, 'commit')} ago"


if __name__ == "__main__":
    sys.exit(console.run(main))
