"""The program that slurmd starts as Prolog and Epilog."""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from job_hooks.hook_run import HookRun, NodeCalls
from job_hooks.hook_settings import parse
from job_hooks.job_on_node import job_of
from node_health.kernel_files import read

SETTINGS = "/etc/soperator/health/job_hooks.json"


def write_log(event: dict[str, Any]) -> None:
    """Write a line of JSON to the pod's log, which also has slurmd's. slurmd discards what a hook prints."""
    line = json.dumps({"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **event}) + "\n"
    try:
        log = os.open(f"/proc/{os.getppid()}/fd/2", os.O_WRONLY | os.O_APPEND)
    except OSError:
        log = os.dup(sys.stderr.fileno())
    with suppress(OSError):  # a log that takes nothing fails no job
        os.write(log, line.encode())
    os.close(log)


def run_hooks(
    moment: str,
    variables: Mapping[str, str] = os.environ,
    settings: str = SETTINGS,
    calls: NodeCalls | None = None,
    log: Callable[[dict[str, Any]], None] = write_log,
) -> int:
    """Run the hooks of a moment, `prolog` or `epilog`, and return the status for slurmd.

    Unreadable settings stop no job: for a while, a new image may read settings that an earlier version wrote.
    """
    job = job_of(variables, variables.get("SLURMD_NODENAME") or os.uname().nodename)
    try:
        given = parse(_text(settings), moment)
    except ValueError as error:
        log({"job": job.job_id, "problem": f"{settings}: {error}"})
        return 0
    if job.node_set not in given.whole_gpus:
        job = job._replace(gpus=())
    return HookRun(job, variables, calls or NodeCalls(), log).run(given.hooks)


def _text(settings: str) -> str:
    text = read(settings)
    if not text:
        raise ValueError("missing: this pod is older than the hooks")
    return text
