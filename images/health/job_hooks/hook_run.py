"""One run of the hooks of a moment, in order, for one job."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from job_hooks.built_in_hooks import HOOKS, HookFailure
from job_hooks.hook_settings import HookSettings
from job_hooks.job_on_node import JobOnNode
from node_health import node_record, noted_drains
from node_health.bounded import BoundedProgram
from node_health.node_record import NoAnswerError
from node_health.state_machine import NodeState, check_of
from slurm_wire.drain_reasons import hook_reason

_SLURM_SECONDS = 10

_FOR_SCRIPTS = ("SLURM", "CUDA_", "GPU_", "NVIDIA_", "ROCR_", "ZE_")
"""Prefixes of the variables that slurmd sets itself. Variables that a user sets begin with SPANK_ and are left out."""


class NodeCalls(NamedTuple):
    """Calls to slurmctld and to the node's quick checks."""

    ask: Callable[[str, float], NodeState] = node_record.ask
    drain: Callable[[str, str, float], None] = node_record.drain
    note: Callable[[str], None] = noted_drains.note


class HookRun:
    """Hooks of one job on its node.

    Args:
        job: The job.
        variables: Variables that slurmd gives to a Prolog or an Epilog.
        calls: slurmctld.
        log: Takes each event.
    """

    def __init__(
        self, job: JobOnNode, variables: Mapping[str, str], calls: NodeCalls, log: Callable[[dict[str, Any]], None]
    ) -> None:
        self._job, self._calls, self._log = job, calls, log
        self._variables = {name: value for name, value in variables.items() if name.startswith(_FOR_SCRIPTS)}

    def run(self, hooks: Sequence[HookSettings]) -> int:
        """Run the hooks. Stop at the first failure that keeps the job from starting here, and return 1."""
        for hook in hooks:
            began = time.monotonic()
            failure = self._failure(hook)
            if failure is None:
                continue
            seconds = round(time.monotonic() - began, 1)
            event = {"hook": hook.name, "job": self._job.job_id, "problem": failure.problem, "seconds": seconds}
            reason = failure.reason or hook_reason(hook.name, failure.problem)
            drained = hook.action != "log" and self._drain(re.sub(r"[^ -!#-&(-~]", "?", reason))
            self._log({**event, "drained": drained})
            if hook.action == "requeue":
                return 1
        return 0

    def _failure(self, hook: HookSettings) -> HookFailure | None:
        if not hook.command:
            ours = HOOKS.get(hook.name)
            return ours(self._job, hook.seconds) if ours else HookFailure("is not in this image")
        end = BoundedProgram(hook.command, hook.seconds, self._variables).finish()
        if end.status is None:
            return HookFailure(f"no end in {hook.seconds:g} s")
        return HookFailure(end.words) if end.status else None

    def _drain(self, reason: str) -> bool:
        """Drain the node, unless someone else took it out of service: that reason stays."""
        try:
            node = self._calls.ask(self._job.node, _SLURM_SECONDS)
            if node.drained or node.taken_out:
                return False
            self._calls.drain(self._job.node, reason, _SLURM_SECONDS)
            if check := check_of(NodeState("DRAIN", reason)):
                self._calls.note(check)
        except (NoAnswerError, OSError) as error:
            self._log({"job": self._job.job_id, "problem": str(error)})
            return False
        return True
