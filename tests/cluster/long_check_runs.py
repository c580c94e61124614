"""Runs of long checks by hand, as an admin starts them: a Job of a CronJob."""

import json
from dataclasses import dataclass
from typing import Any

from tests.cluster.slurm import Slurm
from tests.waiting import wait_until


@dataclass(frozen=True)
class LongRun:
    """A run that has ended."""

    succeeded: bool
    log: str


def start_run(slurm: Slurm, check: str, name: str) -> None:
    """Start a run of a check."""
    cron_job = f"cronjob/health-{check.replace('_', '-')}"
    slurm.kubernetes.run("create", "job", f"--from={cron_job}", name, "--namespace", slurm.namespace)


def ended_run(slurm: Slurm, name: str) -> LongRun:
    """Wait for the end of a run."""

    def status() -> dict[str, Any]:
        job = slurm.kubernetes.run("get", "job", name, "--namespace", slurm.namespace, "--output", "json")
        found: dict[str, Any] = json.loads(job)["status"]
        return found

    wait_until(lambda: bool({"succeeded", "failed"} & status().keys()), what=f"run {name} has ended")
    log = slurm.kubernetes.run("logs", f"job/{name}", "--namespace", slurm.namespace, "--container", "long-check")
    return LongRun("succeeded" in status(), log)


def run_of(slurm: Slurm, check: str, name: str) -> LongRun:
    """Run a check."""
    start_run(slurm, check, name)
    return ended_run(slurm, name)


def events(run: LongRun) -> list[dict[str, Any]]:
    """Return the events of a run."""
    return [json.loads(line) for line in run.log.splitlines()]
