"""`soperator alerts`: rules and dashboards as files, for clusters without Prometheus' operator."""

import argparse
import sys
from pathlib import Path

from soperator_pulumi.cli.any_command import Command
from soperator_pulumi.errors import SoperatorError
from soperator_pulumi.monitoring.alerts import ALERTS
from soperator_pulumi.monitoring.dashboards import DASHBOARDS
from soperator_pulumi.monitoring.grafana import dashboard_files
from soperator_pulumi.monitoring.prometheus_rules import rule_groups, rules_yaml
from soperator_pulumi.monitoring.recordings import RECORDINGS


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    rules = commands.add_parser("rules", help="print the rules of one cluster, for `rule_files` of Prometheus")
    rules.add_argument("namespace", help="namespace of the cluster")
    rules.add_argument("--runbooks", metavar="ADDRESS", help="address of your copy of docs/runbooks.md, for links")
    dashboards = commands.add_parser("dashboards", help="write the dashboards, one JSON file per dashboard")
    dashboards.add_argument("folder", type=Path, help="folder for the files")


def run(given: argparse.Namespace) -> int:
    """Print the rules of a cluster, or write the dashboards."""
    if given.command == "rules":
        sys.stdout.write(rules_yaml(rule_groups(given.namespace, RECORDINGS, ALERTS, given.runbooks)))
        return 0
    try:
        given.folder.mkdir(parents=True, exist_ok=True)
        for name, text in dashboard_files(DASHBOARDS).items():
            (given.folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise SoperatorError(f"{error.filename}: {error.strerror}. Give a folder that can be written.") from None
    return 0


COMMAND = Command(configure=configure, run=run, example="soperator alerts rules hpc > rules.yaml")
