"""Drains and rolling updates: lengths of time, shares, and what is refused."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from soperator_pulumi.errors import SpecError
from soperator_pulumi.spec.drain import DrainSpec, OnTimeout, RollingUpdateSpec, parse_drain
from soperator_pulumi.spec.types.duration import Duration, duration_text
from soperator_pulumi.spec.types.int_or_percent import Share

_duration: TypeAdapter[timedelta] = TypeAdapter(Duration)
_share: TypeAdapter[Share] = TypeAdapter(Share)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0s", 0), ("90s", 90), ("10m", 600), ("2h", 7200), ("7d", 604_800), ("1h30m", 5400), ("1d1s", 86_401)],
)
def test_a_length_of_time_is_read_as_people_write_it(text: str, seconds: int) -> None:
    assert _duration.validate_python(text) == timedelta(seconds=seconds)


@given(st.integers(0, 10**9).map(lambda seconds: timedelta(seconds=seconds)))
def test_a_length_of_time_written_out_and_read_again_is_the_same(duration: timedelta) -> None:
    assert _duration.validate_python(duration_text(duration)) == duration
    assert _duration.dump_python(duration, mode="json") == duration_text(duration)


@pytest.mark.parametrize("value", ["", "10", 10, 1.5, "1.5h", "-1m", "30m1h", "1h 30m", "P1D", "2w", True, None, "1M"])
def test_what_is_no_length_of_time_is_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        _duration.validate_python(value)


@pytest.mark.parametrize(
    ("share", "total", "nodes"),
    [(3, 10, 3), (3, 2, 2), (0, 5, 0), ("10%", 25, 2), ("10%", 9, 0), ("100%", 7, 7), ("0%", 7, 0), (3.0, 9, 3)],
)
def test_a_share_is_a_number_of_nodes_and_never_more_than_there_are(share: float | str, total: int, nodes: int) -> None:
    assert _share.validate_python(share).of(total) == nodes


@given(st.integers(0, 10**6) | st.integers(0, 100).map(lambda percent: f"{percent}%"))
def test_a_share_written_out_and_read_again_is_the_same(share: int | str) -> None:
    read = _share.validate_python(share)
    assert _share.dump_python(read, mode="json") == share
    assert _share.validate_python(read) is read


@pytest.mark.parametrize("value", [-1, 1.5, "3", "101%", "%", "1.5%", "-5%", True, None, float("inf")])
def test_what_is_no_share_is_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        _share.validate_python(value)


def test_by_default_no_job_is_ended_for_a_drain_and_everything_is_put_back() -> None:
    assert DrainSpec().on_timeout is OnTimeout.ABORT
    assert DrainSpec().timeout == timedelta(hours=2)
    assert RollingUpdateSpec().max_unavailable == Share(10, percent=True)


def test_a_long_time_for_jobs_needs_a_longer_wait_only_where_the_deployment_continues_to_wait() -> None:
    assert parse_drain({"timeout": "30d"}, "here").max_wait == timedelta(days=7)
    with pytest.raises(SpecError, match=r'max_wait: "7d" is shorter than timeout = "30d"'):
        parse_drain({"timeout": "30d", "on_timeout": "wait"}, "here")
    with pytest.raises(ValidationError, match=r'"7d" is shorter than timeout'):
        DrainSpec(timeout=timedelta(days=30), on_timeout=OnTimeout.WAIT)


def test_all_problems_of_a_policy_alone_stand_in_one_message() -> None:
    with pytest.raises(SpecError) as caught:
        parse_drain({"timeout": "9d", "on_timeout": "wait", "wait": "no", "gracee": "5m"}, "SOPERATOR_DRAIN")
    assert str(caught.value).splitlines() == [
        "SOPERATOR_DRAIN has 3 problems:",
        '  gracee: unknown key. Did you mean "grace"?',
        (
            '  max_wait: "7d" is shorter than timeout = "9d", after which the wait continues. Raise max_wait, '
            "or lower the timeout."
        ),
        '  wait: got "no", needs true or false.',
    ]


@pytest.mark.parametrize("data", ["cancel", None, ["timeout"]])
def test_a_policy_that_is_no_mapping_is_a_problem(data: object) -> None:
    with pytest.raises(SpecError, match="needs a mapping that describes a drain policy"):
        parse_drain(data, "SOPERATOR_DRAIN")
