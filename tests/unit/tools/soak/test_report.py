"""`make soak-report` shows the last pass of each part, and which parts have none at the present commit."""

from collections.abc import Sequence

from tools.soak.parts import LANES, Piece, SoakPart
from tools.soak.passes import Pass, Revision
from tools.soak.report import differences, lines

LANE = LANES[0]
NOW = Revision("a" * 40, changed=False)
BEFORE = Revision("b" * 40, changed=False)
PARTS = [SoakPart(f"{number}/3", LANE, (Piece(f"test_{number}.py", 1),)) for number in (1, 2, 3)]


def a_pass(number: int, revision: Revision = NOW, *, total: int = 3, day: int = 1) -> Pass:
    return Pass(f"{number}/{total}", LANE.name, revision, f"2026-01-0{day}T10:20:30+00:00", 840, {})


def report(*recorded: Pass, parts: Sequence[SoakPart] = PARTS) -> list[str]:
    return [*lines(parts, recorded, NOW, {BEFORE.commit: 3}.get)]


def test_a_pass_is_shown_with_its_commit_time_and_length() -> None:
    assert report(a_pass(1))[1] == (
        "   1/3  functions and components, 1 file: passed at aaaaaaaaaa, 2026-01-01 10:20 UTC, in 14 minutes"
    )


def test_parts_without_a_pass_are_named() -> None:
    found = report(a_pass(2))

    assert found[1].endswith("1 file: never passed")
    assert found[-1] == "Never passed: 1/3, 3/3."


def test_a_pass_at_an_older_commit_is_shown_with_its_age() -> None:
    found = report(a_pass(1, BEFORE), a_pass(2), a_pass(3))

    assert "passed at bbbbbbbbbb, 3 commits ago, 2026-01-01" in found[1]
    assert found[4:] == ["Passed at an older commit: 1/3."]


def test_a_pass_at_a_commit_of_another_checkout_is_shown_as_such() -> None:
    assert "cccccccccc, a commit that this checkout does not have" in report(a_pass(1, Revision("c" * 40, False)))[1]


def test_a_pass_with_uncommitted_changes_counts_for_no_commit() -> None:
    found = report(a_pass(1, Revision(NOW.commit, changed=True)), a_pass(2), a_pass(3))

    assert "passed at aaaaaaaaaa+changes, " in found[1]
    assert found[4:] == ["Passed with uncommitted changes alone, which counts for no commit: 1/3."]


def test_a_pass_of_a_commit_is_shown_rather_than_a_later_one_with_changes() -> None:
    found = report(a_pass(1, BEFORE), a_pass(1, Revision(NOW.commit, changed=True), day=2))

    assert "passed at bbbbbbbbbb, 3 commits ago, 2026-01-01" in found[1]


def test_the_last_pass_of_several_is_shown() -> None:
    assert "2026-01-02" in report(a_pass(1, BEFORE), a_pass(1, day=2))[1]


def test_a_pass_of_another_division_is_of_no_part() -> None:
    assert report(a_pass(1, total=4))[-1] == "Never passed: 1/3, 2/3, 3/3."


def test_when_all_parts_passed_at_the_present_commit_the_report_ends_with_it() -> None:
    assert report(a_pass(1), a_pass(2), a_pass(3))[-1] == "All parts passed at aaaaaaaaaa."


def test_files_that_take_much_longer_or_shorter_than_by_the_table_are_listed() -> None:
    pieces = [Piece("slow.py", 50, 1, 2), Piece("slow.py", 50, 2, 2), Piece("right.py", 300), Piece("short.py", 200)]
    measured = {"slow.py": 170, "right.py": 390, "short.py": 20, "gone.py": 900}

    assert [*differences(pieces, measured)] == [
        "short.py: 20 s, 200 s by the table",
        "slow.py: 170 s, 100 s by the table",
    ]
