"""One round: readings, results, consecutive results, a drain or its end, and its report.

slurmd starts a round every HealthCheckInterval, and logs its output if the exit status is not 0. A healthy round prints
nothing, changes nothing, and asks slurmctld nothing.
"""

import json
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from node_health import node_record
from node_health.all_checks import CHECKS
from node_health.check_settings import CheckSettings, NodeSettings
from node_health.earlier_rounds import ports_before
from node_health.kernel_files import boot, read, uptime_seconds
from node_health.kernel_log import HOUR_SECONDS, XID, KernelLog
from node_health.readers import Readers
from node_health.readings import Readings
from node_health.results import CheckResult
from node_health.smi import Gpu
from node_health.state_machine import (
    NodeState,
    Tally,
    check_of,
    decide,
    failing,
    findings,
    may_show,
    recovered,
)
from slurm_wire.drain_reasons import health_reason

FORMAT = 1
"""Format of the result file."""

_XID = "gpu_xid"

_LEAST_CALL_SECONDS = 3.0
"""Shortest time for a call to slurmctld after a slow nvidia-smi: three of them fit before slurmd ends the round."""


class Slurm(NamedTuple):
    """Calls to slurmctld."""

    ask: Callable[[str, float], NodeState] = node_record.ask
    drain: Callable[[str, str, float], None] = node_record.drain
    undrain: Callable[[str, float], None] = node_record.undrain
    show: Callable[[str, str, float], None] = node_record.show


def due(settings: NodeSettings, memory: Mapping[str, Any], now: float) -> list[str]:
    """Return the checks that are due and that this program knows. Rounds start up to half an interval early or late."""
    ran = memory.get("ran", {})
    early = settings.interval_seconds / 2
    return [
        name
        for name, check in settings.checks.items()
        if name in CHECKS and not 0 <= now - ran.get(name, -check.every_seconds) < check.every_seconds - early
    ]


def judge(names: list[str], settings: NodeSettings, readings: Readings) -> dict[str, CheckResult]:
    """Return the results of checks that apply to the node's state and have their readings."""
    state = "busy" if readings.busy else "idle"
    found = {
        name: CHECKS[name].judge(settings.checks[name].limit or 0, readings)
        for name in names
        if state in settings.checks[name].states
    }
    return {name: result for name, result in found.items() if result is not None}


