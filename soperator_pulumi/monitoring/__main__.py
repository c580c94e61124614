"""`python -m soperator_pulumi.monitoring`: rules and dashboards as files, for clusters without an operator for them."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from soperator_pulumi.monitoring.alerts import ALERTS
from soperator_pulumi.monitoring.dashboards import DASHBOARDS
from soperator_pulumi.monitoring.grafana import dashboard_files
from soperator_pulumi.monitoring.prometheus_rules import rule_groups, rules_yaml
from soperator_pulumi.monitoring.recordings import RECORDINGS


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the rules of a cluster, or write the dashboards."""
    parser = argparse.ArgumentParser(
        prog="python -m soperator_pulumi.monitoring", description="Write rules of Prometheus and dashboards of Grafana."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    rules = commands.add_parser("rules", help="print the rules of one cluster, for `rule_files` of Prometheus")
    rules.add_argument("namespace", help="namespace of the cluster")
    rules.add_argument("--runbooks", metavar="ADDRESS", help="address of your copy of docs/runbooks.md, for links")
    dashboards = commands.add_parser("dashboards", help="write the dashboards, one JSON file per dashboard")
    dashboards.add_argument("folder", type=Path, help="folder for the files")
    given = parser.parse_args(arguments)
    if given.command == "rules":
        sys.stdout.write(rules_yaml(rule_groups(given.namespace, RECORDINGS, ALERTS, given.runbooks)))
        return
    try:
        given.folder.mkdir(parents=True, exist_ok=True)
        for name, text in dashboard_files(DASHBOARDS).items():
            (given.folder / name).write_text(text)
    except OSError as error:
        parser.error(f"{error.filename}: {error.strerror}. Give a folder that can be written.")


if __name__ == "__main__":
    main()
