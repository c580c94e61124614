"""Schedules that a CronJob takes, and those that the API server refuses."""

import pytest

from soperator_pulumi.errors import SpecError
from tests.strategies import a_spec


@pytest.mark.parametrize(
    "schedule",
    [
        "@hourly",
        "@daily",
        "30 1 * * *",
        "*/15 * * * *",
        "0,30 8-18/2 1,15 * mon-fri",
        "59 23 31 12 6",
        "00 01 01 01 0",
        "5/10 * * JAN,jul Sun",
    ],
)
def test_a_schedule_of_cron_is_taken(schedule: str) -> None:
    accounting = a_spec(accounting={"dump": {"schedule": schedule}}).accounting

    assert accounting is not None
    assert accounting.dump is not None
    assert accounting.dump.schedule == schedule


@pytest.mark.parametrize(
    "schedule",
    [
        "",
        "@reboot",
        "@every 1h",
        "daily",
        "30 1 * *",
        "30 1 * * * *",
        "60 1 * * *",
        "30 24 * * *",
        "30 1 0 * *",
        "30 1 32 * *",
        "30 1 * 13 *",
        "30 1 * * 7",
        "*/0 1 * * *",
        "1-70 1 * * *",
        "30,, 1 * * *",
        "30  1 * * *",
        "30 1 * * *\n",
        "TZ=UTC 30 1 * * *",
    ],
)
def test_another_text_is_refused_with_what_is_allowed(schedule: str) -> None:
    with pytest.raises(SpecError, match="needs a schedule of cron with five fields") as raised:
        a_spec(accounting={"dump": {"schedule": schedule}})

    assert [problem.path for problem in raised.value.problems] == ["accounting.dump.schedule"]
