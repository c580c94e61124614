"""Dumps of a cluster's accounting: what counts as one, and how often they are made."""

from typing import Any

import pytest

from soperator_pulumi.policy import UNKNOWN, ResourceView
from soperator_pulumi.policy.accounting_records import ACCOUNTING_DUMPS, longest_gap
from tests.unit.policy.views import an_object, below, paths

METADATA = {"name": "a", "namespace": "hpc"}


def a_dump(schedule: Any, keep: str = "14") -> ResourceView:
    pods = {
        "spec": {
            "containers": [{"name": "dump", "env": [{"name": "A", "value": "1"}, {"name": "KEEP", "value": keep}]}]
        }
    }
    spec = {"schedule": schedule, "jobTemplate": {"spec": {"template": pods}}}
    return below("AccountingDumps", an_object("batch/v1:CronJob", {"metadata": METADATA, "spec": spec}, "hpc-dumps"))


@pytest.mark.parametrize(
    ("schedule", "days"),
    [
        ("@hourly", 1),
        ("30 1 * * *", 1),
        ("@weekly", 7),
        ("0 0 * * 0", 7),
        ("0 0 * * SUN", 7),
        ("0 0 * * 7", 7),
        ("0 3 * * 1-5", 3),
        ("0 3 * * mon,thu", 4),
        ("0 0 */7 * *", 7),
        ("0 0 1/7 * *", 7),
        ("0 0 1,8,15,22 * *", 10),
        ("0 0 1 * 1", 7),
        ("@monthly", 31),
        ("0 0 31 * *", 61),
        ("30 1 1 1 *", 366),
        ("0 0 1 jan *", 366),
        ("@yearly", 366),
        ("0 0 29 2 *", 1461),
        ("@every 24h", 1),
        ("@every 1h30m", 1),
        ("@every 36h", 2),
        ("@every 720h", 30),
        ("@every day", None),
        ("0 0 30 2 *", None),
        ("often", None),
    ],
)
def test_a_schedule_starts_after_some_days(schedule: str, days: int | None) -> None:
    assert longest_gap(schedule) == days


def test_dumps_are_made_and_kept_often_enough() -> None:
    kept = "spec.jobTemplate.spec.template.spec.containers[0].env[1].value"
    assert paths(ACCOUNTING_DUMPS, a_dump("@weekly", "3")) == []
    assert paths(ACCOUNTING_DUMPS, a_dump("30 1 1 1 *", "1")) == ["spec.schedule", kept]
    assert paths(ACCOUNTING_DUMPS, a_dump("0 0 30 2 *")) == ["spec.schedule"]
    assert paths(ACCOUNTING_DUMPS, a_dump("@weekly"), longest_days=1) == ["spec.schedule"]
    assert paths(ACCOUNTING_DUMPS, a_dump("@daily", "3"), minimum_kept=4) == [kept]
    assert paths(ACCOUNTING_DUMPS, a_dump(UNKNOWN), unknown=True) == ["spec.schedule"]


def test_a_patch_that_suspends_the_dumps_leaves_a_database_without() -> None:
    database = below("Database", an_object("apps/v1:StatefulSet", {"metadata": METADATA}, "hpc-database"))
    dumps = a_dump("@daily")
    suspended = an_object("batch/v1:CronJobPatch", {"metadata": METADATA, "spec": {"suspend": True}})
    assert paths(ACCOUNTING_DUMPS, database, dumps) == []
    assert paths(ACCOUNTING_DUMPS, database, dumps, suspended) == [""]
