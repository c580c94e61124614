"""The runbooks: a section for each alert, with a way to look and a way to fix."""

import re

import pytest

from soperator_pulumi.monitoring.alerts import ALERTS
from soperator_pulumi.monitoring.prometheus_rules import RUNBOOKS, Alert, rule_groups
from tools import paths

PAGE = (paths.ROOT / RUNBOOKS).read_text()
SECTIONS = dict(re.findall(r"(?ms)^## (\w+)\n(.*?)(?=^## |\Z)", PAGE))


def test_the_sections_are_those_of_the_alerts_in_their_order() -> None:
    assert [*SECTIONS] == [alert.name for alert in ALERTS]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_a_section_has_a_meaning_and_a_fix(alert: Alert) -> None:
    meaning, *_ = SECTIONS[alert.name].strip().split("\n\n")
    assert len(meaning.split()) > 5
    assert re.search(r"(?m)^Fix\b", SECTIONS[alert.name])


def test_an_alert_links_to_its_section() -> None:
    (group,) = rule_groups("hpc", [], ALERTS[:1], "https://wiki.example.com/runbooks")
    annotations = group["rules"][0]["annotations"]
    anchor = ALERTS[0].name.lower()
    assert annotations["runbook"] == f"docs/runbooks.md#{anchor}"
    assert annotations["runbook_url"] == f"https://wiki.example.com/runbooks#{anchor}"