class Round:
    """One round.

    Args:
        node: Name of the node.
        settings: Settings of its checks.
        memory: Memory of earlier rounds, changed in place.
        slurm: Calls of slurmctld.
        now: Time in seconds since 1970.
        root: Folder with the kernel's files, for tests.
    """

    def __init__(
        self, node: str, settings: NodeSettings, memory: dict[str, Any], slurm: Slurm, *, now: float, root: str = ""
    ) -> None:
        if memory.get("boot") != boot(root):
            memory.clear()  # times and counters of another boot
            memory["boot"] = boot(root)
        self._node, self.settings, self._memory, self._slurm, self._now = node, settings, memory, slurm, now
        self._root = root
        self._events: list[dict[str, Any]] = []
        self._end = time.monotonic() + settings.seconds

    def run(self) -> list[dict[str, Any]]:
        """Run the due checks, act, and return the events of the round."""
        names = due(self.settings, self._memory, self._now)
        sources = Readers(
            self.settings,
            self._memory,
            self.settings.seconds / 2,
            self._now,
            smi_seconds=self.settings.smi_seconds,
            root=self._root,
        )
        return self.conclude(names, sources.take({CHECKS[name].source for name in names}))

    def conclude(self, names: list[str], readings: Readings) -> list[dict[str, Any]]:
        """Count the results of these checks, act on them, and return the events of the round."""
        if readings.gpus is not None:
            self._memory["gpus"] = [_identity(gpu) for gpu in readings.gpus]
        results = judge(names, self.settings, readings)
        before = set(self._failing())
        self._count(names, results)
        for name in self._failing():
            if name not in before:
                self._report("failed", name)
        for name in sorted(before - set(self._failing())):
            if name in self.settings.checks:
                self._report("passed", name)
        self._act()
        return self._events

    def _count(self, names: list[str], results: Mapping[str, CheckResult]) -> None:
        ran, tallies = self._memory.setdefault("ran", {}), self._memory.setdefault("tallies", {})
        values = self._memory.setdefault("values", {})
        ran.update(dict.fromkeys(names, self._now))
        for name, result in results.items():
            tallies[name] = list(Tally(*tallies.get(name, ())).counted(passed=result.passed))
            values[name] = result.value
        for kept in (ran, tallies, values):
            for name in kept.keys() - self.settings.checks.keys():
                del kept[name]

    def _tallies(self) -> dict[str, Tally]:
        return {name: Tally(*tally) for name, tally in self._memory.get("tallies", {}).items()}

    def _failing(self) -> list[str]:
        return failing(self.settings.checks, self._tallies())

    def _act(self) -> None:
        """Drain or undrain the node, and show failed checks that drain nothing.

        slurmctld is asked only if this may change something, and once after the pod's start.
        """
        reasons = {name: self._reason(name) for name in self._failing() if self.settings.checks[name].drains}
        found = findings(self.settings.checks, self._tallies())
        shown = found == self._memory.get("shown", "")
        if not reasons and shown and not self._memory.get("held") and self._memory.get("asked"):
            return
        try:
            node = self._slurm.ask(self._node, self._left())
            if not self._memory.get("asked"):
                self._recall(node)
            if self._forgets_errors(node):
                reasons.pop(_XID, None)
            self._memory["asked"] = True
            decision = decide(self.settings.checks, self._tallies(), reasons, node)
            if decision.drain:
                self._slurm.drain(self._node, decision.drain, self._left())
                self._events.append({"event": "drained", "reason": decision.drain})
            elif decision.undrain:
                self._slurm.undrain(self._node, self._left())
                self._events.append({"event": "undrained", "reason": node.reason})
            held = "" if decision.undrain else decision.drain or (node.reason if check_of(node) else "")
            self._memory["held"] = held
            if node.extra != found and may_show(node):
                self._slurm.show(self._node, found, self._left())
            self._memory["shown"] = found
            self._memory.pop("unanswered", None)
        except node_record.NoAnswerError as error:
            if self._memory.get("unanswered") != str(error):  # once, not every round of an outage
                self._events.append({"event": "unanswered", "problem": str(error)})
            self._memory["unanswered"] = str(error)

    def _recall(self, node: NodeState) -> None:
        """Restore an earlier pod's facts about ports from a drain's reason, without its count of passes."""
        if (check := check_of(node)) and (before := ports_before(node.reason)):
            ports = self._memory.setdefault("ports", {})
            ports.update({name: max(rate, ports.get(name, 0)) for name, rate in before.items()})
            self._memory.get("tallies", {}).pop(check, None)

    def _forgets_errors(self, node: NodeState) -> bool:
        """Return True if errors of GPUs are over because an admin undrained the node since they were found.

        A new pod also finds old errors in the kernel's log. If one were not over, its drain would still exist.
        """
        if "kernel" not in self._memory or check_of(node) == _XID:
            return False
        log = KernelLog(self._memory["kernel"], boot(self._root))
        before = log.failures(0).get(XID)
        if "held" not in self._memory:
            log.forget_before(uptime_seconds(self._root) - HOUR_SECONDS)
        elif check_of(NodeState("DRAIN", self._memory["held"])) == _XID and not node.drained:
            log.forget_known()
        if not before or log.failures(0).get(XID):
            return False
        self._memory["tallies"].pop(_XID, None)
        return True

    def _left(self) -> float:
        return max(_LEAST_CALL_SECONDS, (self._end - time.monotonic()) / 2)

    def _reason(self, name: str) -> str:
        result, check = CheckResult(passed=False, value=self._memory["values"][name]), self.settings.checks[name]
        return health_reason(name, result.value, check.allowed, replace=check.replaces)

    def _report(self, event: str, name: str) -> None:
        check = self.settings.checks[name]
        self._events.append(
            {
                "event": event,
                "check": name,
                "value": self._memory["values"].get(name, ""),
                "allowed": check.allowed,
                "action": check.action,
            }
        )

    def summary(self, took_seconds: float) -> dict[str, Any]:
        """Return the content of the result file."""
        tallies, held = self._tallies(), self._memory.get("held", "")
        holder = check_of(NodeState("DRAIN", held)) or ""
        checks = {name: self._line(name, check, tallies) for name, check in self.settings.checks.items()}
        of_holder = self.settings.checks.get(holder)
        return {
            "format": FORMAT,
            "node": self._node,
            "time": round(self._now, 3),
            "took_seconds": round(took_seconds, 3),
            "healthy": not self._failing(),
            "held": {
                "reason": held,
                "check": holder,
                "replace": bool(of_holder and of_holder.replaces),
                "to_verify": bool(
                    of_holder and of_holder.undrain == "verify" and recovered(of_holder, tallies.get(holder, Tally()))
                ),
            }
            if held
            else None,
            "gpus": self._memory.get("gpus", []),
            "checks": checks,
        }

    def _line(self, name: str, check: CheckSettings, tallies: Mapping[str, Tally]) -> dict[str, Any]:
        tally = tallies.get(name, Tally())
        state = "unknown" if tally == Tally() else "failed" if tally.failures else "passed"
        return {
            "state": state,
            "value": self._memory.get("values", {}).get(name, ""),
            "allowed": check.allowed,
            "action": check.action,
            "failures": tally.failures,
            "passes": tally.passes,
        }


def _identity(gpu: Gpu) -> dict[str, Any]:
    """Return everything that identifies a GPU for a technician."""
    found = {"name": gpu.name, "address": gpu.address, "serial": gpu.serial, "uuid": gpu.uuid, "product": gpu.product}
    return {**found, "device": "" if gpu.minor is None else f"/dev/nvidia{gpu.minor}"}


def load(path: str) -> dict[str, Any]:
    """Return the stored state of earlier rounds; empty if there is none, or if it is damaged."""
    try:
        memory = json.loads(read(path) or "{}")
    except ValueError:
        return {}
    return memory if isinstance(memory, dict) else {}


def save(path: str, content: Mapping[str, Any]) -> None:
    """Write a file atomically."""
    beside = f"{path}.new"
    with open(beside, "w") as file:  # noqa: PTH123 - pathlib takes longer to import than a round's checks
        json.dump(content, file)
    os.replace(beside, path)  # noqa: PTH105 - as above
