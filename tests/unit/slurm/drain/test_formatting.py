"""Lengths of time and moments, as messages say them."""

from datetime import UTC, timedelta, timezone

import pytest

from soperator_pulumi.slurm.drain.formatting import lasting, moment, span
from tests.unit.slurm.drain.situation import HOUR, NOW, reservation


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (-5, "0 s"),
        (59.6, "1 min"),
        (90, "1 min 30 s"),
        (HOUR, "1 h"),
        (HOUR + 12 * 60 + 30, "1 h 12 min"),
        (HOUR + 5, "1 h"),
        (7 * 24 * HOUR, "7 d"),
        (26 * HOUR, "1 d 2 h"),
    ],
)
def test_a_length_of_time_is_said_by_its_two_largest_units(seconds: float, said: str) -> None:
    assert span(seconds) == said


def test_a_moment_of_another_day_has_its_date() -> None:
    assert moment(NOW + 60, NOW, UTC) == "13:01"
    assert moment(NOW + 24 * HOUR, NOW, UTC) == "2026-11-25 13:00"


def test_moments_are_shown_in_the_reader_s_zone() -> None:
    assert moment(NOW, NOW, timezone(timedelta(hours=9))) == "22:00"


def test_a_reservation_that_begins_later_says_when() -> None:
    assert lasting(reservation("maint", "a", ends_in=HOUR), NOW, UTC) == "reservation maint until 14:00"
    later = reservation("maint", "a", starts_in=HOUR, ends_in=2 * HOUR)
    assert lasting(later, NOW, UTC) == "reservation maint from 14:00 until 15:00"
