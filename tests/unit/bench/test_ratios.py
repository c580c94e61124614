"""The table of ratios."""

import pytest

from tests.bench import ratios
from tests.bench.ratios import Goal, Row, report, table


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[Row]:
    """The rows of this test alone."""
    monkeypatch.setattr(ratios, "rows", [])
    return ratios.rows


def test_a_report_adds_the_ratio_of_the_medians_to_the_table(rows: list[Row]) -> None:
    report("ours", [3, 1, 2], [4, 4, 40], "theirs", Goal(1))
    assert rows == [Row("ours", "theirs", 0.5, Goal(1))]


def test_series_of_different_lengths_are_no_ratio(rows: list[Row]) -> None:
    with pytest.raises(ValueError, match="shorter"):
        report("ours", [1, 2], [1], "theirs", Goal(1))
    assert rows == []


@pytest.mark.parametrize(("now", "met"), [(1.9, "yes"), (2.0, "yes"), (2.1, "no")])
def test_a_row_shows_what_against_what_the_goal_the_ratio_and_if_it_is_met(now: float, met: str) -> None:
    _, line = table([Row("up", "kubectl apply", now, Goal(2))])
    assert line.split()[:6] == ["2", f"{now:g}", met, "up,", "against", "kubectl"]


def test_a_limit_stands_below_its_row_with_the_reason() -> None:
    *_, last = table([Row("program", "an import", 4.9, Goal(2, 2.9, "kinds of objects are loaded, too"))])
    assert last.strip() == "limit 2.9: kinds of objects are loaded, too"
