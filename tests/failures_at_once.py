"""Reasons of failures when they come: a run of half an hour may be ended before pytest's own report."""

import os
import re
import shutil
from pathlib import Path

import pytest

from tools import paths

_GIB = 2**30
_LONGEST_REASON = 2000


class FailuresAtOnce:
    """Plugin of the process that reports: prints each reason once, as a broken fixture fails hundreds of tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seen: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print a failure whose reason is new."""
        reason = reason_of(report)
        if report.failed and reason not in self._seen:
            self._seen.add(reason)
            terminal = self._config.pluginmanager.get_plugin("terminalreporter")
            assert terminal is not None
            terminal.write_line(f"\n{report.nodeid} failed in its {report.when} after {report.duration:.0f} s:")
            terminal.write_line(reason)
            terminal.write_line(machine())


def reason_of(report: pytest.TestReport) -> str:
    """Return the message of what was raised, or the end of the report where it has no single one."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else report.longreprtext
    return str(text)[-_LONGEST_REASON:]


def machine() -> str:
    """Return the load, and the memory and disk that are left: a machine without them fails tests of anything."""
    available = re.search(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text())
    memory_gib = int(available[1]) * 1024 / _GIB if available else 0
    disk_gib = shutil.disk_usage(paths.ROOT).free / _GIB
    load = " ".join(f"{number:.1f}" for number in os.getloadavg())
    return f"(load {load}; {memory_gib:.1f} GiB of memory and {disk_gib:.1f} GiB of disk are free)"


def register(config: pytest.Config) -> None:
    """Add the plugin, but in a process that runs tests for another one."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailuresAtOnce(config))
