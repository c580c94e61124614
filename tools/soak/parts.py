"""Division of all tests into parts, from a table of seconds by file. The same tree and table give the same parts.

A part has tests of one lane: those that run with the same settings. A file that takes longer than others is split into
shares, so that parts can be of equal length.
"""

import heapq
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools import paths
from tools.console import UserError
from tools.images import DEFAULT_SLURM, SUITES

TABLE = Path(__file__).with_name("seconds.json")
"""Seconds of files with full counts, if they differ from their lane's default. `seconds.py` writes it."""

LONGEST_PART_SECONDS = 17 * 60
"""Time limit of a part, by the table. The rest of 20 minutes is for a machine's cold start: test images, charts."""

LONGEST_PIECE_SECONDS = 400
"""Time from which a file is split, so that one worker does not wait for the other at the end of a part."""

LONGEST_PIECE_ALONE_SECONDS = 960
"""Time from which a file that runs alone is split. No worker waits for another, and its tests may share a machine."""

WORKERS = 2
"""Number of files that run in parallel on a machine with two cores."""

ALONE = "pytest.mark.alone"
"""Mark in files whose tests measure the machine."""


@dataclass(frozen=True)
class Lane:
    """Tests that run with the same settings."""

    name: str
    folders: tuple[str, ...]
    parts: int
    """Number of parts, so that none is longer than `LONGEST_PART_SECONDS` by the table."""
    default_seconds: int
    """Seconds of a file that is not in the table."""
    slurm: str | None = None
    """Version of Slurm in the lane's clusters; None for tests without one."""

    @property
    def start_seconds(self) -> int:
        """Return the seconds until the first test runs, for imports and the start of the cluster."""
        return 20 if self.slurm is None else 60


LANES = (
    Lane("functions and components", ("images", "tests/rendered", "tests/unit"), parts=6, default_seconds=2),
    Lane("engines and clusters", ("tests/cluster", "tests/engine"), parts=9, default_seconds=45, slurm=DEFAULT_SLURM),
    *(
        Lane(f"clusters with Slurm {version}", ("tests/cluster",), parts=8, default_seconds=45, slurm=version)
        for version in SUITES
        if version != DEFAULT_SLURM
    ),
    Lane("machines of the lab", ("tests/machines",), parts=6, default_seconds=390),
)


@dataclass(frozen=True)
class Piece:
    """A test file, or a share of its tests."""

    file: str
    """Path below the root of the tree."""
    seconds: float
    share: int = 1
    """Number of this share, from 1 to `shares`."""
    shares: int = 1
    is_alone: bool = False
    """True if nothing else may run at the same time."""

    @property
    def label(self) -> str:
        """Return the file, with its share if it is split: `tests/unit/test_long.py 2/3`."""
        return self.file if self.shares == 1 else f"{self.file} {self.share}/{self.shares}"


@dataclass(frozen=True)
class SoakPart:
    """Tests that `make soak PART=3/29` runs."""

    name: str
    """Number and total: `3/14`."""
    lane: Lane
    pieces: tuple[Piece, ...]
    """Pieces, the longest first."""

    @property
    def files(self) -> list[str]:
        """Return the files without repetitions, in the order of pieces."""
        return [*dict.fromkeys(piece.file for piece in self.pieces)]

    @property
    def shared(self) -> tuple[Piece, ...]:
        """Return the pieces that run in parallel with others of the part."""
        return tuple(piece for piece in self.pieces if not piece.is_alone)

    @property
    def alone(self) -> tuple[Piece, ...]:
        """Return the pieces that run one after another."""
        return tuple(piece for piece in self.pieces if piece.is_alone)

    @property
    def seconds(self) -> float:
        """Return the seconds that the part takes, by the table."""
        busy = [0.0] * WORKERS
        for piece in self.shared:
            heapq.heapreplace(busy, busy[0] + piece.seconds)
        return self.lane.start_seconds + max(busy) + sum(piece.seconds for piece in self.alone)


def all_parts(root: Path = paths.ROOT, table: Mapping[str, float] | None = None) -> list[SoakPart]:
    """Return the parts of all lanes in order.

    Args:
        root: Folder of the source tree.
        table: Seconds by file; by default those of `TABLE`.

    """
    table = json.loads(TABLE.read_text()) if table is None else table
    packed = [(lane, pieces) for lane in LANES for pieces in pack(pieces_of(lane, root, table), lane.parts)]
    return [SoakPart(f"{number}/{len(packed)}", lane, pieces) for number, (lane, pieces) in enumerate(packed, start=1)]


def named(parts: Sequence[SoakPart], name: str) -> SoakPart:
    """Return the part with a name such as `3/14`.

    Raises:
        UserError: There is none: a name with another total belongs to another division.
    """
    for part in parts:
        if part.name == name:
            return part
    total = len(parts)
    raise UserError(
        f'PART: got "{name}", needs a part from 1/{total} to {total}/{total}. `make soak-report` lists them.'
    )


def files_of(lane: Lane, root: Path = paths.ROOT) -> list[str]:
    """Return the paths of the lane's files below the root."""
    found = (path for folder in lane.folders for path in (root / folder).rglob("test_*.py"))
    return sorted(path.relative_to(root).as_posix() for path in found)


def pieces_of(lane: Lane, root: Path, table: Mapping[str, float]) -> list[Piece]:
    """Return the files of a lane, long ones divided into equal shares."""
    pieces = []
    for file in files_of(lane, root):
        seconds = table.get(file, lane.default_seconds)
        is_alone = ALONE in (root / file).read_text()
        shares = math.ceil(seconds / (LONGEST_PIECE_ALONE_SECONDS if is_alone else LONGEST_PIECE_SECONDS))
        pieces += [Piece(file, seconds / shares, share + 1, shares, is_alone) for share in range(shares)]
    return pieces


def pack(pieces: Iterable[Piece], parts: int) -> list[tuple[Piece, ...]]:
    """Return the pieces in this many parts of similar length: the longest first, into the shortest part so far."""

    def cost(piece: Piece) -> float:
        return piece.seconds * (WORKERS if piece.is_alone else 1)

    packed: list[list[Piece]] = [[] for _ in range(parts)]
    shortest = [(0.0, number) for number in range(parts)]
    for piece in sorted(pieces, key=lambda piece: (-cost(piece), piece.label)):
        total, number = shortest[0]
        packed[number].append(piece)
        heapq.heapreplace(shortest, (total + cost(piece), number))
    return [tuple(part) for part in packed]
