"""Rules in the hands of Prometheus: each alert fires by its fault alone, and none on a healthy cluster."""

import re
from pathlib import Path

import pytest

from soperator_pulumi.monitoring.alerts import ALERTS
from soperator_pulumi.monitoring.prometheus_rules import Alert
from soperator_pulumi.monitoring.recordings import RECORDINGS
from tests.unit.monitoring.faults_in_metrics import FAULTS
from tests.unit.monitoring.programs_of_prometheus import promtool
from tests.unit.monitoring.promql import judged, rules_file, told
from tests.unit.monitoring.world import HEALTHY, changed, slurm


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of rules of one cluster."""
    return rules_file(tmp_path_factory.mktemp("rules"))


def firing(*without: str) -> str:
    """Return the query for alerts that fire, besides some."""
    return f'count by (alertname) (ALERTS{{alertstate="firing",alertname!~"{"|".join(("none", *without))}"}}) > bool 0'


def test_prometheus_takes_all_rules(rules: Path) -> None:
    said = promtool("check", "rules", "--lint=all", "--lint-fatal", rules)
    assert f"{len(ALERTS) + len(RECORDINGS)} rules found" in said


def test_no_alert_fires_on_a_healthy_cluster(rules: Path, tmp_path: Path) -> None:
    times = ("30m", "2h", "5h")
    judged(rules, tmp_path, HEALTHY, [(time, firing(), "") for time in times])


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_fires_by_its_fault_and_after_its_time(alert: Alert, rules: Path, tmp_path: Path) -> None:
    fault = FAULTS[alert.name]
    alone = firing(*fault.others)
    of_alert = f'{{alertname="{alert.name}"}}'
    labels = ", ".join(f'{key}="{value}"' for key, value in fault.labels.items())
    named = f'count by ({", ".join(fault.labels)}) (ALERTS{{alertname="{alert.name}",alertstate="firing"}})'
    expected = [(fault.before, alone, ""), (fault.after, alone, of_alert), (fault.after, named, f"{{{labels}}}")]
    judged(rules, tmp_path, fault.world, expected, every=fault.every)


@pytest.mark.parametrize(
    ("end", "words"),
    [("266400", "ends in 3d 0h 0m 0s"), ("7200", "ended 0s ago"), ("3600", "ended 1h 0m 0s ago")],
    ids=["before", "at", "after"],
)
def test_the_title_about_a_certificate_reads_well_before_and_after_its_end(
    end: str, words: str, rules: Path, tmp_path: Path
) -> None:
    name = "SlurmRestCertificateEnds"
    world = changed(HEALTHY, (), slurm("slurm_rest_certificate_end_time_seconds", value=end))
    told(rules, tmp_path, world, name, f"The certificate of the REST API {words}")


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_the_texts_of_an_alert_name_labels_that_it_has(alert: Alert) -> None:
    named = set(re.findall(r"\$labels\.(\w+)", alert.summary + alert.description))
    assert named <= set(FAULTS[alert.name].labels)


def test_every_fault_is_one_of_an_alert() -> None:
    assert set(FAULTS) == {alert.name for alert in ALERTS}
