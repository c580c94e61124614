"""Runs of pytest for selected tests, one after another until one fails."""

import os
import subprocess
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from soperator_pulumi.wording import counted
from tools import paths
from tools.affected.selection import ON_KUBERNETES, TIERS, Selection
from tools.console import say

_NOTHING_COLLECTED = 5
"""Exit code of pytest if markers or options leave no test of the files."""

_FEW = 3
"""Number of files whose quick tests end before worker processes have started."""

_AS_MANY_AS_CORES = ("-n", "auto", "--dist", "loadfile")
_FOUR = ("-n", "4", "--dist", "loadfile", "--no-loadscope-reorder", "--maxfail", "30")
"""Processes for cluster tests, which mostly wait; as in `make test`."""


class Step(NamedTuple):
    """A program to start."""

    title: str
    command: Sequence[str]


_BUILDS = (
    Step("servers and images", (sys.executable, "-m", "tools.build")),
    Step("programs and charts of tests", (sys.executable, "-m", "tests.cluster.fetch")),
)
"""Build steps, as in `make test`."""


@dataclass(frozen=True)
class PytestRun:
    """One run of pytest."""

    name: str
    tier: str
    files: Sequence[str]

    @property
    def command(self) -> list[str]:
        """Command line of the run."""
        in_one_process = self.tier not in ON_KUBERNETES and len(self.files) <= _FEW
        workers = () if in_one_process else _FOUR if self.tier in ON_KUBERNETES else _AS_MANY_AS_CORES
        return [sys.executable, "-m", "pytest", *workers, *self.files]


def runs_of(selection: Selection, tiers: Collection[str] = TIERS) -> list[PytestRun]:
    """Return the runs of a selection for these tiers, the quickest first."""
    others = [file for file in selection.selected["unit"] if file not in selection.nearest]
    all_runs = [
        PytestRun("nearest", "unit", selection.nearest),
        PytestRun("unit", "unit", others),
        *(PytestRun(tier, tier, selection.selected[tier]) for tier in TIERS if tier != "unit"),
    ]
    return [run for run in all_runs if run.files and run.tier in tiers]


def steps_of(runs: Sequence[PytestRun]) -> list[Step]:
    """Return the programs to start for runs, including builds before the first run that needs a Kubernetes cluster."""
    steps: list[Step] = []
    builds = list(_BUILDS)
    for run in runs:
        if run.tier in ON_KUBERNETES:
            steps += builds
            builds.clear()
        steps.append(Step(f"{run.name}: {counted(len(run.files), 'file')}", run.command))
    return steps


def carry_out(steps: Iterable[Step]) -> int:
    """Start programs one after another until one fails, and return its exit code; 0 if all succeed.

    A run of pytest whose tests are all deselected counts as a success.
    """
    # pytest keeps what it makes of the sources: without that, each run would take half a minute more of a processor.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for step in steps:
        say(f"==> {step.title}")
        code = subprocess.run(step.command, cwd=paths.ROOT, env=environment, check=False).returncode
        if code not in {0, _NOTHING_COLLECTED}:
            return code
    return 0
