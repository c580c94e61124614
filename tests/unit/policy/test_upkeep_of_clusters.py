"""Alerts and dumps of a cluster: what counts as one."""

from typing import Any

import pytest

from soperator_pulumi.policy import UNKNOWN, ResourceView
from soperator_pulumi.policy.accounting_records import ACCOUNTING_DUMPS
from soperator_pulumi.policy.alert_rules import ALERT_RULES
from tests.unit.policy.views import an_object, below, paths

METADATA = {"name": "a", "namespace": "hpc"}


def rules(kind: str = "PrometheusRule", **spec: Any) -> ResourceView:
    return an_object(f"monitoring.coreos.com/v1:{kind}", {"metadata": METADATA, "spec": spec})


@pytest.mark.parametrize(
    ("resource", "watches"),
    [
        (rules(groups=[{"rules": [{"alert": "A", "expr": "1"}]}]), True),
        (rules(groups=UNKNOWN), True),
        (rules(groups=[]), False),
        (rules(groups=[{"rules": [{"record": "a", "expr": "1"}]}]), False),
        (rules("PrometheusRulePatch", groups=[{"rules": [{"alert": "A"}]}]), False),
    ],
)
def test_a_cluster_is_watched_by_alerts(resource: ResourceView, *, watches: bool) -> None:
    controller = below("Controller", an_object("apps/v1:StatefulSet", {"metadata": METADATA}, "hpc-controller"))
    assert (paths(ALERT_RULES, controller, resource) == []) is watches


def test_a_patch_that_suspends_the_dumps_leaves_a_database_without() -> None:
    database = below("Database", an_object("apps/v1:StatefulSet", {"metadata": METADATA}, "hpc-database"))
    dumps = below("AccountingDumps", an_object("batch/v1:CronJob", {"metadata": METADATA}, "hpc-dumps"))
    suspended = an_object("batch/v1:CronJobPatch", {"metadata": METADATA, "spec": {"suspend": True}})
    assert paths(ACCOUNTING_DUMPS, database, dumps) == []
    assert paths(ACCOUNTING_DUMPS, database, dumps, suspended) == [""]
