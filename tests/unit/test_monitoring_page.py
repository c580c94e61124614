"""The page on monitoring: its tables are those of the sources, its commands work."""

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from soperator_pulumi import cli, parse_cluster
from soperator_pulumi.monitoring.alerts import ALERTS
from soperator_pulumi.monitoring.dashboards import DASHBOARDS
from soperator_pulumi.monitoring.grafana import dashboard_json
from soperator_pulumi.spec.metrics import MetricsSpec
from soperator_pulumi.spec.slurm_parameters import OWNED_PARAMETERS, PARAMETERS
from tests.rendered.cluster.clusters import a_spec as cluster_spec
from tools import paths
from tools.docs import monitoring_page

PAGE = monitoring_page.FILE.read_text()


def command(name: str) -> list[str]:
    """Return the arguments of a command of the page."""
    (words,) = re.findall(rf"(?m)^soperator (alerts {name} [^>\n]*)", PAGE)
    return shlex.split(words)


def examples() -> list[MetricsSpec]:
    """Return the settings that the page shows, in the page's order."""
    shown = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
    given = [item["config"]["soperator:cluster"]["metrics"] for item in shown]
    found = [parse_cluster({"name": "hpc", **cluster_spec(metrics=item)}).metrics for item in given]
    return [metrics for metrics in found if metrics is not None]


def test_the_examples_switch_on_what_the_page_describes() -> None:
    operator, events, conditions = examples()
    assert (operator.pod_monitor, operator.alerts is not None, operator.dashboards) == (True, True, True)
    assert events.events
    assert conditions.node_conditions


def test_the_tables_are_those_of_the_sources() -> None:
    assert monitoring_page.text() == PAGE, "run `make docs`"
    assert re.findall(r"(?m)^\| \[(\w+)\]\(runbooks", PAGE) == [alert.name for alert in ALERTS]
    assert re.findall(r"\| `/d/([\w-]+)` \|", PAGE) == [dashboard.uid for dashboard in DASHBOARDS]


def test_settings_of_logs_are_taken_and_refused_as_the_page_says() -> None:
    rows = dict(re.findall(r"(?m)^\| (`.+`) \| (takes|refuses) it \|", PAGE))
    given = {name: answer for names, answer in rows.items() for name in re.findall(r"`(\w+)`", names)}
    assert {name: "refuses" if name.lower() in OWNED_PARAMETERS else "takes" for name in given} == given
    assert given.keys() <= PARAMETERS.keys()
    assert len(given) == 8


def test_rules_are_printed_for_a_prometheus_without_an_operator(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(command("rules"))
    groups = yaml.safe_load(capsys.readouterr().out)["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert {rule["alert"] for rule in rules if "alert" in rule} == {alert.name for alert in ALERTS}
    assert all('namespace="hpc"' in rule["expr"] for rule in rules)


def test_dashboards_are_written_for_a_grafana_that_reads_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cli.main(command("dashboards"))
    found = {file.name: json.loads(file.read_text()) for file in (tmp_path / "folder").iterdir()}
    assert found == {f"{dashboard.uid}.json": dashboard_json(dashboard) for dashboard in DASHBOARDS}


def test_a_folder_that_cannot_be_written_is_refused_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert cli.main(["alerts", "dashboards", str(tmp_path / "file")]) == cli.EXIT_WRONG_USE
    assert "file: File exists. Give a folder that can be written." in capsys.readouterr().err


def test_the_settings_of_make_dashboard_are_those_of_the_makefile() -> None:
    (recipe,) = re.findall(r"(?m)^\t@\$\(PYTHON\) -m tools\.dashboard (.*)$", (paths.ROOT / "Makefile").read_text())
    assert set(re.findall(r"\$\((\w+)\)", recipe)) == set(re.findall(r"(?m)^\| `(\w+)=", PAGE))
