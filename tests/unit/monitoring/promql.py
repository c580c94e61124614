"""Rules and queries in the hands of promtool."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from soperator_pulumi.monitoring.alerts import ALERTS
from soperator_pulumi.monitoring.prometheus_rules import rule_groups, rules_yaml
from soperator_pulumi.monitoring.recordings import RECORDINGS
from tests.unit.monitoring.programs_of_prometheus import promtool
from tests.unit.monitoring.world import NAMESPACE, Series

_TEXTS = re.compile(r'"[^"]*"')
_LABELS = re.compile(r"\b(?:by|on|ignoring|group_left|group_right|without)\s*\([^)]*\)")
_SELECTORS = re.compile(r"\{[^}]*\}")
_RANGES = re.compile(r"\[[^\]]*\]")
_NAMES = re.compile(r"\b([A-Za-z_][\w:]*)\b(?!\s*\()")
_WORDS = {"and", "or", "unless", "bool", "by", "on", "offset"}


def metrics(expr: str) -> set[str]:
    """Return the names of the metrics in a query."""
    for part in (_TEXTS, _SELECTORS, _RANGES, _LABELS):
        expr = part.sub(" ", expr)
    return {name for name in _NAMES.findall(expr) if name not in _WORDS}


def rules_file(folder: Path) -> Path:
    """Write all rules of one cluster into a file."""
    file = folder / "rules.yaml"
    file.write_text(rules_yaml(rule_groups(NAMESPACE, RECORDINGS, ALERTS)))
    return file


def judged(
    rules: Path, folder: Path, world: Series, expected: list[tuple[str, str, str]], *, every: str = "1m"
) -> None:
    """Have promtool evaluate all rules on a world, time after time; queries have to have the expected answers.

    Args:
        rules: The file of rules.
        folder: Folder for the test's own file.
        world: Series.
        expected: Times, queries and the labels of the one sample of each (empty: no sample), whose value is 1.
        every: Time between evaluations.
    """
    tests = [
        {"eval_time": time, "expr": query, "exp_samples": [{"labels": labels, "value": 1}] if labels else []}
        for time, query, labels in expected
    ]
    _tested(rules, folder, world, {"promql_expr_test": tests}, every)


def told(rules: Path, folder: Path, world: Series, name: str, summary: str) -> None:
    """Have promtool evaluate all rules on a world; an alert without own labels has to fire after 2 h."""
    (alert,) = (alert for alert in ALERTS if alert.name == name)
    texts = {"summary": summary, "description": alert.description, "runbook": alert.runbook}
    labels = {"namespace": NAMESPACE, "severity": alert.severity.value}
    fires = {"eval_time": "2h", "alertname": name, "exp_alerts": [{"exp_labels": labels, "exp_annotations": texts}]}
    _tested(rules, folder, world, {"alert_rule_test": [fires]}, "1m")


def _tested(rules: Path, folder: Path, world: Series, tests: Mapping[str, Any], every: str) -> None:
    series = [{"series": name, "values": values} for name, values in world.items()]
    suite: Mapping[str, Any] = {
        "rule_files": [str(rules)],
        "evaluation_interval": every,
        "tests": [{"interval": "1m", "input_series": series, **tests}],
    }
    file = folder / "tests.yaml"
    file.write_text(yaml.safe_dump(suite))
    promtool("test", "rules", file)
