"""The program of a CronJob's pod: one run of the check that its argument names."""

import json
import signal
import sys
from pathlib import Path
from typing import Any

from long_checks.check_run import CheckRun
from long_checks.long_settings import parse_long
from long_checks.measuring import Measuring
from long_checks.reports import AnotherRunError, Reports
from long_checks.slurm_calls import SlurmCallError, SlurmCalls

SETTINGS = "/etc/soperator/long-checks"
"""Folder with the settings of each check: the ConfigMap."""

CONTROLLER = "controller-0:6817"
"""slurmctld, which gives its clients their slurm.conf."""


def run_long(arguments: list[str]) -> int:
    """Run the check and return the exit status."""
    if len(arguments) != 1:
        print("usage: long-check CHECK", file=sys.stderr)
        return 64
    # An exception: jobs are cancelled and nodes are drained before the pod ends.
    signal.signal(signal.SIGTERM, lambda _signal, _frame: sys.exit(1))
    try:
        settings = parse_long((Path(SETTINGS) / f"{arguments[0]}.json").read_text())
        reports = Reports(settings.folder, settings.check)
        reports.create(settings.uid)
        slurm = SlurmCalls({"SLURM_CONF_SERVER": CONTROLLER})
        with reports.alone():
            return CheckRun(settings, slurm, reports, Measuring(settings, slurm, reports), _say).run()
    except AnotherRunError as error:
        _say({"long_check": arguments[0], "event": "skipped", "why": str(error)})
        return 0
    except (OSError, SlurmCallError, ValueError) as error:
        _say({"long_check": arguments[0], "event": "failed to run", "why": str(error)})
        return 1


def _say(event: dict[str, Any]) -> None:
    print(json.dumps(event), flush=True)
