"""All tests are in parts of at most a quarter of an hour or so, each once, and the same ones on each machine."""

import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tools import paths
from tools.console import UserError
from tools.images import SUITES
from tools.soak.parts import (
    LANES,
    LONGEST_PIECE_ALONE_SECONDS,
    LONGEST_PIECE_SECONDS,
    TABLE,
    Lane,
    Piece,
    SoakPart,
    all_parts,
    named,
    pack,
    pieces_of,
)
from tools.soak.seconds import too_long

FUNCTIONS = LANES[0]


def part(*pieces: Piece, lane: Lane = FUNCTIONS) -> SoakPart:
    return SoakPart("1/1", lane, pieces)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with three files of tests."""
    for name, text in (("test_a", ""), ("test_b", ""), ("test_c", "pytestmark = pytest.mark.alone\n")):
        file = tmp_path / f"tests/unit/{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def test_every_test_file_of_the_tree_is_in_the_parts_of_its_lanes_once() -> None:
    shares: defaultdict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for all_part in all_parts():
        for piece in all_part.pieces:
            shares[all_part.lane.name, piece.file].append((piece.share, piece.shares))
    expected = {
        (lane.name, path.relative_to(paths.ROOT).as_posix())
        for lane in LANES
        for folder in lane.folders
        for path in (paths.ROOT / folder).rglob("test_*.py")
    }

    assert shares.keys() == expected
    assert all(sorted(found) == [(n + 1, len(found)) for n in range(len(found))] for found in shares.values())


def test_the_lanes_have_every_folder_of_tests_but_the_benchmarks() -> None:
    found = {path.relative_to(paths.ROOT).parts[1] for path in (paths.ROOT / "tests").rglob("test_*.py")}

    assert {folder for lane in LANES for folder in lane.folders} == {"images", *(f"tests/{name}" for name in found)} - {
        "tests/bench"
    }


def test_tests_of_clusters_run_on_each_version_of_slurm() -> None:
    assert {lane.slurm for lane in LANES if "tests/cluster" in lane.folders} == {*SUITES}


def test_no_part_is_too_long_by_the_table() -> None:
    assert too_long(all_parts()) == []


def test_a_part_that_is_too_long_is_reported_with_the_number_to_raise() -> None:
    (message,) = too_long([part(Piece("tests/unit/test_a.py", 1100))])

    assert message.startswith("Part 1/1 takes 1120 s by the table, and may take 1020 s.")
    assert 'the lane "functions and components" in tools/soak/parts.py' in message


def test_the_table_has_files_of_the_tree_alone() -> None:
    assert [file for file in json.loads(TABLE.read_text()) if not (paths.ROOT / file).exists()] == []


def test_the_same_tree_gives_the_same_parts() -> None:
    table = json.loads(TABLE.read_text())

    assert all_parts() == all_parts(table=dict(reversed(table.items())))


def test_the_examples_for_developers_name_the_right_total() -> None:
    pages = (paths.ROOT / "Makefile").read_text() + (paths.ROOT / "CONTRIBUTING.md").read_text()

    assert {int(total) for total in re.findall(r"PART=\d+/(\d+)", pages)} == {len(all_parts())}


def test_parts_are_about_equally_long() -> None:
    pieces = [Piece(f"test_{number}.py", seconds) for number, seconds in enumerate([9, 1, 1, 8, 7, 2, 1, 1])]

    assert [sum(piece.seconds for piece in found) for found in pack(pieces, 3)] == [10, 10, 10]


def test_a_file_that_takes_long_is_split_into_equal_shares(tree: Path) -> None:
    pieces = pieces_of(FUNCTIONS, tree, {"tests/unit/test_a.py": 2.5 * LONGEST_PIECE_SECONDS})

    assert [(piece.label, round(piece.seconds)) for piece in pieces if piece.file.endswith("a.py")] == [
        (f"tests/unit/test_a.py {share}/3", round(2.5 * LONGEST_PIECE_SECONDS / 3)) for share in (1, 2, 3)
    ]


def test_a_file_that_runs_alone_is_split_only_if_it_is_too_long_for_a_part(tree: Path) -> None:
    table = {"tests/unit/test_c.py": float(LONGEST_PIECE_ALONE_SECONDS)}
    assert "tests/unit/test_c.py" in [piece.label for piece in pieces_of(FUNCTIONS, tree, table)]

    table["tests/unit/test_c.py"] += 1
    assert "tests/unit/test_c.py 2/2" in [piece.label for piece in pieces_of(FUNCTIONS, tree, table)]


def test_a_new_file_counts_with_the_default_of_its_lane(tree: Path) -> None:
    pieces = pieces_of(FUNCTIONS, tree, {"tests/unit/test_a.py": 30})

    assert Counter(piece.seconds for piece in pieces) == {30: 1, FUNCTIONS.default_seconds: 2}


def test_a_file_that_says_so_runs_with_nothing_at_the_same_time(tree: Path) -> None:
    found = part(*pieces_of(FUNCTIONS, tree, {}))

    assert [piece.file for piece in found.alone] == ["tests/unit/test_c.py"]
    assert [piece.file for piece in found.shared] == ["tests/unit/test_a.py", "tests/unit/test_b.py"]


def test_two_files_run_at_the_same_time_and_those_alone_afterwards() -> None:
    pieces = [Piece("a", 300), Piece("b", 200), Piece("c", 150), Piece("d", 60, is_alone=True)]

    assert part(*pieces).seconds == FUNCTIONS.start_seconds + 350 + 60


@pytest.mark.parametrize("name", ["0/14", "3/12", "3", "last"])
def test_a_part_that_is_none_is_refused_with_those_that_are(name: str) -> None:
    parts = [SoakPart(f"{number}/14", FUNCTIONS, ()) for number in range(1, 15)]

    with pytest.raises(UserError, match=re.escape(f'PART: got "{name}", needs a part from 1/14 to 14/14')):
        named(parts, name)


def test_a_part_is_found_by_number_and_total() -> None:
    parts = all_parts()

    assert named(parts, f"3/{len(parts)}") is parts[2]
